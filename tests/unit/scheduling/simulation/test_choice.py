"""Types that no packing would take are left out of a replay, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.domain.nodes.node_types import Offering
from stockyard.domain.values.requirements import ARCH, INSTANCE_TYPE, Requirements
from stockyard.scheduling.packing.model import Pool, term
from stockyard.scheduling.simulation.choice import narrowed
from stockyard.scheduling.simulation.replay import replay
from tests.unit.scheduling.simulation.test_replay import HOUR, HOURS, STEPS, busy_day, kind, node_type, trace

SMALL, DEAR, LARGE = node_type("small", 2, 0.1), node_type("dear", 2, 0.11), node_type("large", 8, 0.36)
TYPES = (SMALL, DEAR, LARGE)


def names(pool, pods=(), limited=()):
    return [each.bare for each in narrowed(pool, pods, limited).node_types]


def test_what_is_no_larger_and_dearer_is_left_out():
    assert names(Pool("burst", TYPES)) == ["small", "large"]
    # What may be used up replaces nothing.
    assert names(Pool("burst", TYPES), limited=["lab.small"]) == ["small", "dear", "large"]


@pytest.mark.parametrize(
    "difference",
    [
        {"allocatable": {**DEAR.allocatable, "cpu": 2100}},
        {"allocatable": {**DEAR.allocatable, "nvidia.com/gpu": 1000}},
        {"offerings": (Offering("on-demand", ("b",), 0.11),)},
        {"offerings": (Offering("on-demand", ("a",), 0.09),)},
    ],
)
def test_a_type_that_has_something_of_its_own_stays(difference):
    assert "dear" in names(Pool("burst", (SMALL, replace(DEAR, **difference), LARGE)))


def test_labels_that_pods_ask_about_tell_types_apart():
    types = (replace(SMALL, properties={ARCH: ("amd64",)}), replace(DEAR, properties={ARCH: ("arm64",)}))
    pod = kind().pod
    asking = replace(pod, terms=(term([{"key": ARCH, "operator": "In", "values": ["arm64"]}]),))
    assert names(Pool("burst", types), [pod]) == ["small"]
    assert names(Pool("burst", types), [pod, asking]) == ["small", "dear"]
    by_name = replace(pod, terms=(term([{"key": INSTANCE_TYPE, "operator": "In", "values": ["dear"]}]),))
    assert names(Pool("burst", TYPES), [by_name]) == ["small", "dear", "large"]


def test_a_pool_whose_choice_counts_stays_as_it_is():
    spot = replace(LARGE, offerings=(*LARGE.offerings, Offering("spot", ("a",), 0.1)))
    requirement = {"key": INSTANCE_TYPE, "operator": "Exists", "minValues": 2}
    for pool in (
        Pool("burst", TYPES, limits={"cpu": 100_000}),
        Pool("burst", (SMALL, DEAR, spot)),
        Pool("burst", TYPES, Requirements.of([requirement])),
    ):
        assert narrowed(pool, ()) is pool
    assert names(Pool("burst", TYPES, limits={"nodes": 3000})) == ["small", "large"]


def test_the_outcome_is_that_of_all_types():
    pool = Pool("burst", tuple(node_type(f"t{n}", 2 + n % 5, (2 + n % 5) * 0.05 + n * 0.001) for n in range(30)))
    few = narrowed(pool, ())
    assert len(few.node_types) == 5
    events = busy_day(0)
    whole, part = (replay(trace(*events, until=HOURS * HOUR, pool=each, policy=None), STEPS) for each in (pool, few))
    assert part.usd == pytest.approx(whole.usd, rel=0.001)
