"""The exchange with Stockyard: brings answers, and is given requests and how soon to come again."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ..stockyard_agent.api_calls import ApiCalls
from ..stockyard_agent.transport import Exchange, Unreachable
from . import VERSION

INTERVAL = 60.0
"""Seconds between two exchanges when the answer does not say."""
WANTS = 10
"""How many requests are fetched at once."""


@dataclass(frozen=True, slots=True)
class GivenRequest:
    """A request to carry out, not checked yet. It is begun within ``seconds``, or not at all."""

    id: str
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class SiteAnswer:
    """The answer to a request; with a ``failure`` nothing was answered there."""

    id: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    failure: str | None = None

    def document(self) -> dict[str, Any]:
        """The answer as it is sent."""
        return {
            "id": self.id,
            "status": self.status,
            "headers": dict(self.headers),
            "body": base64.b64encode(self.body).decode(),
            "failure": self.failure,
        }


class SiteApi:
    """``credentials`` returns the client's id and secret, and is called at each renewal of the token."""

    def __init__(
        self,
        *,
        api_url: str,
        site_id: str,
        token_url: str,
        exchange: Exchange,
        credentials: Callable[[], tuple[str, str]],
        monotonic: Callable[[], float],
    ) -> None:
        self._calls = ApiCalls(
            url=f"{api_url}/v1/sites/{quote(site_id, safe='')}",
            token_url=token_url,
            owner="site",
            exchange=exchange,
            credentials=credentials,
            monotonic=monotonic,
        )

    def exchange(self, allowed: Sequence[str], answers: Sequence[SiteAnswer]) -> tuple[list[GivenRequest], float]:
        """Bring the answers. The requests that are given out, and the seconds until the next exchange.

        Raises ``StockyardRefused``, ``Unreachable``.
        """
        documents = [answer.document() for answer in answers]
        body = {"version": VERSION, "allowed": list(allowed), "answers": documents, "wants": WANTS}
        content = self._calls.answer("POST", "exchange", json.dumps(body).encode())
        requests, seconds = content.get("requests"), content.get("interval_seconds")
        if not isinstance(requests, list):
            raise Unreachable("Stockyard's answer has no list of requests")
        interval = float(seconds) if isinstance(seconds, (int, float)) and math.isfinite(seconds) else INTERVAL
        return [_request(item) for item in requests], interval


def _request(item: Any) -> GivenRequest:
    try:
        headers = {str(name): str(value) for name, value in item["headers"].items()}
        body = base64.b64decode(item["body"], validate=True)
        return GivenRequest(
            str(item["id"]), str(item["method"]), str(item["path"]), headers, body, float(item["seconds"])
        )
    except (TypeError, KeyError, ValueError, AttributeError, binascii.Error):
        raise Unreachable("Stockyard's answer has a request that cannot be read") from None
