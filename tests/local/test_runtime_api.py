"""The Runtime API gives each invocation to a request of the worker that the worker still waits for."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from local.functions.invocation import Invocation
from local.functions.runtime_api import PREFIX, Request, RuntimeApi

SECONDS = 10.0


@pytest.fixture
def api() -> Iterator[RuntimeApi]:
    runtime_api = RuntimeApi()
    yield runtime_api
    runtime_api.close()


def ask(api: RuntimeApi) -> socket.socket:
    """A worker's request for its next invocation, which the server has read."""
    host, _, port = api.address.partition(":")
    connection = socket.create_connection((host, int(port)), timeout=SECONDS)
    before = api._asked
    connection.sendall(f"GET {PREFIX}invocation/next HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    end = time.monotonic() + SECONDS
    while api._asked == before:
        assert time.monotonic() < end, "the server has not read the request"
        time.sleep(0.005)
    return connection


def invocation(text: str) -> Request:
    return Request(text.encode(), "arn", time.time() + SECONDS)


def received(connection: socket.socket, text: str) -> bool:
    """Whether the connection gives that payload; False when it is closed without one."""
    answer = b""
    with suppress(ConnectionResetError):
        while not answer.endswith(text.encode()):
            part = connection.recv(4096)
            if not part:
                return False
            answer += part
    return answer.endswith(text.encode())


@pytest.mark.parametrize("broken", [1, 3])
def test_an_invocation_goes_to_the_newest_request_of_the_worker(api: RuntimeApi, broken: int) -> None:
    """Connections that broke while a function was idle once took its next invocation: it had no answer, a 503."""
    for _ in range(broken):
        ask(api).close()
    with ask(api) as connection:
        api.enqueue(invocation("one"))
        assert received(connection, "one")


def test_a_former_request_is_ended_without_an_invocation(api: RuntimeApi) -> None:
    with ask(api) as former, ask(api) as connection:
        assert not received(former, "one")
        api.enqueue(invocation("one"))
        assert received(connection, "one")


def test_an_invocation_waits_for_a_worker_whose_connection_broke(api: RuntimeApi) -> None:
    ask(api).close()
    request = invocation("one")
    api.enqueue(request)
    time.sleep(0.1)  # the server meets the broken connection
    with ask(api) as connection:
        assert received(connection, "one")
        assert api.answered(request.id, Invocation(b"2"))
    assert request.answer == Invocation(b"2")


def test_a_worker_that_asks_after_the_invocation_has_come_gets_it_once(api: RuntimeApi) -> None:
    api.enqueue(invocation("one"))
    with ask(api) as connection:
        assert received(connection, "one")
        with ask(api) as again:
            again.settimeout(0.2)
            with pytest.raises(TimeoutError):
                received(again, "one")
