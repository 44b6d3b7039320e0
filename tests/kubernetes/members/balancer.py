"""The town's name server and load balancer: the endpoint's name leads to the balancer, and the balancer to targets.

    python -m tests.kubernetes.members.balancer <address> <file of targets>

As load balancers of clouds do, it does not send a machine's own connections back to it: those hang.
"""

from __future__ import annotations

import itertools
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

PORT = 6443


def serve_names(address: str) -> None:
    """Every name is the balancer's; there is no address of another kind."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, 53))
    while True:
        query, caller = server.recvfrom(512)
        end = query.index(b"\0", 12) + 5
        question = query[12:end]
        wants_address = question[-4:-2] == b"\0\1"
        head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if wants_address else b"\0\0") + b"\0\0\0\0"
        record = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + socket.inet_aton(address) if wants_address else b""
        server.sendto(head + question + record, caller)


def pump(source: socket.socket, target: socket.socket) -> None:
    """Copy until one side ends."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def forward(caller: socket.socket, host: str, targets: list[str]) -> None:
    """Connect the caller to the first target that listens."""
    for target in targets:
        try:
            server = socket.create_connection((target, PORT), 2)
        except OSError:
            continue
        if target == host:
            time.sleep(30)
            break
        server.settimeout(None)
        threading.Thread(target=pump, args=(caller, server), daemon=True).start()
        pump(server, caller)
        break
    caller.close()


def main(address: str, targets: Path) -> None:
    """Run until somebody ends it."""
    threading.Thread(target=serve_names, args=(address,), daemon=True).start()
    server = socket.create_server((address, PORT))
    for number in itertools.count():
        caller, (host, _) = server.accept()
        names = targets.read_text().split() if targets.exists() else []
        turn = number % len(names) if names else 0
        arguments = (caller, host, names[turn:] + names[:turn])
        threading.Thread(target=forward, args=arguments, daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
