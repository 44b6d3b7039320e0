"""The allow-list: what a line lets through, and everything else that must never leave the connector."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from agent.stockyard_agent.transport import HttpRequest, HttpResponse, Unreachable
from agent.stockyard_site.allowed import AllowList, BadList, NotAllowed, read
from agent.stockyard_site.site_api import GivenRequest
from agent.stockyard_site.target import Target

TEXT = """
# machines are ConfigMaps of one namespace
GET /version
GET /api/v1/namespaces/machines/configmaps?labelSelector,limit,continue
GET,PATCH,DELETE /api/v1/namespaces/machines/configmaps/*?fieldManager,force,dryRun
"""
LIST = read(TEXT)
CANARY = "canary-of-the-host"


def allowed(method: str, target: str, headers: Mapping[str, str] | None = None) -> bool:
    try:
        LIST.check(method, target, headers or {})
    except NotAllowed:
        return False
    return True


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/version"),
        ("GET", "/api/v1/namespaces/machines/configmaps?labelSelector=a%3Db&limit=500"),
        ("PATCH", "/api/v1/namespaces/machines/configmaps/node-1?fieldManager=stockyard&force=true"),
        ("DELETE", "/api/v1/namespaces/machines/configmaps/node-1"),
    ],
)
def test_a_line_lets_its_own_through(method: str, target: str):
    assert allowed(method, target, {"accept": "application/json", "content-type": "application/apply-patch+yaml"})


NODE = "/api/v1/namespaces/machines/configmaps/node-1"


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/namespaces/machines/configmaps/../secrets",
        "/api/v1/namespaces/machines/configmaps/%2e%2e",
        "/api/v1/namespaces/machines/configmaps/..",
        "/api/v1/namespaces/machines/configmaps/.",
        "/api/v1/namespaces/machines/configmaps/",
        "/api/v1/namespaces/machines//configmaps/node-1",
        "//api/v1/namespaces/machines/configmaps/node-1",
        "/api/v1/namespaces/machines/configmaps/node-1/",
        "/api/v1/namespaces/machines/configmaps/node-1;x",
        "/api/v1/namespaces/machines/configmaps/a%2Fb",
        "/api/v1/namespaces/machines/configmaps/a\\b",
        "/api/v1/namespaces/machines/configmaps/node-1/exec",
        "/api/v1/namespaces/other/configmaps/node-1",
        f"{NODE}#x",
        f"{NODE}?watch=true",
        f"{NODE}?force=true&force=false",
        f"{NODE}?force",
        f"{NODE}?force=true;dryRun=All",
        f"{NODE}?force=%0d%0aX",
        f"{NODE}?",
        f"https://other{NODE}",
        f"//other{NODE}",
        f"other{NODE}",
        "",
        "*",
        f"{NODE} HTTP/1.1\r\nHost: other",
        f"{NODE}\n",
        "/version\x00",
        "/versio\u006e\u0301",
        "/\uff0e\uff0e/version",
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(target: str):
    assert not allowed("GET", target)


@pytest.mark.parametrize("method", ["POST", "PUT", "OPTIONS", "CONNECT", "TRACE", "get", "GET ", "", "HEAD"])
def test_other_methods_are_refused(method: str):
    assert not allowed(method, NODE)


@pytest.mark.parametrize(
    "headers",
    [
        {"upgrade": "SPDY/3.1"},
        {"connection": "Upgrade"},
        {"authorization": "Bearer x"},
        {"impersonate-user": "admin"},
        {"x-remote-user": "admin"},
        {"host": "other"},
        {"content-type": "text/plain\r\nHost: other"},
        {"accept": "a\x00"},
        {"Accept": "text/plain"},
        {"transfer-encoding": "chunked"},
        {"cookie": "a=b"},
    ],
)
def test_other_headers_are_refused(headers: Mapping[str, str]):
    assert not allowed("GET", NODE, headers)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("GET", "line 1"),
        ("\nFETCH /a", "line 2: methods"),
        ("GET a", "line 1"),
        ("GET /a/../b", "line 1"),
        ("GET /a*", "a whole part"),
        ("GET /a?b=c", "query keys"),
        ("GET /a b", "line 1"),
    ],
)
def test_a_line_that_cannot_be_read_names_itself(text: str, fault: str):
    with pytest.raises(BadList, match=fault):
        read(text)


def test_without_a_line_nothing_is_carried_out():
    with pytest.raises(NotAllowed):
        read("# nothing yet\n").check("GET", "/version", {})


class Host:
    """Keeps what reached it."""

    def __init__(self, answer: HttpResponse | None = None) -> None:
        self.arrivals: list[HttpRequest] = []
        self.answer = answer or HttpResponse(200, {"content-type": "text/plain", "set-cookie": "x"}, b"ok")

    def __call__(self, request: HttpRequest) -> HttpResponse:
        self.arrivals.append(request)
        return self.answer


def target_of(host: Callable[[HttpRequest], HttpResponse], allow_list: AllowList = LIST) -> Target:
    return Target("https://host:6443", host, lambda: CANARY, lambda: allow_list)


def request(method: str = "GET", target: str = NODE, headers: dict[str, str] | None = None) -> GivenRequest:
    return GivenRequest("id", method, target, headers or {}, b"", 10.0)


def test_the_credential_is_added_here_and_a_refusal_says_whose_it_is():
    host = Host()
    answer = target_of(host).carry_out(request())
    (arrival,) = host.arrivals
    assert (arrival.url, arrival.headers["Authorization"]) == (f"https://host:6443{NODE}", f"Bearer {CANARY}")
    assert (answer.status, answer.headers, answer.body) == (200, {"content-type": "text/plain"}, b"ok")
    refusal = target_of(host).carry_out(request("POST"))
    assert (refusal.status, b"the site's connector refused: the allow-list has no POST" in refusal.body) == (403, True)
    assert refusal.headers["stockyard-site"] == "refused"
    assert len(host.arrivals) == 1
    forging = Host(HttpResponse(200, {"stockyard-site": "refused"}, b""))
    assert target_of(forging).carry_out(request()).headers == {}


def test_redirects_are_not_followed_and_a_host_that_is_away_is_a_failure():
    redirect = Host(HttpResponse(302, {"location": "https://other"}, b""))
    assert "redirect" in str(target_of(redirect).carry_out(request()).failure)

    def away(_: HttpRequest) -> HttpResponse:
        raise Unreachable("GET host: timed out")

    assert "does not answer" in str(target_of(away).carry_out(request()).failure)

    def no_token() -> str:
        raise OSError(f"{CANARY} cannot be read")

    failure = Target("https://host", redirect, no_token, lambda: LIST).carry_out(request()).failure
    assert "OSError" in str(failure)
    assert CANARY not in str(failure)


PIECES = (
    *("api", "v1", "namespaces", "machines", "configmaps", "node-1", "secrets", "version", "pods", "exec", "proxy"),
    *("", ".", "..", "%2e%2e", "%2E", "%2f", "%252e", ";", ";a=b", "\\", "a\\b", "*", "~", "a b", "\t", "\r\n", "\x00"),
    *("\u2024\u2024", "\uff0f", "https:", "host", "other", "user@host", "a" * 300, "?", "#", "&", "="),
)
KEYS = ("labelSelector", "limit", "force", "watch", "fieldManager", "dryRun", "as", "")
METHODS = ("GET", "PATCH", "DELETE", "POST", "PUT", "HEAD", "CONNECT", "OPTIONS", "get", "GET\r\n", "PATCH ")
NAMES = ("accept", "content-type", "upgrade", "host", "authorization", "impersonate-user", "connection", "Accept")


def fuzzed(chance: random.Random) -> GivenRequest:
    """A request that is near to an allowed one, and wrong in some way or none."""
    base = chance.choice((NODE, "/version", NODE.rpartition("/")[0])).split("/")
    for _ in range(chance.choice((0, 0, 0, 1, 1, 2, 4))):
        index = chance.randrange(len(base))
        base[index : index + chance.choice((0, 1))] = [chance.choice(PIECES)]
    target = "/".join(base)
    if chance.random() < 0.25:
        parts = [f"{chance.choice(KEYS)}={chance.choice(PIECES)}" for _ in range(chance.choice((1, 1, 2, 3)))]
        target += "?" + chance.choice(("&", ";")).join(parts)
    if chance.random() < 0.05:
        target = chance.choice(("https://other", "//other", "other", "http://host:6443@other", "\n")) + target
    count = chance.choice((0, 0, 0, 1, 2))
    headers = {chance.choice(NAMES): chance.choice(("application/json", *PIECES)) for _ in range(count)}
    method = chance.choice(METHODS[:3] if chance.random() < 0.8 else METHODS)
    return GivenRequest("id", method, target, headers, b"", 1.0)


def is_inside(arrival: HttpRequest) -> bool:
    """A second reading of ``TEXT``, by another way: of the URL as a server reads it."""
    parts = urlsplit(arrival.url)
    if (parts.scheme, parts.netloc, parts.fragment) != ("https", "host:6443", "") or unquote(parts.path) != parts.path:
        return False
    keys = {part.partition("=")[0] for part in parts.query.split("&")} if parts.query else set()
    items = "/api/v1/namespaces/machines/configmaps"
    name = parts.path.removeprefix(f"{items}/")
    if parts.path == "/version":
        fits, methods, more = True, {"GET"}, set[str]()
    elif parts.path == items:
        fits, methods, more = True, {"GET"}, {"labelSelector", "limit", "continue"}
    else:
        plain = name.isascii() and name.replace("-", "").replace(".", "").replace("_", "").replace("~", "").isalnum()
        colon = ":" in name
        fits = parts.path.startswith(f"{items}/") and (plain or colon) and name not in (".", "..") and "/" not in name
        methods, more = {"GET", "PATCH", "DELETE"}, {"fieldManager", "force", "dryRun"}
    headers = {name.lower() for name in arrival.headers}
    plain_headers = headers <= {"accept", "content-type", "authorization", "accept-encoding", "user-agent"}
    return fits and arrival.method in methods and keys <= more and plain_headers and arrival.url.isprintable()


def test_nothing_outside_the_list_is_carried_out(soaking: bool, seed: int, record_property: Any):
    chance, host = random.Random(seed), Host()
    target, count = target_of(host), 10_000 if soaking else 500
    refusals = 0
    for _ in range(count):
        before = len(host.arrivals)
        answer = target.carry_out(fuzzed(chance))
        refusals += answer.status == 403
        assert (len(host.arrivals) == before) == (answer.status == 403)
    outside = [arrival for arrival in host.arrivals if not is_inside(arrival)]
    assert outside == []
    assert len(host.arrivals) > count / 20
    record_property("figure:site_fuzz", {"requests": count, "carried_out": len(host.arrivals), "outside": 0})


CALLS = read(
    "GET /api\n"
    "POST /json service=cmdevice call=getNode,getDevices\n"
    "POST /json service=cmdevice call=powerOperation args.0.devices.*=a-1,a-2\n"
)
PLAIN = {"content-type": "application/json"}


def carried(body: bytes | str, headers: Mapping[str, str] = PLAIN) -> bool:
    try:
        CALLS.check("POST", "/json", headers, body.encode() if isinstance(body, str) else body)
    except NotAllowed:
        return False
    return True


@pytest.mark.parametrize(
    "body",
    [
        '{"service": "cmdevice", "call": "getNode", "args": ["x"]}',
        '{"call": "powerOperation", "service": "cmdevice", "args": [{"devices": ["a-2", "a-1"], "operation": "ON"}]}',
    ],
)
def test_a_line_with_fields_lets_such_bodies_through(body: str) -> None:
    assert carried(body)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        '"getNode"',
        '{"service": "cmdevice"}',
        '{"service": "cmmain", "call": "getNode"}',
        '{"service": "cmdevice", "call": ["getNode"]}',
        '{"service": "cmdevice", "call": "getNode", "call": "removeDevice"}',
        '{"service": "cmdevice", "call": "getNode", "Call": "removeDevice"}',
        '{"service": "cmdevice", "call": "getNode", "args": [{"a": 1, "a": 2}]}',
        '{"service": "cmdevice", "call": "getNode", "args": [NaN]}',
        '{"service": "cmdevice", "call": "getNode"} {"call": "removeDevice"}',
        b'\xff\xfe{"service": "cmdevice", "call": "getNode"}',
        '{"service": "cmdevice", "call": "powerOperation", "args": [{"devices": ["a-1", "b-1"]}]}',
        '{"service": "cmdevice", "call": "powerOperation", "args": [{"devices": []}]}',
        '{"service": "cmdevice", "call": "powerOperation", "args": [{"devices": "all"}]}',
        '{"service": "cmdevice", "call": "powerOperation", "args": []}',
        "[" * 100_000,
    ],
)
def test_no_other_body_is_carried_out(body: bytes | str) -> None:
    assert not carried(body)


def test_a_body_that_says_another_type_is_not_read() -> None:
    assert not carried('{"service": "cmdevice", "call": "getNode"}', {"content-type": "text/plain"})
    assert not carried('{"service": "cmdevice", "call": "getNode"}', {})


@pytest.mark.parametrize("line", ["POST /json call", "POST /json =a", "POST /json call=a b", "POST /json call=a,,b"])
def test_a_field_that_cannot_be_read_is_named(line: str) -> None:
    with pytest.raises(BadList, match="line 1"):
        read(line)
