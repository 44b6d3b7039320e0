"""Says which instance signed an ``sts:GetCallerIdentity`` request (``ports.MachineAttestor``), by sending it to STS.

A machine has no token yet, but AWS keys: it signs a request that it could send itself and hands it to us. The request
must cover our host's name in a signed header, so that a request signed for someone else is of no use here. What is
sent is rebuilt from checked parts, to a host from a fixed pattern: a caller cannot make us call anything else.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from stockyard.errors import Unauthorized, VendorTimeout, VendorUnavailable
from stockyard.ports import MachineIdentity

HOST_HEADER = "x-stockyard-host"

_STS_HOST = re.compile(r"sts(\.[a-z]{2}(-[a-z]+)+-\d)?\.amazonaws\.com")
_ASSUMED_ROLE = re.compile(
    r"arn:[a-z-]+:sts::(?P<account>\d{12}):assumed-role/(?P<role>[\w+=,.@-]+)/(?P<session>[\w+=,.@-]+)", re.ASCII
)
_VERSION = "2011-06-15"
_ACTION = {"Action": "GetCallerIdentity", "Version": _VERSION}
_SIGNING = frozenset(
    "X-Amz-" + word
    for word in ("Algorithm", "Credential", "Date", "Expires", "SignedHeaders", "Signature", "Security-Token")
)
_FORWARDED = frozenset(
    {"authorization", "content-type", "host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token", HOST_HEADER}
)
_LIMIT = 16 * 1024
_WINDOW = timedelta(minutes=15)
_SECONDS = 5.0
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=[\w/+.-]+, ?SignedHeaders=([a-z0-9;-]+), ?Signature=[0-9a-f]{64}", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP call that passed the checks. ``url`` is where it goes; ``headers`` have lower-case names."""

    method: str
    url: SplitResult
    headers: Mapping[str, str]
    body: bytes


Send = Callable[[Call], tuple[int, bytes]]


class StsAttestor:
    """``ports.MachineAttestor`` for requests signed for ``host``: our API's name, with its port if it has one.

    With ``endpoint`` (the local cloud's) every call goes there instead, whatever host it was signed for.
    """

    def __init__(
        self,
        host: str,
        *,
        endpoint: str | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        send: Send | None = None,
    ) -> None:
        self._host = host.lower()
        self._endpoint = urlsplit(endpoint) if endpoint else None
        self._now = now
        self._send = send or _send

    def caller(self, request: Mapping[str, Any]) -> MachineIdentity:
        """The instance behind the request. ``Unauthorized`` unless it is for STS, signs our host, is accepted, and its
        keys are those of an instance's role.

        ``VendorUnavailable`` or ``VendorTimeout`` when STS itself fails, so that the machine tries again.
        """
        method, url, body = request.get("method"), request.get("url"), request.get("body") or ""
        headers = _headers(request.get("headers"))
        _require(isinstance(url, str) and isinstance(body, str) and len(url) + len(body) <= _LIMIT)
        _require(method in {"GET", "POST"})
        target = self._target(str(url))
        query = _pairs(target.query)
        signed = _signed_headers(query, headers, method=str(method), body=str(body))
        _require(HOST_HEADER in signed and "host" in signed and signed <= _FORWARDED)
        _require(headers.get(HOST_HEADER, "").lower() == self._host)
        self._check_date(query.get("X-Amz-Date") or headers.get("x-amz-date", ""))
        forwarded_headers = {name: headers[name] for name in _FORWARDED if name in headers}
        forwarded_headers["host"] = target.netloc
        return self._ask(Call(str(method), target, forwarded_headers, str(body).encode()))

    def _target(self, text: str) -> SplitResult:
        _require(text.isascii() and text.isprintable() and " " not in text and "\\" not in text)
        try:
            url = urlsplit(text)
            port = url.port
        except ValueError:
            raise _refusal() from None
        _require(url.path in {"", "/"} and not url.fragment and "@" not in url.netloc)
        local = self._endpoint
        if local is not None and url.scheme == local.scheme and url.netloc == local.netloc:
            return url
        _require(url.scheme == "https" and port in {None, 443} and _STS_HOST.fullmatch(url.hostname or "") is not None)
        _require(url.netloc.removesuffix(":443") == url.hostname)
        return url

    def _check_date(self, stamp: str) -> None:
        try:
            moment = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError:
            raise _refusal() from None
        _require(abs(self._now() - moment) <= _WINDOW)

    def _ask(self, call: Call) -> MachineIdentity:
        if self._endpoint is not None:
            here = call.url._replace(scheme=self._endpoint.scheme, netloc=self._endpoint.netloc)
            call = Call(call.method, here, call.headers, call.body)
        try:
            status, answer = self._send(call)
        except TimeoutError as error:
            raise VendorTimeout("STS did not answer in time") from error
        except (OSError, http.client.HTTPException) as error:
            raise VendorUnavailable("STS cannot be reached") from error
        if status >= 500 or status == 429:
            raise VendorUnavailable(f"STS answered {status}", code=str(status))
        _require(status == 200)
        return _identity(answer)


