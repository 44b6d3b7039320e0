"""The connection to the Kubernetes API stays open, and one that has ended is opened again where that is harmless."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.roles import NAME, NAMESPACE
from agent.stockyard_agent import transport
from agent.stockyard_agent.connection import KeptConnection
from agent.stockyard_agent.kubernetes import Kubernetes
from agent.stockyard_agent.transport import HttpRequest, Unreachable
from tests.unit.agent.rig import Rig
from tests.unit.agent.test_transport import identity

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class Wire:
    """A server of bare sockets. ``script`` says what happens to each request: an answer, or none (``b""``) and the
    end of the connection; ``!`` at an answer's end closes the connection behind it. Then all are answered."""

    script: list[bytes] = field(default_factory=list)
    connections: int = 0
    requests: list[str] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        # The socket is closed when its file is too.
        with peer, peer.makefile("rb") as file, suppress(ConnectionError):
            while received := file.readline():
                length = 0
                while (line := file.readline()).strip():
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                file.read(length)
                self.requests.append(received.partition(b" ")[0].decode())
                answer = self.script.pop(0) if self.script else OK
                peer.sendall(answer.removesuffix(b"!"))
                if not answer or answer.endswith(b"!"):
                    break
        self.closed.set()

    def close(self) -> None:
        # A socket that is only closed stays open for a thread in accept(), which takes calls of whoever comes next.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    server = Wire()
    yield server
    server.close()


@pytest.fixture
def exchange() -> Iterator[KeptConnection]:
    connection = KeptConnection(ssl.create_default_context(), timeout=5)
    yield connection
    connection.close()


def test_requests_share_a_connection(wire: Wire, exchange: KeptConnection) -> None:
    for method in ("GET", "POST", "PATCH", "DELETE") * 3:
        answer = exchange(HttpRequest(method, wire.url + "/x?limit=1", {"A": "b"}, b"{}" if method != "GET" else None))
        assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"{}", "2")
    assert (wire.connections, len(wire.requests)) == (1, 12)


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
def test_a_connection_that_was_closed_while_idle_is_opened_again(
    wire: Wire, exchange: KeptConnection, method: str
) -> None:
    """Whatever the method: nothing of the request was sent."""
    wire.script = [OK + b"!"]
    exchange(HttpRequest("GET", wire.url))
    assert wire.closed.wait(5)
    assert exchange(HttpRequest(method, wire.url)).status == 200
    assert (wire.connections, wire.requests) == (2, ["GET", method])


def test_an_answer_that_becomes_quiet_is_cut_behind_its_last_whole_line(wire: Wire, exchange: KeptConnection) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    wire.script = [head + b"one\ntw", head, OK]
    answer = exchange(HttpRequest("GET", wire.url, quiet=0.05))
    assert (answer.body, answer.cut) == (b"one\n", True)
    assert exchange(HttpRequest("GET", wire.url, quiet=0.05, patience=0.05)).body == b""
    whole = exchange(HttpRequest("GET", wire.url, quiet=0.05))
    assert (whole.body, whole.cut, wire.connections) == (b"{}", False, 3), "what comes later is asked for anew"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_what_may_be_repeated_is_sent_once_more(wire: Wire, exchange: KeptConnection, method: str) -> None:
    wire.script = [OK, b""]
    exchange(HttpRequest("GET", wire.url))
    assert exchange(HttpRequest(method, wire.url)).status == 200
    assert (wire.connections, wire.requests) == (2, ["GET", method, method])


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_what_may_not_be_repeated_is_unreachable(wire: Wire, exchange: KeptConnection, method: str) -> None:
    """An eviction, a Secret: the server may have carried it out. The agent's next round looks."""
    wire.script = [OK, b""]
    exchange(HttpRequest("GET", wire.url))
    with pytest.raises(Unreachable, match=method):
        exchange(HttpRequest(method, wire.url))
    assert wire.requests == ["GET", method]
    assert exchange(HttpRequest(method, wire.url)).status == 200


def test_a_server_that_always_hangs_up_is_asked_twice_at_most(wire: Wire, exchange: KeptConnection) -> None:
    wire.script = [b""] * 9
    with pytest.raises(Unreachable):
        exchange(HttpRequest("GET", wire.url))
    assert len(wire.requests) == 1, "a new connection that fails is no old one"
    wire.script = [OK, b"", b"", b""]
    exchange(HttpRequest("GET", wire.url))
    with pytest.raises(Unreachable):
        exchange(HttpRequest("GET", wire.url))
    assert len(wire.requests) == 4


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}!", "cut off|IncompleteRead"),
        (b"what?\r\n\r\n!", "BadStatusLine"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n" + b"x" * 200, "larger than"),
    ],
)
def test_a_broken_answer_ends_its_connection(
    wire: Wire, exchange: KeptConnection, monkeypatch: pytest.MonkeyPatch, answer: bytes, why: str
) -> None:
    monkeypatch.setattr(transport, "LIMIT", 100)
    wire.script = [answer]
    with pytest.raises(Unreachable, match=why):
        exchange(HttpRequest("GET", wire.url))
    assert exchange(HttpRequest("GET", wire.url)).body == b"{}"
    assert wire.connections == 2


def test_an_answer_may_end_its_connection(wire: Wire, exchange: KeptConnection) -> None:
    wire.script = [b"HTTP/1.1 307 Elsewhere\r\nLocation: http://other.test/\r\nConnection: close\r\n\r\n{}!"]
    assert exchange(HttpRequest("GET", wire.url)).status == 307, "it follows nobody"
    assert exchange(HttpRequest("GET", wire.url)).status == 200
    assert wire.connections == 2


def test_a_slow_answer_and_a_killed_round_leave_no_half_read_connection(wire: Wire) -> None:
    ticks: Callable[[], float] = iter(range(0, 10_000, 15)).__next__
    exchange = KeptConnection(ssl.create_default_context(), timeout=5, monotonic=ticks)
    assert exchange(HttpRequest("GET", wire.url)).status == 200
    slow = KeptConnection(ssl.create_default_context(), timeout=1, monotonic=ticks)
    with pytest.raises(Unreachable, match="too long"):
        slow(HttpRequest("GET", wire.url))
    exchange.close()


def test_errors_name_the_url_without_query_and_headers(exchange: KeptConnection) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for headers in ({"X": "hidden"}, {"X": "hid\nden"}):
        with pytest.raises(Unreachable) as caught:
            exchange(HttpRequest("POST", f"http://127.0.0.1:{port}/token?a=hidden", headers, b"hidden"))
        assert "/token" in str(caught.value)
        assert "hid" not in str(caught.value)


def test_the_clusters_authority_alone_is_trusted(rig: Rig, tmp_path: Path) -> None:
    right, _ = identity(tmp_path, "right"), identity(tmp_path, "wrong")
    url = rig.kube.serve(right)
    accounts = [rig.account]

    def through(name: str) -> tuple[KeptConnection, Kubernetes]:
        connection = KeptConnection(ssl.create_default_context(cafile=str(tmp_path / f"{name}.crt")), timeout=5)
        return connection, Kubernetes(url, connection, lambda: accounts[-1])

    try:
        connection, kube = through("right")
        for _ in range(3):
            assert kube.call("GET", "/version")["gitVersion"] == "v1.34.1"
        # The kubelet renews the token; it is read for each call.
        accounts.append(rig.kube.issue(NAMESPACE, NAME))
        rig.kube.revoke(rig.account)
        assert kube.call("GET", "/version")["gitVersion"] == "v1.34.1"
        connection.close()
        with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
            through("wrong")[1].call("GET", "/version")
    finally:
        rig.kube.close()
