"""The folder of one local cloud: its lock, and what an earlier one has left in it."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from local.warden import clear

ENVIRONMENT, PROCESSES = "env", "processes"
LEFTOVERS = ("builds", "head-node", "machines", "managed", "planes", "pki", "site")
"""Folders of what an earlier local cloud has made. ``logs`` and ``cache`` stay."""


class StartError(Exception):
    """The local cloud cannot start; the text says why."""


def take(home: Path) -> IO[str]:
    """One local cloud a home: two would overwrite each other's ``env``. The file that is returned holds the lock.

    Raises ``StartError``.
    """
    lock = None
    try:
        home.mkdir(parents=True, exist_ok=True)
        lock = (home / "lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if lock is not None:
            lock.close()
        raise StartError(
            f"a local cloud runs in {home} already: stop it, or give this one its own (make serve LOCAL_HOME=folder)"
        ) from None
    except OSError as error:
        raise StartError(f"{home} cannot be used: {(error.strerror or '').lower()}") from None
    return lock


def tidy(home: Path) -> None:
    """End and remove what a local cloud has left here that was killed. The home has to be taken."""
    (home / ENVIRONMENT).unlink(missing_ok=True)
    clear(home / PROCESSES)
    for name in LEFTOVERS:
        shutil.rmtree(home / name, ignore_errors=True)


def check(home: Path, port: int) -> None:
    """Whether a start has a chance, at once: the parts of a local cloud take seconds to import.

    Raises ``StartError``.
    """
    take(home).close()
    if port:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError as error:
                raise port_error(port, error) from None


def port_error(port: int, error: OSError) -> StartError:
    """Error for a port that cannot be listened on."""
    return StartError(f"port {port} cannot be used ({(error.strerror or '').lower()}): PORT=0 takes a free one")


def publish(home: Path, environment: Mapping[str, str]) -> None:
    """Write the file of the environment in one step, for its owner alone: whoever sees it can use it."""
    part = home / f"{ENVIRONMENT}.part"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("".join(f"{name}={value}\n" for name, value in environment.items()))
    part.replace(home / ENVIRONMENT)
