"""One tenant's requests do not take what others need: each has a bucket of its own in a process."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.models.operations import OperationView
from stockyard.edge.contract import Answer
from stockyard.edge.fairness import MOST_TENANTS, TenantLimits
from stockyard.edge.identity import Roles
from stockyard.edge.route import HttpFunction
from stockyard.errors import Throttled
from tests.harness.crash.route_keys import route_key
from tests.unit.edge.conftest import Result


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def served(limits: TenantLimits, tenant: str, count: int) -> int:
    """Number of requests that are let through, of so many."""
    done = 0
    for _ in range(count):
        try:
            limits.admit(tenant)
        except Throttled:
            continue
        done += 1
    return done


def test_a_tenant_has_its_burst_and_then_its_rate() -> None:
    clock = Clock()
    limits = TenantLimits(5, 10, clock)
    assert served(limits, "acme", 100) == 10
    assert served(limits, "globex", 4) == 4, "another one has its own"
    clock.now = 1.0
    assert served(limits, "acme", 100) == 5
    clock.now = 100.0
    assert served(limits, "acme", 100) == 10, "no more than the burst is saved"


def test_the_refusal_says_when_to_come_again() -> None:
    clock = Clock()
    limits = TenantLimits(1, 1, clock)
    limits.admit("acme")
    for moment in (0.0, 0.3):
        clock.now = moment
        with pytest.raises(Throttled) as refusal:
            limits.admit("acme")
        assert refusal.value.retry_after == 1
    clock.now = 1.0
    limits.admit("acme")


def test_a_process_keeps_few_buckets_and_a_rate_of_zero_none() -> None:
    limits = TenantLimits(1, 1, Clock())
    for number in range(MOST_TENANTS + 50):
        limits.admit(f"t{number}")
    assert len(limits._buckets) == MOST_TENANTS
    assert served(TenantLimits(0, 1, Clock()), "acme", 500) == 500


def test_people_are_answered_429_without_a_record_and_machines_are_not(make_event: Any) -> None:
    audits: list[Any] = []
    http = HttpFunction("fair", audit=lambda *record: audits.append(record), admit=TenantLimits(1, 1, Clock()).admit)

    @http.route("POST /v1/things", roles=Roles.CHANGERS, machine=True, answers={200: OperationView})
    def change_thing(_: Any) -> Answer:
        """Change a thing."""
        return Answer(200, {"id": "x"})

    def call(**claims: Any) -> Result:
        sent = make_event("POST", "/v1/things", claims={"sub": "u", "organization": "acme", **claims})
        return Result(http.handle({**sent, "routeKey": route_key("POST", "/v1/things", ["/v1/things"])}, None))

    person = {"realm_access": {"roles": ["stockyard-operator"]}}
    assert call(**person).status == 200
    written = len(audits)
    refusal = call(**person)
    assert (refusal.status, refusal.headers["Retry-After"], refusal.json["error_type"]) == (429, "1", "Throttled")
    assert len(audits) == written
    assert [call(azp="cluster-0123456789ab").status for _ in range(5)] == [200] * 5
