"""A pod's first container as a process of this machine.

A process has no file system of its own. So mounted folders stand below a folder, and values of the environment that
name one of them are changed to that; what a pod finds at a fixed place is told by the environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from local.children import start

ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"
PYTHON = "python3"
"""The program that can be run here; a pod of another one has no process."""
RESTART_SECONDS, LONGEST = 1.0, 30.0
"""Pause before a process that ended is started again; it doubles up to the longest."""
GRACE_SECONDS = 5.0

K = TypeVar("K")


def runs_here(spec: Mapping[str, Any]) -> bool:
    """Whether the first container of a pod is a program that can be run here."""
    return bool((spec["containers"][0].get("command") or [""])[0] == PYTHON)


def environment(root: Path, url: str, spec: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, str]:
    """The environment of a pod's first container. ``url`` is the API's, ``fields`` are what a ``fieldRef`` may name."""
    api, container = urlsplit(url), spec["containers"][0]
    folders = [mount["mountPath"] for mount in container.get("volumeMounts", ())]
    values = {
        variable["name"]: variable["value"]
        if "value" in variable
        else fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        for variable in container.get("env", ())
    }
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "KUBERNETES_SERVICE_HOST": api.hostname or "",
        "KUBERNETES_SERVICE_PORT": str(api.port),
        "STOCKYARD_ACCOUNT_DIR": str(root / ACCOUNT),
        **{name: _placed(root, value, folders) for name, value in values.items()},
    }


def run(spec: Mapping[str, Any], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a pod's first container. What it prints goes to ``log``."""
    command = [sys.executable, *spec["containers"][0]["command"][1:]]
    with log.open("ab", buffering=0) as file:
        return start(command, env=dict(environment), cwd="/", stdout=file, stderr=file)


def end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End containers as a kubelet does: SIGTERM, then SIGKILL after a grace period."""
    alive = [process for process in processes if process.poll() is None]
    for process in alive:
        process.send_signal(signal.SIGTERM)
    ends_at = time.monotonic() + GRACE_SECONDS
    for process in alive:
        try:
            process.wait(max(0.0, ends_at - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def write(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    path.write_bytes(data)


@dataclass
class Restarts(Generic[K]):
    """Times when containers that have ended may start again, by the monotonic clock."""

    _again: dict[K, tuple[float, float]] = field(default_factory=dict)

    def due(self, key: K, started: float) -> bool:
        """Whether the container that was started then, and has ended since, may start again."""
        pause, until = self._again.get(key, (0.0, 0.0))
        now = time.monotonic()
        if until < started:
            pause = RESTART_SECONDS if now - started > LONGEST else min(max(2 * pause, RESTART_SECONDS), LONGEST)
            self._again[key] = (pause, now + pause)
            return False
        return now >= until


def _placed(root: Path, value: str, folders: Sequence[str]) -> str:
    """The value moved below ``root`` if it is a path inside a mounted folder; any other value unchanged."""
    if any(f"{folder}/".startswith(f"{value.rstrip('/')}/") for folder in folders if value.startswith("/")):
        return str(root / value.lstrip("/"))
    return value
