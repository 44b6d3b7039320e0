"""The handler of the sweep: each event has its part, of a cluster, of a tenant's sums, of a scope or of tenants."""

from __future__ import annotations

from typing import Any

import pytest

from functions.reaper import handler
from stockyard.domain.cost_records import SUMS, SUMS_BEHIND
from stockyard.wiring import passes
from tests.harness.worlds.inprocess import Context

NOTHING: dict[str, Any] = {"stopped": False, "distrusted": False}


class Reaper:
    """Notes what is asked of it."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def sweep_scope(self, tenant: str, scope: str) -> dict[str, Any]:
        self.calls.append(("place", tenant, scope))
        return NOTHING

    def look_at_nodes(self, tenant: str, cluster: str) -> dict[str, Any]:
        self.calls.append(("nodes", tenant, cluster))
        return NOTHING

    def sweep_tenants(self, tenants: list[str], **_: Any) -> dict[str, Any]:
        self.calls.append(("tenants", *tenants))
        return NOTHING

    def run(self, **options: Any) -> dict[str, Any]:
        self.calls.append(("run", options["reconciled"]))
        return NOTHING


def test_each_event_has_its_own_part_of_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    reaper = Reaper()
    monkeypatch.setattr(passes, "reap", lambda: reaper)
    events: list[dict[str, Any]] = [
        {"detail-type": SUMS_BEHIND, "detail": {"tenant": "acme", "subject": "acme"}},
        {"detail-type": "NodeNotReady", "detail": {"tenant": "acme", "subject": "clu_1"}},
        {"tenant": "acme", "place": "1/us-east-1"},
        {"tenants": ["acme", "umbrella"]},
        {"detail-type": "Scheduled Event", "detail": {}},
        {"reconciled": True},
    ]
    answers = [handler.lambda_handler(event, Context("reaper", "request")) for event in events]
    assert reaper.calls == [
        ("place", "acme", SUMS),
        ("nodes", "acme", "clu_1"),
        ("place", "acme", "1/us-east-1"),
        ("tenants", "acme", "umbrella"),
        ("run", False),
        ("run", True),
    ]
    named = [answer.get("place") or answer.get("cluster") or answer.get("tenants") for answer in answers]
    assert named == [SUMS, "clu_1", "1/us-east-1", ["acme", "umbrella"], None, None]
