"""The few calls of the Kubernetes API that the agent makes, and its refusals as one type."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from .transport import Exchange, Outgoing, Reply, Unreachable

T = TypeVar("T")
Object = dict[str, Any]

JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
_PASSING = frozenset({401, 408, 409, 410, 425, 429, 500, 502, 503, 504})
_LISTINGS = 3
_TEXT = 1000


class Refused(Exception):
    """The API said no. ``causes`` are the reasons in the details of its status."""

    def __init__(self, status: int, reason: str, message: str, causes: Mapping[str, str]) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason, self.message, self.causes = status, reason, message, causes

    @property
    def passing(self) -> bool:
        """Whether the same request may be allowed later. 401: our token is being renewed."""
        return self.status in _PASSING


class Kubernetes:
    """``base`` is the API's URL; ``token`` is asked for each call, because the kubelet renews it."""

    def __init__(self, base: str, exchange: Exchange, token: Callable[[], str]) -> None:
        self._base, self._exchange, self._token = base, exchange, token

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
        url = self._base + path + ("?" + urlencode(query) if query else "")
        headers = {"Accept": JSON, "Authorization": "Bearer " + self._token(), "User-Agent": "stockyard-agent"}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body).encode()
        reply = self._exchange(Outgoing(method, url, headers, data))
        if not 200 <= reply.status < 300:
            raise _refused(reply)
        return _object(reply)

    def collect(self, path: str, query: Mapping[str, str], keep: Callable[[Object], T | None], page: int) -> list[T]:
        """What ``keep`` makes of each item of a list, read ``page`` items at a time, without its ``None``.

        A list whose continuation has expired (410) is begun again. Raises ``Refused``, ``Unreachable``.
        """
        for _ in range(_LISTINGS - 1):
            try:
                return self._once(path, query, keep, page)
            except Refused as refused:
                if refused.status != 410:
                    raise
        return self._once(path, query, keep, page)

    def _once(self, path: str, query: Mapping[str, str], keep: Callable[[Object], T | None], page: int) -> list[T]:
        found: list[T] = []
        following = ""
        while True:
            asked = {**query, "limit": str(page), **({"continue": following} if following else {})}
            answer = self.call("GET", path, query=asked)
            found.extend(kept for item in answer.get("items") or () if (kept := keep(item)) is not None)
            following = str(answer.get("metadata", {}).get("continue") or "")
            if not following:
                return found


def path_of(*names: str) -> str:
    """A path of the core group: ``path_of("nodes", "a")`` is ``/api/v1/nodes/a``."""
    return "/api/v1/" + "/".join(quote(name, safe="") for name in names)


def _object(reply: Reply) -> Object:
    try:
        found = json.loads(reply.body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unreachable(f"the answer ({reply.status}) is no JSON object")
    return found


def _refused(reply: Reply) -> Refused:
    try:
        status = _object(reply)
    except Unreachable:
        status = {}
    details = status.get("details")
    causes = (details.get("causes") if isinstance(details, dict) else None) or ()
    found = {str(one.get("reason", "")): str(one.get("message", "")) for one in causes if isinstance(one, dict)}
    return Refused(reply.status, str(status.get("reason", "")), str(status.get("message", ""))[:_TEXT], found)
