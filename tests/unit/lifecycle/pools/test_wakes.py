"""Steps of nodes that wake no pass over pools: what a pool decides is the same before and after."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.virtual_fleet.clusters import FleetRecords
from benchmarks.virtual_time.engine import BEGAN
from stacks.constructs.triggers import NO_NEWS_FOR_POOLS, POOL_EVENTS
from stockyard.domain.pools.records import DYNAMIC, STATIC, Pool
from stockyard.domain.values import times
from stockyard.domain.values.conditions import Condition
from stockyard.lifecycle.nodes.node_phases import DRAINED
from stockyard.lifecycle.pools.pool import decide

NOW = times.to_text(BEGAN)


def test_the_rule_names_what_wakes_no_pass() -> None:
    _, _, pattern = POOL_EVENTS["PoolNodes"]
    assert pattern["reason"] == [{"anything-but": list(NO_NEWS_FOR_POOLS)}]
    assert {"Available", "DeletionRequested", "Deleted"}.isdisjoint(NO_NEWS_FOR_POOLS)


@pytest.mark.parametrize("kind", [DYNAMIC, STATIC])
def test_a_drained_node_is_no_news_for_its_pool(kind: str) -> None:
    maker = FleetRecords(BEGAN, 1, 0.0)
    fleet, records = maker.cluster(maker.tenant(0), 0, 3)
    own = next(record for record in records if isinstance(record, Pool))
    pool = replace(own, kind=kind, quantity=3, due_at=None)
    first, *staying = fleet.claims
    leaving = replace(first, deleting=True, deletion_timestamp=NOW)
    drained = replace(leaving, conditions=(*leaving.conditions, Condition(DRAINED, "True", "Drained", "Gone.", NOW)))
    assert decide(pool, fleet.cluster, [leaving, *staying], NOW) == decide(
        pool, fleet.cluster, [drained, *staying], NOW
    )
