"""Python processes that begin as copies of a process with all imports done.

To start Python and to import the packages of a function takes longer than most of its invocations. :class:`ForkServer`
is this side; the program on the other side is :mod:`local.functions.forks`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from local.children import start

ROOT = Path(__file__).resolve().parents[2]
SIZE_BYTES = 4
"""Each request begins with its size."""
KILL = b"k"


class Fork:
    """One process. The server tells on the socket how it ended, and ends it when it is told to."""

    def __init__(self, server_socket: socket.socket) -> None:
        self._socket = server_socket
        self._lock = threading.Lock()
        self.exit_code: int | None = None
        """As of ``subprocess.Popen``: negative for a signal; None while nobody has seen the end."""

    def wait(self) -> int:
        """Wait for its end; the exit code."""
        with self._lock:
            if self.exit_code is None:
                code = b""
                # A server that was killed says nothing, or resets the connection on which it has not read our word. Its
                # processes were killed with it.
                with self._socket, self._socket.makefile("rb") as answer, suppress(ConnectionResetError):
                    code = answer.read()
                self.exit_code = int(code or -signal.SIGKILL)
            return self.exit_code

    def kill(self) -> None:
        """Ask for its end. The server does it, which alone knows whether the number still is this process."""
        with suppress(OSError):
            self._socket.sendall(KILL)


class ForkServer:
    """Starts the server. ``modules`` are imported once for all processes; ``path`` is where modules are looked for."""

    def __init__(self, modules: Sequence[str], path: Sequence[Path | str]) -> None:
        self._lock = threading.Lock()
        self._socket, other_end = socket.socketpair()
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "en_US.UTF-8",
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "PYDANTIC_DISABLE_PLUGINS": "__all__",
        }
        with other_end:
            self._process = start(
                [sys.executable, "-m", "local.functions.forks", str(other_end.fileno()), *modules],
                env=environment,
                cwd=ROOT,
                pass_fds=(other_end.fileno(),),
            )

    def fork(self, module: str, argument: str, environment: Mapping[str, str], folder: Path, output: IO[bytes]) -> Fork:
        """``python -m module argument`` in ``folder`` with these variables and no others; it writes to ``output``."""
        request = {"module": module, "argument": argument, "environment": dict(environment), "folder": str(folder)}
        text = json.dumps(request).encode()
        own_end, other_end = socket.socketpair()
        with other_end, self._lock:
            size = len(text).to_bytes(SIZE_BYTES, "big")
            socket.send_fds(self._socket, [size], [other_end.fileno(), output.fileno()])
            self._socket.sendall(text)
        return Fork(own_end)

    def close(self) -> None:
        """End the server, and with it all its processes."""
        self._socket.close()
        self._process.wait()
