"""A small Kubernetes API client. Every error status is raised as ``Refused``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from .transport import Exchange, HttpRequest, HttpResponse, Unreachable

T = TypeVar("T")
Object = dict[str, Any]

JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
_TRANSIENT = frozenset({401, 408, 409, 410, 425, 429, 500, 502, 503, 504})
_UNTYPED = "failed to create typed patch object"
_LISTINGS = 3
QUIET_SECONDS = 0.12
"""A watch is over when so long after a change no other has come: a crowd comes faster, and one that is alone need not
wait for a crowd."""
_TEXT = 1000


class Refused(Exception):
    """The API server answered with an error status. ``causes`` maps the reasons in its details to their messages."""

    def __init__(self, status: int, reason: str, message: str, causes: Mapping[str, str]) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason, self.message, self.causes = status, reason, message, causes

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later. 401 counts too: the kubelet renews our token.

        Server-side apply answers 500 for a field that the schema does not have; that never passes.
        """
        return self.status in _TRANSIENT and _UNTYPED not in self.message


class Kubernetes:
    """``base`` is the API's URL. ``token`` is called before each request, because the kubelet renews the token."""

    def __init__(self, base: str, exchange: Exchange, token: Callable[[], str]) -> None:
        self._base, self._exchange, self._token = base, exchange, token
        self.quiet = False
        """Whether the last watch ended because no more changes came."""

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = JSON,
    ) -> Object:
        """The object of the answer. Raises ``Refused`` for anything but 2xx, ``Unreachable``."""
        return self._send(method, path, body, query, content_type).json_object()

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str] | None,
        content_type: str = JSON,
        quiet: float | None = None,
        patience: float | None = None,
    ) -> HttpResponse:
        url = self._base + path + ("?" + urlencode(query) if query else "")
        headers = {"Accept": JSON, "Authorization": "Bearer " + self._token(), "User-Agent": "stockyard-agent"}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body).encode()
        response = self._exchange(HttpRequest(method, url, headers, data, quiet, patience))
        if not 200 <= response.status < 300:
            raise _refused(response)
        return response

    def watch(
        self, path: str, query: Mapping[str, str], seconds: int, patience: float | None = None
    ) -> Iterator[tuple[str, Object]]:
        """Events of a watch within some seconds, or until it becomes quiet: kind and object of each event, in order.
        ``patience``: nothing is waited for beyond so many seconds.

        Raises ``Refused``, also for an event that is an error (410: the server no longer knows what has changed since
        the version asked for), and ``Unreachable``.
        """
        watched = {**query, "watch": "true", "timeoutSeconds": str(seconds)}
        answer = self._send("GET", path, None, watched, quiet=QUIET_SECONDS, patience=patience)
        self.quiet = answer.cut
        for line in filter(None, answer.body.split(b"\n")):
            event = _event(line)
            if event["type"] == "ERROR":
                status = event["object"]
                raise Refused(int(status.get("code") or 500), str(status.get("reason", "")), _message(status), {})
            yield str(event["type"]), event["object"]

    def collect(self, path: str, query: Mapping[str, str], keep: Callable[[Object], T | None], page: int) -> list[T]:
        """Read a list in pages of ``page`` items, and return ``keep(item)`` of each item unless it is None.

        When the continuation token expired (410), the list is read again from the start. Raises ``Refused``,
        ``Unreachable``.
        """
        return self.listed(path, query, keep, page)[0]

    def listed(
        self, path: str, query: Mapping[str, str], keep: Callable[[Object], T | None], page: int
    ) -> tuple[list[T], str]:
        """As ``collect``, and the version of the list: what changes later is watched from there."""
        for _ in range(_LISTINGS - 1):
            try:
                return self._once(path, query, keep, page)
            except Refused as refused:
                if refused.status != 410:
                    raise
        return self._once(path, query, keep, page)

    def _once(
        self, path: str, query: Mapping[str, str], keep: Callable[[Object], T | None], page: int
    ) -> tuple[list[T], str]:
        items: list[T] = []
        following = version = ""
        while True:
            parameters = {**query, "limit": str(page), **({"continue": following} if following else {})}
            answer = self.call("GET", path, query=parameters)
            items.extend(result for item in answer.get("items") or () if (result := keep(item)) is not None)
            meta = answer.get("metadata", {})
            # All pages are of one moment, the first page's.
            version, following = version or str(meta.get("resourceVersion") or ""), str(meta.get("continue") or "")
            if not following:
                return items, version


def path_of(*names: str) -> str:
    """A URL path in the core API group: ``path_of("nodes", "a")`` is ``/api/v1/nodes/a``."""
    return "/api/v1/" + "/".join(quote(name, safe="") for name in names)


def _event(line: bytes) -> Object:
    """A line of a watch. Raises ``Unreachable`` for anything else."""
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict) or not isinstance(event.get("object"), dict) or "type" not in event:
        raise Unreachable("a watch said what is no event")
    return event


def _message(status: Object) -> str:
    return str(status.get("message", ""))[:_TEXT]


def _refused(response: HttpResponse) -> Refused:
    try:
        status = response.json_object()
    except Unreachable:
        status = {}
    details = status.get("details")
    causes = (details.get("causes") if isinstance(details, dict) else None) or ()
    texts = {str(cause.get("reason", "")): str(cause.get("message", "")) for cause in causes if isinstance(cause, dict)}
    return Refused(response.status, str(status.get("reason", "")), _message(status), texts)
