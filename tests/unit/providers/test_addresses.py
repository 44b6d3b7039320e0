"""Addresses that callers name: which of them are called, and that nobody calls one without the guard."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

import stockyard
from stockyard.errors import VendorRefused, VendorUnavailable
from stockyard.providers.addresses import Guard, guard_of
from stockyard.providers.guarded_transport import GuardedTransport

NAMED = "https://host.example.test:6443/api"
FORBIDDEN = (
    *("127.0.0.1", "127.8.8.8", "169.254.169.254", "0.0.0.0", "224.0.0.1", "255.255.255.255"),  # noqa: S104
    *("::1", "::", "fe80::1%eth0", "ff02::1", "::ffff:169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe"),
    *("2002:a9fe:a9fe::1", "fd00:ec2::254", "168.63.129.16", "100.100.100.200", "2001:0:a9fe:a9fe::1"),
    "64:ff9b:1::a9fe:a9fe",
)
PRIVATE = ("10.1.2.3", "172.16.0.1", "192.168.0.1", "100.64.0.1", "fd12:3456::1", "::ffff:10.0.0.1")
CLIENTS = {
    "adapters/documents.py": "hosts of a fixed list",
    "adapters/vdeployer.py": "the operator's setting",
    "adapters/sts_attestor.py": "hosts of AWS alone",
    "providers/clouds/bcm/client.py": "guarded; what a site reaches its own connector knows",
    "providers/clouds/cudo/client.py": "the operator's setting",
    "providers/clouds/cudo/vault.py": "guarded",
    "providers/nodes/terraform/repositories.py": "guarded",
    "providers/kubernetes/client.py": "guarded where a caller names the server; else a cluster's own endpoint",
}
"""Modules of the functions that make HTTP clients, and why each calls nothing that a caller may not name."""


class Host:
    """Host that gives the next of ``failures``, then answers."""

    def __init__(self, *failures: Exception) -> None:
        self.requests: list[httpx.Request] = []
        self._failures = list(failures)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self._failures:
            raise self._failures.pop(0)
        return httpx.Response(307, headers={"Location": "http://169.254.169.254/"})


def call(host: Host, guard: Guard, url: str = NAMED) -> httpx.Response:
    with httpx.Client(transport=GuardedTransport(guard, httpx.MockTransport(host)), follow_redirects=False) as client:
        return client.post(url, content=b"body")


def leading_to(*addresses: str, allow_private: bool = False) -> Guard:
    return Guard(allow_private, resolve=lambda _name, _port: addresses)


def test_the_address_that_was_looked_at_is_called_by_the_hosts_own_name() -> None:
    host = Host()
    assert call(host, leading_to("2001:db8::5")).status_code == 307
    (request,) = host.requests  # a redirection is not followed
    assert (request.url.host, request.url.port, request.content) == ("2001:db8::5", 6443, b"body")
    assert request.headers["Host"] == "host.example.test:6443"
    assert request.extensions["sni_hostname"] == "host.example.test"


def test_nothing_of_the_calling_machine_or_of_its_network_is_called() -> None:
    host = Host()
    for address in FORBIDDEN:
        for addresses in ([address], ["192.0.2.10", address]):
            with pytest.raises(VendorRefused, match="nobody outside may choose") as refusal:
                call(host, leading_to(*addresses, allow_private=True))
            assert address not in refusal.value.detail, "what a name leads to within our network is not told"
    assert host.requests == []


def test_private_addresses_are_called_where_the_stage_says_so() -> None:
    host = Host()
    for address in PRIVATE:
        with pytest.raises(VendorRefused, match="this stage calls none") as refusal:
            call(host, leading_to("192.0.2.10", address))
        assert address not in str(refusal.value)
    assert host.requests == []
    for address in PRIVATE:
        call(host, leading_to(address, allow_private=True))
    assert len(host.requests) == len(PRIVATE)


def test_a_name_that_leads_elsewhere_at_the_second_look_is_called_where_it_was_looked_at() -> None:
    looks = iter((["192.0.2.10"], ["169.254.169.254"], ["192.0.2.11"], ["10.0.0.1"]))
    host, guard = Host(), Guard(resolve=lambda _name, _port: next(looks))
    for _ in range(2):
        call(host, guard)
        with pytest.raises(VendorRefused):
            call(host, guard)
    assert [request.url.host for request in host.requests] == ["192.0.2.10", "192.0.2.11"]


def test_the_systems_own_look_up_is_checked() -> None:
    host = Host()
    for name in ("127.0.0.1", "2130706433", "localhost:8200", "[::1]"):
        with pytest.raises(VendorRefused, match="nobody outside may choose"):
            call(host, Guard(), f"https://{name}/")
    with pytest.raises(VendorRefused, match="https"):
        call(host, leading_to("192.0.2.10"), "http://host.example.test/")
    assert host.requests == []


def test_a_name_that_leads_nowhere_is_asked_again_later() -> None:
    def nowhere(_name: str, _port: int) -> Sequence[str]:
        raise OSError

    for guard, url in (
        (Guard(resolve=nowhere), NAMED),
        (leading_to(), NAMED),
        (Guard(), "https://a..test"),
        (Guard(), f"https://{'a' * 64}.test"),
    ):
        with pytest.raises((VendorUnavailable, httpx.InvalidURL)):
            call(Host(), guard, url)


def test_the_next_address_is_tried_where_one_cannot_be_reached() -> None:
    host = Host(httpx.ConnectError("refused"), httpx.ConnectTimeout("slow"))
    call(host, leading_to("2001:db8::5", "192.0.2.10", "192.0.2.11"))
    assert [request.url.host for request in host.requests] == ["2001:db8::5", "192.0.2.10", "192.0.2.11"]
    host = Host(*(httpx.ConnectError("refused") for _ in range(9)))
    with pytest.raises(httpx.ConnectError):
        call(host, leading_to(*(f"192.0.2.{number}" for number in range(9))))
    assert len(host.requests) == 3


def test_only_the_stand_ins_of_a_local_cloud_are_on_this_machine() -> None:
    guard = guard_of(SimpleNamespace(allow_private_addresses=False, stand_in_hosts="127.0.0.1:6443,[::1]:6443"))
    host = Host()
    for name in ("127.0.0.1:6443", "[::1]:6443"):
        call(host, guard, f"https://{name}/")
    assert [request.url.host for request in host.requests] == ["127.0.0.1", "::1"]
    for name in ("127.0.0.1:6444", "127.0.0.2:6443", "localhost:6443"):
        with pytest.raises(VendorRefused):
            call(host, guard, f"https://{name}/")


def test_every_module_that_makes_an_http_client_says_whom_it_calls() -> None:
    root = Path(stockyard.__file__).parent
    makers = set()
    for path in root.rglob("*.py"):
        if "machines" in path.relative_to(root).parts[:1]:
            continue  # programs of machines, in the networks of their owners
        names = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        if names & {"HTTPTransport", "HTTPSConnection", "urlopen"} or "httpx.Client(" in path.read_text():
            makers.add(str(path.relative_to(root)))
    assert makers == CLIENTS.keys()
