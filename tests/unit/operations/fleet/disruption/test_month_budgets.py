"""A month's budget that is reached in the middle of a scale-up, of an upgrade and of a replacement: nothing that runs
ends, and the reason is on every claim that waits."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from stockyard.domain.month_budgets import BUDGET_REACHED
from stockyard.domain.records import NodeClaim
from stockyard.lifecycle.nodes.interruption import recommend
from stockyard.operations.costs.budgets import all_budgets, ledger
from stockyard.operations.fleet.pools import pools as pool_operations
from stockyard.ports import Replace
from tests.unit.operations.fleet.disruption.conftest import POOL, Pods, pod

PRICE = 0.1
"""USD an hour of sim.small."""


@pytest.fixture(autouse=True)
def mid_month(pods: Pods) -> None:
    pods.yard.nodes.clock.moment = datetime(2026, 6, 10, tzinfo=UTC)


def all_claims(pods: Pods) -> list[NodeClaim]:
    return list(pool_operations.claims_of(pods.yard.nodes.services, pods.yard.cluster.id, POOL))


def set_budget(pods: Pods, usd: float | None, scope: str = "pool") -> None:
    limits = {} if usd is None else {"usd_month": str(usd)}
    record: Any = pods.yard.now(POOL) if scope == "pool" else pods.yard.current()
    pods.yard.nodes.services.store.commit(Replace(replace(record, limits=limits, version=record.version + 1)))


def set_room(pods: Pods, nodes: float, scope: str = "pool") -> None:
    """A budget that has room for so many more nodes until the month ends; the passes of an hour use next to nothing."""
    set_budget(pods, 10**6, scope)
    [budget] = ledger(pods.yard.nodes.services, all_budgets(pods.yard.nodes.services)).budgets
    set_budget(pods, budget.forecast + nodes * PRICE * budget.hours_left, scope)


def waiting(pods: Pods) -> list[NodeClaim]:
    """The claims of the pool that have no node type; each says that the budget is why."""
    claims = [claim for claim in all_claims(pods) if claim.placement is None and not claim.deleting]
    assert {claim.reason for claim in claims} <= {BUDGET_REACHED}
    return claims


@pytest.mark.parametrize("scope", ["pool", "cluster"])
def test_scale_up_stops_at_the_budget_and_goes_on_when_it_is_raised(pods: Pods, scope: str) -> None:
    only_small = [{"key": "vcluster.com/node-type", "operator": "In", "values": ["sim.small"]}]
    pods.yard.dynamic_pool(POOL, requirements=only_small, disruption={"consolidate_after": "Never"})
    set_room(pods, 2.5, scope)
    pods.waiting = [pod(cpu="1500m") for _ in range(5)]
    pods.run(5)
    assert (len(pods.claims()), len(waiting(pods)), len(pods.waiting)) == (2, 3, 3)
    name = f"pool {POOL}" if scope == "pool" else f"cluster {pods.yard.current().name}"
    assert all(name in claim.message for claim in waiting(pods))
    subject = pods.yard.now(POOL).id if scope == "pool" else pods.yard.cluster.id
    assert pods.yard.reasons(subject).count(BUDGET_REACHED) == 1
    set_budget(pods, 10**6, scope)
    pods.run(3)
    assert (len(pods.claims()), len(pods.waiting)) == (5, 0)


@pytest.mark.parametrize("strategy", ["add_first", "remove_first"])
def test_upgrade_waits_and_every_node_stays(pods: Pods, strategy: str) -> None:
    pods.yard.dynamic_pool(POOL, quantity=3, update_strategy={"type": strategy})
    pods.run(4)
    before = {claim.id for claim in pods.claims()}
    # What replaces a node where the others stay has no room; where one leaves first, its room is not enough either.
    set_room(pods, 0.5 if strategy == "add_first" else -0.5)
    pool = pods.yard.now(POOL)
    labels = {**pool.labels, "tier": "new"}
    changed = replace(pool, labels=labels, generation=pool.generation + 1, version=pool.version + 1)
    pods.yard.nodes.services.store.commit(Replace(changed))
    pods.fewest = 3
    pods.run(40)
    assert ({claim.id for claim in pods.claims()}, pods.fewest) == (before, 3)
    assert bool(waiting(pods)) == (strategy == "add_first")
    assert "budget" in pods.record().message
    set_budget(pods, None)
    pods.run(30)
    assert len(pods.claims()) == 3
    assert not before & {claim.id for claim in pods.claims()}


def test_replacement_after_a_warning_waits_and_the_node_stays(pods: Pods) -> None:
    pods.yard.dynamic_pool(POOL, quantity=2)
    pods.run(4)
    set_room(pods, 0.5)
    services = pods.yard.nodes.services
    first = pods.claims()[0]
    warned = recommend(first, services.now())
    assert warned is not None
    services.store.commit(Replace(replace(warned[0], version=first.version + 1)))
    pods.on[first.node_name] = [pod(cpu="1500m")]
    pods.on[pods.claims()[1].node_name] = [pod(cpu="1500m")]
    pods.run(10)
    assert first.id in {claim.id for claim in pods.claims()}
    assert len(waiting(pods)) == 1
    set_budget(pods, None)
    pods.run(10)
    assert len(pods.claims()) == 2
    assert first.id not in {claim.id for claim in pods.claims()}
