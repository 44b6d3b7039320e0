"""The way to Stockyard: a token of the cluster's own client, and the post that is answered with commands."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from . import VERSION
from .transport import Exchange, Outgoing, Reply, Unreachable

INTERVAL = 15.0
"""Seconds between two posts when the answer does not say."""
_GZIP_ABOVE = 1024
_MARGIN = 60.0
_TEXT = 300


class UplinkRefused(Exception):
    """Stockyard or the identity server said no. ``retry_after`` in seconds, 0 when unknown."""

    def __init__(self, message: str, status: int, retry_after: float) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


@dataclass(frozen=True, slots=True)
class Answer:
    """``commands`` as they came; ``interval`` in seconds."""

    commands: list[Any]
    interval: float


class Uplink:
    """``credentials`` gives the client's id and secret at each renewal, so that a changed secret is taken up."""

    def __init__(
        self,
        *,
        api_url: str,
        cluster_id: str,
        token_url: str,
        exchange: Exchange,
        credentials: Callable[[], tuple[str, str]],
        monotonic: Callable[[], float],
    ) -> None:
        self._url = f"{api_url}/v1/clusters/{quote(cluster_id, safe='')}/observations"
        self._token_url = token_url
        self._exchange, self._credentials, self._monotonic = exchange, credentials, monotonic
        self._token, self._good_until = "", 0.0

    def post(self, body: bytes) -> Answer:
        """Send an observation; a token that is refused is renewed once. Raises ``UplinkRefused``, ``Unreachable``."""
        reply = self._send(body)
        if reply.status == 401:
            self._token = ""
            reply = self._send(body)
        if not 200 <= reply.status < 300:
            raise UplinkRefused(f"Stockyard answered {reply.status}{_detail(reply)}", reply.status, reply.retry_after)
        found = _json(reply)
        commands, interval = found.get("commands"), found.get("interval_seconds", INTERVAL)
        if not isinstance(commands, list):
            raise Unreachable("Stockyard's answer has no list of commands")
        known = isinstance(interval, (int, float)) and math.isfinite(interval)
        return Answer(commands, float(interval) if known else INTERVAL)

    def _send(self, body: bytes) -> Reply:
        headers = {
            "Accept": "application/json",
            "Authorization": "Bearer " + self._bearer(),
            "Content-Type": "application/json",
            "User-Agent": "stockyard-agent/" + VERSION,
        }
        if len(body) > _GZIP_ABOVE:
            # By its type and not as an encoding: what carries the request must not take the bytes for text.
            headers["Content-Type"] = "application/gzip"
            body = gzip.compress(body, mtime=0)
        return self._exchange(Outgoing("POST", self._url, headers, body))

    def _bearer(self) -> str:
        if self._token and self._monotonic() < self._good_until:
            return self._token
        client_id, client_secret = self._credentials()
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        asked = self._monotonic()
        reply = self._exchange(Outgoing("POST", self._token_url, headers, urlencode(form).encode()))
        if reply.status != 200:
            text = f"The identity server answered {reply.status} to the cluster's client"
            raise UplinkRefused(text, reply.status, reply.retry_after)
        found = _json(reply)
        token, seconds = found.get("access_token"), found.get("expires_in")
        if not isinstance(token, str) or not token or not isinstance(seconds, (int, float)):
            raise Unreachable("the identity server's answer has no access_token with expires_in")
        self._token, self._good_until = token, asked + seconds - min(_MARGIN, seconds / 4)
        return token


def _json(reply: Reply) -> Mapping[str, Any]:
    try:
        found = json.loads(reply.body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unreachable(f"the answer ({reply.status}) is no JSON object")
    return found


def _detail(reply: Reply) -> str:
    """What a problem document says, cut."""
    try:
        found = _json(reply)
    except Unreachable:
        return ""
    text = found.get("detail") or found.get("title") or found.get("message")
    return f": {str(text)[:_TEXT]}" if text else ""
