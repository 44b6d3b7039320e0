"""Calls to Stockyard: gets an access token of the cluster's own client, posts observations and receives commands."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard
from urllib.parse import quote, urlencode

from .api_calls import ApiCalls
from .transport import Exchange, Unreachable

INTERVAL = 15.0
"""Seconds between two posts when the answer has no interval."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a post: ``commands``, not yet validated, and ``interval`` in seconds. ``mirror`` is the version of
    what is to be mirrored: empty for nothing, None when Stockyard does not say. ``pods_interval``: how soon it wants to
    hear what pods moved, in seconds; None when it does not say."""

    commands: list[Any]
    interval: float
    mirror: str | None = None
    pods_interval: float | None = None
    kubeconfig_secrets: bool = False
    """Whether there are Secrets with kubeconfigs to keep or to remove."""
    overlay: dict[str, Any] | None = None
    """The list of the overlay's machines, not yet validated, where another one was written; else None."""


@dataclass(frozen=True, slots=True)
class SecretsAnswer:
    """Secrets with kubeconfigs that are to be written, places of those that are to be removed, not yet validated, and
    how soon to come again, in seconds."""

    secrets: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    interval: float


@dataclass(frozen=True, slots=True)
class PodsAnswer:
    """The answer to a report of pods: the ``sequence`` of the report that Stockyard has, whether it needs all of it,
    and how soon to come again when nothing changes, in seconds."""

    sequence: int
    resync: bool
    interval: float


class StockyardApi:
    """``credentials`` returns the client's id and secret. It is called at each renewal, so that it may change."""

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
        self._calls = ApiCalls(
            url=f"{api_url}/v1/clusters/{quote(cluster_id, safe='')}",
            token_url=token_url,
            owner="cluster",
            exchange=exchange,
            credentials=credentials,
            monotonic=monotonic,
        )

    def post(self, body: bytes) -> Answer:
        """Send an observation. A rejected token is renewed once. Raises ``StockyardRefused``, ``Unreachable``."""
        content = self._calls.answer("POST", "observations", body)
        commands = content.get("commands")
        if not isinstance(commands, list):
            raise Unreachable("Stockyard's answer has no list of commands")
        mirror = content.get("mirror")
        pods = _seconds(content, "pods_interval_seconds")
        secrets = content.get("kubeconfig_secrets") is True
        overlay = content.get("overlay")
        return Answer(
            commands,
            _interval(content),
            mirror if isinstance(mirror, str) else None,
            pods,
            secrets,
            overlay if isinstance(overlay, dict) else None,
        )

    def report_pods(self, body: bytes) -> PodsAnswer:
        """Send a report of pods. Raises as ``post`` does."""
        content = self._calls.answer("POST", "pending-pods", body)
        sequence = content.get("sequence")
        if not isinstance(sequence, int):
            raise Unreachable("Stockyard's answer has no sequence")
        return PodsAnswer(sequence, content.get("resync") is True, _interval(content))

    def kubeconfig_secrets(self, results: list[dict[str, Any]], *, refresh: bool) -> SecretsAnswer:
        """Say what became of Secrets and, with ``refresh``, get those that are to be written now. Raises as ``post``
        does."""
        body = json.dumps({"results": results, "refresh": refresh}).encode()
        content = self._calls.answer("POST", "kubeconfig-secrets", body)
        secrets, removed = content.get("secrets"), content.get("removed")
        if not _are_objects(secrets) or not _are_objects(removed):
            raise Unreachable("Stockyard's answer has no lists of Secrets")
        return SecretsAnswer(secrets, removed, _interval(content))

    def mirror(self, after: str) -> tuple[list[dict[str, Any]], str]:
        """A part of what is to be mirrored behind ``after``, and where the next one begins; empty for none. Raises as
        ``post`` does."""
        content = self._calls.answer("GET", "mirror" + ("?" + urlencode({"after": after}) if after else ""))
        objects, following = content.get("objects"), content.get("after")
        if not isinstance(objects, list) or not isinstance(following, str):
            raise Unreachable("Stockyard's answer has no list of objects")
        return objects, following


def _are_objects(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _interval(content: dict[str, Any]) -> float:
    seconds = _seconds(content, "interval_seconds")
    return INTERVAL if seconds is None else seconds


def _seconds(content: dict[str, Any], name: str) -> float | None:
    """A number of seconds; None for anything else."""
    seconds = content.get(name)
    return float(seconds) if isinstance(seconds, (int, float)) and math.isfinite(seconds) else None
