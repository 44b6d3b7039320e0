"""Traces that can be reckoned by hand: money, waiting, evictions, and which rules keep nodes."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pytest

from local.testing.prefix_rule import prefix_decision
from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.pools.budgets import Budget
from stockyard.domain.values.requirements import INSTANCE_TYPE
from stockyard.scheduling.consolidation.model import BALANCED, WHEN_EMPTY, WHEN_UNDERUTILIZED
from stockyard.scheduling.host_ports import HostPort
from stockyard.scheduling.packing.model import Pod, Pool
from stockyard.scheduling.simulation.model import FOREVER, Arrival, Departure, PodKind, PoolPolicy, Trace
from stockyard.scheduling.simulation.replay import replay

HOUR = 3600
HOURS = 5
STEPS = 50_000_000
START = datetime(2026, 3, 2, tzinfo=UTC)


def node_type(name, cores, usd):
    room = {"cpu": cores * 1000, "memory": cores * 4000, "pods": 110_000}
    offering = Offering("on-demand", ("a",), usd)
    return NodeType(f"lab.{name}", "lab", {INSTANCE_TYPE: (name,)}, room, room, 0, (offering,))


SMALL, LARGE = node_type("small", 2, 0.1), node_type("large", 8, 0.36)
POOL = Pool("burst", (SMALL, LARGE))


def kind(app="web", cpu=1000, **fields):
    return PodKind(app, Pod("default", (("app", app),), (("cpu", cpu), ("memory", cpu), ("pods", 1000))), **fields)


def trace(*events, until=10 * HOUR, pool=POOL, policy=WHEN_UNDERUTILIZED, **fields):
    arrivals = tuple(event for event in events if isinstance(event, Arrival))
    departures = tuple(event for event in events if isinstance(event, Departure))
    policies = {} if policy is None else {pool.name: PoolPolicy(policy, **fields)}
    return Trace(START, until, arrivals, departures, (pool,), policies)


def test_money_is_what_each_node_costs_from_the_request_until_it_is_gone():
    events = (Arrival(0, kind(), 2), Departure(HOUR, "web"))
    never = replay(trace(*events, policy=None), STEPS)
    assert never.usd == pytest.approx(10 * 0.1)
    assert (never.evictions, never.events, never.mean_nodes, never.peak_nodes) == (0, (), 1, 1)
    empty = replay(trace(*events, policy=WHEN_EMPTY), STEPS)
    # A minute after the last pod went it is found, a minute later it goes, and it is drained for a minute.
    assert empty.usd == pytest.approx(0.1 * (HOUR + 180) / HOUR)
    assert [(event.at, event.reason, event.nodes) for event in empty.events] == [(HOUR + 120, "Empty", ("burst-1",))]
    assert (empty.waits.count, empty.waits.longest, empty.waits.mean) == (2, 90, 90.0)


def test_a_cheaper_node_comes_first_then_the_pods_move():
    events = (Arrival(0, kind(), 8), Departure(HOUR, "web", 7))
    outcome = replay(trace(*events), STEPS)
    (event,) = outcome.events
    assert (event.reason, event.nodes, event.replacements, event.evictions) == (
        "Underutilized",
        ("burst-1",),
        ("burst-2",),
        1,
    )
    # It is decided after a minute and confirmed after another one, when the small node is asked for. The next look
    # after that is ready lets the large one go, which is drained for a minute.
    assert event.at == HOUR + 240
    assert event.saving == pytest.approx(0.26)
    assert outcome.usd == pytest.approx((0.36 * (HOUR + 300) + 0.1 * (9 * HOUR - 120)) / HOUR)
    assert outcome.evictions == 1
    # Nobody waited for the move: the node was ready.
    assert outcome.waits.count == 8
    assert (outcome.peak_nodes, outcome.nodes) == (2, 2)


def test_a_protected_pod_keeps_its_node_for_as_long_as_it_says():
    def moved_at(protected):
        events = (Arrival(0, kind(protected=protected), 8), Departure(HOUR, "web", 7))
        return [event.at for event in replay(trace(*events), STEPS).events]

    assert moved_at(FOREVER) == []
    # From the moment on at which it runs, up to the next whole minute; then it is decided, confirmed, and replaced.
    assert moved_at(2.0 * HOUR) == [2 * HOUR + 120 + 60 + 120]


def test_nodes_are_left_alone_until_no_pod_has_moved_for_long_enough():
    events = (Arrival(0, kind(), 8), Departure(HOUR, "web", 7))
    assert [event.at for event in replay(trace(*events, consolidate_after=1800), STEPS).events] == [
        HOUR + 1800 + 60 + 120
    ]
    assert replay(trace(*events, consolidate_after=None), STEPS).events == ()
    assert replay(trace(*events, minimum_saving=0.3), STEPS).events == ()


def test_a_budget_s_window_is_kept_in_its_time_zone():
    # 6 to 22 o'clock in Berlin: from 5:00 to 21:00 UTC in March.
    shut = Budget.of({"nodes": "0", "schedule": "0 6 * * *", "duration": "16h", "timeZone": "Europe/Berlin"})
    assert not shut.fault
    events = (Arrival(0, kind(), 2), Departure(6 * HOUR, "web"))
    outcome = replay(trace(*events, until=24 * HOUR, budgets=(shut,)), STEPS)
    assert [event.at for event in outcome.events] == [21 * HOUR + 60]


def test_a_budget_bounds_how_many_nodes_go_at_a_time():
    apart = kind(cpu=7000)
    events = (Arrival(0, apart, 4), Departure(HOUR, "web"))
    # Half of four are two, half of the two that are left one: a node that is drained counts until it is gone. Each
    # decision is confirmed by the look after it.
    for nodes, moments in (("1", [120, 240, 360, 480]), ("50%", [120, 240, 360])):
        outcome = replay(trace(*events, budgets=(Budget.of({"nodes": nodes}),)), STEPS)
        assert [event.at - HOUR for event in outcome.events] == moments


def test_pods_without_room_are_named_and_wait_to_the_end():
    pool = replace(POOL, limits={"nodes": 1000})
    outcome = replay(trace(Arrival(0, kind(cpu=7000), 2), pool=pool, until=HOUR), STEPS)
    (homeless,) = outcome.homeless
    assert (homeless.app, homeless.count, outcome.waits.longest) == ("web", 1, HOUR)
    assert "burst" in homeless.why
    # A pod that goes makes room for the other one.
    events = (Arrival(0, kind(cpu=7000), 2), Departure(HOUR, "web", 1))
    outcome = replay(trace(*events, pool=pool), STEPS)
    assert outcome.homeless == ()


def test_more_cannot_go_than_there_are():
    with pytest.raises(ValueError, match="2 pods of web go, and there are 1"):
        replay(trace(Arrival(0, kind()), Departure(60, "web", 2)), STEPS)


def test_where_the_work_is_used_up_the_outcome_ends():
    events = [Arrival(hour * HOUR, kind(f"app-{hour}", 500 + hour), 3) for hour in range(9)]
    whole = replay(trace(*events), STEPS)
    assert (whole.complete, whole.end) == (True, 10 * HOUR)
    part = replay(trace(*events), 120_000)
    assert not part.complete
    until = replay(trace(*(event for event in events if event.at < part.end), until=part.end), STEPS)
    assert (part.usd, part.node_seconds) == (pytest.approx(until.usd), until.node_seconds)


def busy_day(seed):
    chance = random.Random(seed)
    apps = [kind(f"app-{number}", chance.choice((250, 500, 1000, 2000))) for number in range(6)]
    events, there = [], {}
    for hour in range(HOURS):
        for each in chance.sample(apps, 3):
            at, count = hour * HOUR + chance.randrange(HOUR), chance.randint(1, 6)
            if chance.random() < 0.5 and there.get(each.app, 0) >= count:
                events.append(Departure((hour + 1) * HOUR - 1, each.app, count))
                there[each.app] -= count
            else:
                events.append(Arrival(at, each, count))
                there[each.app] = there.get(each.app, 0) + count
    return events


@pytest.mark.parametrize("seed", range(2))
def test_policies_save_in_their_order_and_the_order_of_events_says_nothing(seed):
    events = busy_day(seed)
    day = HOURS * HOUR
    policies = (None, WHEN_EMPTY, BALANCED, WHEN_UNDERUTILIZED)
    outcomes = [replay(trace(*events, until=day, policy=policy, consolidate_after=300), STEPS) for policy in policies]
    assert all(outcome.complete and not outcome.homeless for outcome in outcomes)
    never, empty, balanced, full = (outcome.usd for outcome in outcomes)
    assert full <= balanced <= empty <= never
    assert full < never
    random.Random(seed).shuffle(events)
    again = replay(trace(*events, until=day, consolidate_after=300), STEPS)
    assert again == outcomes[3]


def test_another_rule_can_decide():
    events = [Arrival(0, kind(), 8), Arrival(0, kind("api", 1500), 6), Departure(HOUR, "web", 7)]
    rules = trace(*events, Departure(2 * HOUR, "api", 5), Departure(5 * HOUR, "api"), Departure(5 * HOUR, "web"))
    karpenter = replay(rules, STEPS, lambda fleet, *_: (prefix_decision(fleet), 0))
    assert karpenter.complete
    assert {event.reason for event in karpenter.events} == {"Empty", "Underutilized"}
    assert replay(rules, STEPS).usd <= karpenter.usd * 1.02


def test_a_port_of_a_daemon_set_is_taken_on_each_node():
    daemon = replace(kind("edge").pod, requests=(), ports=(HostPort(8080),))
    late_kind = kind("late")
    late_kind = replace(late_kind, pod=replace(late_kind.pod, ports=daemon.ports))
    played = trace(Arrival(0, kind()), Arrival(HOUR, late_kind), until=2 * HOUR, policy=None)
    outcome = replay(replace(played, daemons=(daemon,)), STEPS)
    (homeless,) = outcome.homeless
    assert (homeless.app, homeless.count) == ("late", 1)
    assert "8080/TCP" in homeless.why
    assert (outcome.nodes, outcome.pods) == (1, 2)


def test_a_replay_ends_where_its_caller_waits_no_longer():
    events = [Arrival(hour * HOUR, kind(f"app-{hour}", 500 + hour), 3) for hour in range(9)]
    calls = count()
    part = replay(trace(*events), STEPS, expired=lambda: next(calls) > 12)
    assert not part.complete
    assert 0 < part.end < 9 * HOUR
    # What it has is what a trace to that moment comes to.
    until = replay(trace(*(event for event in events if event.at < part.end), until=part.end), STEPS)
    assert (part.usd, part.node_seconds) == (pytest.approx(until.usd), until.node_seconds)


def test_a_search_that_is_cut_by_the_clock_decides_nothing():
    """The decision found by then would be carried out on one machine, and not on a faster one."""
    over: list[bool] = []

    def decider(fleet, steps, careful):
        over.append(True)
        return prefix_decision(fleet), 1

    events = (Arrival(0, kind(), 4), Departure(HOUR, "web", 3))
    part = replay(trace(*events), STEPS, decider, lambda: bool(over))
    assert not part.complete
    assert over
    assert part.events == ()
