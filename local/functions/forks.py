"""``python -m local.functions.forks SOCKET MODULE...``: imports the modules, then forks a process for each request.

It has one thread, so that its copies are whole. When the other end of its socket closes, it ends its processes and
itself; when it is killed, they are members of its process group, which the warden ends.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import site
import socket
import sys
import time
import traceback
from contextlib import suppress
from typing import Any, NoReturn

from local.functions.apart import stay_on_core
from local.functions.fork_server import KILL, SIZE_BYTES


class Forks:
    """The processes, each with the socket on which its end is end_socket."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._own_path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        self._sockets: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        self._ended, self._wake = socket.socketpair()
        for end in (self._ended, self._wake):
            end.setblocking(False)
        self._selector.register(self._ended, selectors.EVENT_READ)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        """Until the other end closes."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._requests:
                    if not self._take():
                        return
                elif key.fileobj is self._ended:
                    self._ended.recv(4096)
                    self._reap()
                else:
                    self._kill(key.data)

    def close(self) -> None:
        """End all processes."""
        for pid in list(self._sockets):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _take(self) -> bool:
        """One request; whether there was one."""
        size, descriptors, _, _ = socket.recv_fds(self._requests, SIZE_BYTES, 2)
        if not size:
            return False
        request = json.loads(self._requests.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
        end_socket, output = socket.socket(fileno=descriptors[0]), descriptors[1]
        pid = os.fork()
        if pid == 0:
            self._be(request, end_socket, output)
        os.close(output)
        self._sockets[pid] = end_socket
        self._selector.register(end_socket, selectors.EVENT_READ, pid)
        return True

    def _reap(self) -> None:
        for pid, end_socket in list(self._sockets.items()):
            ended_pid, status = os.waitpid(pid, os.WNOHANG)
            if ended_pid:
                del self._sockets[pid]
                with suppress(KeyError):
                    self._selector.unregister(end_socket)
                with end_socket, suppress(OSError):
                    end_socket.sendall(str(os.waitstatus_to_exitcode(status)).encode())

    def _kill(self, pid: int) -> None:
        """Asked for, or nobody is there any more who would ask."""
        end_socket = self._sockets.get(pid)
        if end_socket is not None and end_socket.recv(len(KILL)) in (KILL, b""):
            self._selector.unregister(end_socket)
            os.kill(pid, signal.SIGKILL)

    def _be(self, request: dict[str, Any], end_socket: socket.socket, output: int) -> NoReturn:
        """In the copy: become what was asked for. Nothing of the server stays open."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._selector.close()
            for each in (self._requests, self._ended, self._wake, end_socket, *self._sockets.values()):
                each.close()
            for standard in (1, 2):
                os.dup2(output, standard)
            os.close(output)
            code = _run(request, self._own_path)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def _run(request: dict[str, Any], own_path: list[str]) -> int:
    """As ``python -m`` does it: the variables, where modules are looked for, and what a ``sitecustomize`` adds."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    stay_on_core()
    installed = [entry for entry in sys.path[1:] if entry not in own_path]
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [request["folder"], *path, *installed]
    sys.argv[:] = [request["module"], request["argument"]]
    sys.modules.pop("sitecustomize", None)
    try:
        site.execsitecustomize()
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    """Import, then serve. A module that cannot be imported is a fault of the processes that want it, not of all."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    for module in sys.argv[2:]:
        with suppress(Exception):
            importlib.import_module(module)
    # What is there now is never collected in a copy, so its memory stays shared.
    gc.collect()
    gc.freeze()
    forks = Forks(requests)
    try:
        forks.serve()
    finally:
        forks.close()


if __name__ == "__main__":
    main()
