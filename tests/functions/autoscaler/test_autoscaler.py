"""The handler that keeps pools: what its events and its schedule look at, and that it can log what it did."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from functions.autoscaler import handler
from local.testing.memory_store import MemoryRegistry
from stockyard import wiring
from stockyard.operations.fleet.pools.autoscaler import Autoscaler
from stockyard.wiring import passes
from tests.harness.worlds.inprocess import Context
from tests.harness.worlds.memory import FixedClock
from tests.harness.worlds.ports import memory_services

CLUSTER = "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV"
LEASE = "2026-01-01T00:00:25.000Z"


class Looks(Autoscaler):
    """Notes what is looked at."""

    def __init__(self) -> None:
        registry = MemoryRegistry()
        super().__init__(registry, lambda _: memory_services(registry))
        object.__setattr__(self, "looks", [])

    def woken(self, tenant: str, cluster_id: str, lease: str | None = None) -> Mapping[str, int]:
        self.looks.append((tenant, cluster_id) if lease is None else (tenant, cluster_id, lease))  # type: ignore[attr-defined]
        return super().woken(tenant, cluster_id, lease)

    def due(self, now: datetime) -> Mapping[str, int]:
        self.looks.append("due")  # type: ignore[attr-defined]
        return super().due(now)


@pytest.mark.parametrize(
    ("event", "look"),
    [
        ({"detail": {"tenant": "acme", "subject": CLUSTER}}, ("acme", CLUSTER)),
        ({"detail": {"tenant": "acme", "subject": f"{CLUSTER}/workers"}}, ("acme", CLUSTER)),
        ({"detail": {"tenant": "acme", "subject": "ncl_1", "cluster_id": CLUSTER, "pool": "w"}}, ("acme", CLUSTER)),
        ({"tenant": "acme", "cluster": CLUSTER, "lease": LEASE}, ("acme", CLUSTER, LEASE)),
        ({}, "due"),
        ({"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}, "due"),
    ],
)
def test_events_name_a_cluster_and_anything_else_is_the_schedule(
    event: dict[str, Any], look: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    autoscaler = Looks()
    monkeypatch.setattr(passes, "autoscaler", lambda: autoscaler)
    monkeypatch.setattr(wiring, "clock", FixedClock)
    report = handler.lambda_handler(event, Context("autoscaler", "request"))
    assert autoscaler.looks == [look]  # type: ignore[attr-defined]
    (logged_line,) = [record for record in caplog.records if record.message == "pools"]
    assert report.items() <= vars(logged_line).items()
