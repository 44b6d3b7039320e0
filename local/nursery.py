"""Where functions' processes come from: one process has loaded what all of them load, and forks.

A new interpreter that loads boto3, pydantic and powertools costs a second of CPU; a fork of one that has costs next to
nothing. What a function's environment decides is still decided in its own process: nothing of ours is loaded before.

``python -m local.nursery FD`` is that process: it reads one JSON line for each child from the socket ``FD`` and says
when a child has ended. It ends with the socket.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import itertools
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

LOADED = ("boto3.session", "botocore.client", "botocore.httpsession", "pydantic", "aws_lambda_powertools.logging")
"""What functions load, and what does not look at the environment when it is loaded (awslambdaric does)."""
_OURS = Path(__file__).resolve().parents[1]


@dataclass(slots=True)
class Child:
    """One process. ``code`` is its exit code once it has ended, negative for a signal."""

    pid: int = 0
    code: int = -1
    born: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def kill(self) -> None:
        """End it at once, and wait for it."""
        self.born.wait()
        if not self.ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.ended.wait()


class Nursery:
    """Asks for children. Its process is started by the first one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._children: dict[int, Child] = {}
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    def child(self, handler: str, environment: Mapping[str, str], folder: Path, log: str) -> Child:
        """A process that runs ``awslambdaric`` for a handler, with that environment and no other."""
        child = Child()
        with self._lock:
            connection = self._socket or self._started()
            number = next(self._numbers)
            self._children[number] = child
            wish = {"number": number, "handler": handler, "environment": dict(environment)}
            wish |= {"folder": str(folder), "log": log}
            connection.sendall(json.dumps(wish).encode() + b"\n")
        return child

    def close(self) -> None:
        """End the process. Children are their owners' to end."""
        with self._lock:
            connection, self._socket = self._socket, None
        if connection is None or self._process is None or self._reader is None:
            return
        connection.shutdown(socket.SHUT_WR)
        self._process.wait()
        self._reader.join(5)
        connection.close()

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        path = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "local.nursery", str(theirs.fileno())],
            env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": f"{_OURS}{os.pathsep}{path}"},
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            process_group=0,  # Ctrl-C reaches the local cloud, which then ends it in order
        )
        theirs.close()
        self._socket = ours
        self._reader = threading.Thread(target=self._read, args=(ours,), daemon=True, name="nursery")
        self._reader.start()
        return ours

    def _read(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as lines:
            for line in lines:
                told = json.loads(line)
                child = self._children[told["number"]]
                if "pid" in told:
                    child.pid = told["pid"]
                    child.born.set()
                else:
                    del self._children[told["number"]]
                    child.code = told["code"]
                    child.ended.set()
        for child in self._children.values():
            child.born.set()
            child.ended.set()


# --- the process that forks ------------------------------------------------------------------------------------------


def serve(connection: socket.socket) -> None:
    """Fork a child for each line, and tell of each end, until the other side closes."""
    for name in LOADED:
        importlib.import_module(name)
    wake, waker = socket.socketpair()
    wake.setblocking(False)
    waker.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno())
    numbers: dict[int, int] = {}
    waiting = b""
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        selector.register(wake, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if wake in ready:
                with contextlib.suppress(BlockingIOError):
                    wake.recv(4096)
                _tell_ends(connection, numbers)
            if connection in ready:
                received = connection.recv(1 << 16)
                if not received:
                    return
                *lines, waiting = (waiting + received).split(b"\n")
                for line in lines:
                    wish = json.loads(line)
                    pid = os.fork()
                    if pid == 0:
                        selector.close()
                        _become(wish, (connection, wake, waker))
                    numbers[pid] = wish["number"]
                    _tell(connection, {"number": wish["number"], "pid": pid})


def _tell_ends(connection: socket.socket, numbers: dict[int, int]) -> None:
    while numbers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        _tell(connection, {"number": numbers.pop(pid), "code": os.waitstatus_to_exitcode(status)})


def _tell(connection: socket.socket, message: Mapping[str, int]) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more: the next read ends us
        connection.sendall(json.dumps(message).encode() + b"\n")


def _become(wish: Mapping[str, Any], ours: Sequence[socket.socket]) -> NoReturn:
    """Turn this fork into what ``python -m awslambdaric HANDLER`` would be; it ends with it."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for one in ours:
            one.close()
        os.setpgid(0, 0)
        log = os.open(wish["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(wish["folder"])
        os.environ.clear()
        os.environ.update(wish["environment"])
        time.tzset()
        _set_path(wish["folder"])
        sys.argv = ["awslambdaric", wish["handler"]]
        runtime = importlib.import_module("awslambdaric.__main__")
        runtime.main(sys.argv)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _set_path(folder: str) -> None:
    """The folder, what ``PYTHONPATH`` names, and the interpreter's own; with its first ``sitecustomize``."""
    named = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    own = [path for path in sys.path if path.startswith((sys.prefix, sys.base_prefix)) and path not in named]
    sys.path[:] = [folder, *named, *own]
    sys.path_importer_cache.clear()
    for path in named:
        file = Path(path) / "sitecustomize.py"
        if file.exists():
            spec = importlib.util.spec_from_file_location("sitecustomize", file)
            if spec is not None and spec.loader is not None:
                module = importlib.util.module_from_spec(spec)
                sys.modules["sitecustomize"] = module
                spec.loader.exec_module(module)
            return


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        serve(given)
