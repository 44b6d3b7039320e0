"""Acts that no decision of a replay may do, over whole traces, and checks again before nodes leave."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.domain.pools.budgets import Budget
from stockyard.scheduling.simulation.model import FOREVER, Arrival, Departure
from stockyard.scheduling.simulation.replay import replay, search
from tests.unit.scheduling.simulation.test_replay import HOUR, HOURS, POOL, STEPS, busy_day, kind, trace

DRAIN = 600


@pytest.mark.parametrize("seed", [3, 4])
def test_budgets_and_protections_are_kept_over_a_trace(seed):
    protected_app = "app-0"
    events = [
        replace(event, kind=replace(event.kind, protected=FOREVER))
        if isinstance(event, Arrival) and event.kind.app == protected_app
        else event
        for event in busy_day(seed)
    ]
    chosen_nodes = []

    def watched(fleet, steps, careful):
        decision, spent = search(fleet, steps, careful)
        if decision is not None:
            chosen_nodes.extend(decision.nodes)
        return decision, spent

    day = replace(trace(*events, until=HOURS * HOUR, budgets=(Budget.of({"nodes": "2"}),)), drain=DRAIN)
    outcome = replay(day, STEPS, watched)
    assert outcome.evictions > 0
    assert not any(dict(pod.labels)["app"] == protected_app for node in chosen_nodes for pod, _ in node.pods)
    for event in outcome.events:
        at_a_time = [other for other in outcome.events if 0 <= event.at - other.at < DRAIN]
        assert sum(len(other.nodes) for other in at_a_time) <= 2
    assert sum(event.evictions for event in outcome.events) == outcome.evictions
    assert outcome.homeless == ()


def test_a_decision_is_given_up_when_a_protected_pod_comes_meanwhile():
    # The replacement is asked for two minutes after the pods went, and ready a minute and a half later.
    events = [Arrival(0, kind(), 8), Departure(HOUR, "web", 7), Arrival(HOUR + 150, kind("late", protected=FOREVER))]
    outcome = replay(trace(*events, until=2 * HOUR), STEPS)
    assert (outcome.abandoned, outcome.evictions, outcome.events) == (1, 0, ())
    # The replacement that nobody needs goes at once, and is drained for a minute.
    assert outcome.node_seconds == 2 * HOUR + (240 + 60 - 120)


def test_pods_of_one_moment_go_before_others_come():
    events = [Arrival(0, kind(cpu=7000)), Arrival(HOUR, kind(cpu=7000)), Departure(HOUR, "web", 1)]
    outcome = replay(trace(*events, until=2 * HOUR, policy=None), STEPS)
    assert (outcome.nodes, outcome.pods, outcome.waits.count) == (1, 2, 1)


def test_those_that_wait_go_first_then_the_youngest():
    pool = replace(POOL, limits={"nodes": 1000})
    events = [Arrival(0, kind(cpu=7000)), Arrival(600, kind(cpu=7000)), Departure(HOUR, "web", 1)]
    outcome = replay(trace(*events, pool=pool, until=2 * HOUR, policy=None), STEPS)
    assert (outcome.homeless, outcome.waits.longest) == ((), HOUR - 600)


def test_places_of_a_type_bound_its_nodes():
    limited = replace(trace(Arrival(0, kind(cpu=7000), 3), until=HOUR), places={"lab.large": 2})
    outcome = replay(limited, STEPS)
    assert (outcome.nodes, [item.count for item in outcome.homeless]) == (2, [1])


def test_spending_stays_below_a_limit_in_money():
    pool = replace(POOL, money=0.5)
    outcome = replay(trace(Arrival(0, kind(cpu=7000), 3), pool=pool, until=HOUR), STEPS)
    assert (outcome.nodes, outcome.usd) == (1, pytest.approx(0.36))
