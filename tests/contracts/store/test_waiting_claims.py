"""Reading what waits in turn comes to the same over both stores."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.domain.records import NodeClaim
from stockyard.operations.scheduler import waiting as waiting_claims
from stockyard.operations.scheduler.waiting import SCHEDULED, Waiting
from stockyard.ports import Create

TIME = "2026-01-31T12:00:00.000Z"
LATER = datetime(2026, 1, 31, 13, 0, tzinfo=UTC)


def test_waiting_claims_are_read_in_turns_of_tenants(
    registry: MemoryRegistry | DynamoRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_claims, "EACH", 1)
    for number in range(12):
        moment = f"2026-01-31T12:00:{number:02}.000Z"
        tenant = ("heap-1", "heap-2", "acme")[min(number // 5, 2)]
        registry.store(tenant).commit(Create(NodeClaim(f"ncl_{number}", f"c{number}", TIME, TIME, due_at=moment)))
    claims_read = []
    for _ in range(4):
        waiting = Waiting(registry)
        waiting.read_round_robin(LATER, 5, SCHEDULED)
        claims_read.append({tenant: len(claims) for tenant, claims in waiting.by_tenant.items()})
    assert claims_read == [{"heap-1": 5}, {"heap-2": 5}, {"acme": 2}, {"heap-1": 5}]
