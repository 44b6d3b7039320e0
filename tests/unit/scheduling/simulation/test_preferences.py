"""Preferred rules rank nodes in a replay, as they do in a cluster: nothing is decided again and again for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.domain.nodes.node_types import Offering
from stockyard.domain.values.requirements import CAPACITY_TYPE, HOSTNAME
from stockyard.scheduling.packing.model import Pod, PodTerm, Pool, Preference, Selector, Spread, term
from stockyard.scheduling.simulation.model import Arrival, PodKind
from stockyard.scheduling.simulation.replay import replay
from tests.unit.scheduling.simulation.test_replay import HOUR, POOL, SMALL, STEPS, trace

LABELS = (("app", "web"),)
REQUESTS = (("cpu", 900), ("memory", 512), ("pods", 1000))
OWN = Selector(term([{"key": "app", "operator": "In", "values": ["web"]}]))
SOFT_SPREAD = {"spreads": (Spread(HOSTNAME, 1, OWN, hard=False),)}
APART = {"anti_affinity": (PodTerm(HOSTNAME, OWN, None, weight=1),)}
ON_DEMAND = {"preferences": (Preference(1, term([{"key": CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}])),)}


def day(replicas, rules, pool=POOL):
    kind = PodKind("web", Pod("default", LABELS, REQUESTS, **rules))
    return replay(trace(Arrival(0, kind, replicas), until=24 * HOUR, pool=pool, consolidate_after=60), STEPS)


@pytest.mark.parametrize("replicas", [2, 3, 4, 8, 20])
def test_pods_that_would_rather_be_apart_come_to_rest(replicas):
    for rules in (SOFT_SPREAD, APART):
        outcome = day(replicas, rules)
        assert outcome.complete
        assert len(outcome.events) <= 2
        assert outcome.evictions <= replicas * 1.2
        # What it costs from then on is what the pods cost that have no such rule.
        assert outcome.usd <= day(replicas, {}).usd * 1.05


def test_pods_that_prefer_on_demand_rest_on_spot_where_that_is_cheaper():
    spot = replace(SMALL, offerings=(*SMALL.offerings, Offering("spot", ("a",), 0.03)))
    outcome = day(6, ON_DEMAND, Pool("burst", (spot,)))
    assert outcome.complete
    assert len(outcome.events) <= 2
    assert outcome.evictions <= 6
    assert outcome.usd == pytest.approx(3 * 0.03 * 24, rel=0.05)
    # They prefer it, so that they have it where it costs no more.
    dear = replace(SMALL, offerings=(*SMALL.offerings, Offering("spot", ("a",), 0.1)))
    assert day(6, ON_DEMAND, Pool("burst", (dear,))).events == ()