def _refusal() -> Unauthorized:
    # One text for every reason: the caller is not known, and learns nothing about what to try next.
    return Unauthorized("the proof of identity is not accepted")


def _require(holds: bool) -> None:
    if not holds:
        raise _refusal()


def _headers(headers: object) -> dict[str, str]:
    """Header values by lower-case name; a list is taken only when it has one value."""
    _require(isinstance(headers, Mapping))
    values: dict[str, str] = {}
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        single = value[0] if isinstance(value, list) and len(value) == 1 else value
        _require(isinstance(name, str) and isinstance(single, str))
        _require(single.isascii() and single.isprintable() and name.lower() not in values)
        values[name.lower()] = single.strip()
    return values


def _pairs(text: str) -> dict[str, str]:
    """A query or form as a dictionary; a name that comes twice is refused, so that no two readers can differ."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=20)
    except ValueError:
        raise _refusal() from None
    by_name = dict(pairs)
    _require(len(by_name) == len(pairs))
    return by_name


def _signed_headers(query: Mapping[str, str], headers: Mapping[str, str], *, method: str, body: str) -> frozenset[str]:
    """The names of the headers that the signature covers, after checking that the action is the only one allowed."""
    if "X-Amz-Signature" in query:
        _require(method == "GET" and not body and "authorization" not in headers)
        _require({name: value for name, value in query.items() if name not in _SIGNING} == _ACTION)
        return frozenset(query.get("X-Amz-SignedHeaders", "").split(";"))
    _require((query if method == "GET" else _pairs(body)) == _ACTION)
    _require(not body if method == "GET" else not query)
    parts = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    if parts is None:
        raise _refusal()
    return frozenset(parts[1].split(";"))


def _send(call: Call) -> tuple[int, bytes]:
    """Status and body. No proxy, no redirect, no more than 64 KiB."""
    kind = http.client.HTTPSConnection if call.url.scheme == "https" else http.client.HTTPConnection
    connection = kind(call.url.netloc, timeout=_SECONDS)
    try:
        target = f"/?{call.url.query}" if call.url.query else "/"
        connection.request(call.method, target, body=call.body or None, headers=dict(call.headers))
        answer = connection.getresponse()
        return answer.status, answer.read(64 * 1024)
    finally:
        connection.close()


def _identity(answer: bytes) -> MachineIdentity:
    """The instance out of STS's answer. No XML parser: there is nothing to expand, and each element must come once.

    EC2 names the session of an instance's role after the instance.
    """
    text = answer.decode("utf-8", "replace")
    elements = {name: re.findall(rf"<{name}>\s*([!-;=-~]{{1,2048}})\s*</{name}>", text) for name in ("Arn", "Account")}
    _require(all(len(values) == 1 for values in elements.values()))
    role = _ASSUMED_ROLE.fullmatch(elements["Arn"][0])
    if role is None or role["account"] != elements["Account"][0]:
        raise _refusal()
    return MachineIdentity(role["account"], role["role"], role["session"])
