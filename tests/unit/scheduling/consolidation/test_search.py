"""Nodes that go or stay, and the reasons: small clusters."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.pools.budgets import EMPTY
from stockyard.domain.values.requirements import HOSTNAME, INSTANCE_TYPE, NODE_POOL, ZONE, Requirements
from stockyard.scheduling.consolidation.model import (
    BALANCED,
    WHEN_EMPTY,
    Fleet,
    PoolRules,
    RunningNode,
    Settings,
)
from stockyard.scheduling.consolidation.places import homeless_pods
from stockyard.scheduling.consolidation.search import Search, consolidate, empty_nodes
from stockyard.scheduling.consolidation.singles import DELETE, NO_PLACE, NO_SAVING, REPLACE, verdicts
from stockyard.scheduling.consolidation.worth import wastes
from stockyard.scheduling.packing.model import Node, PlacedPod, Pod, PodTerm, Pool, Selector, term
from stockyard.scheduling.packing.price.model import Meter

SMALL, LARGE = ("small", 2, 0.1), ("large", 8, 0.36)
"""Name, cores and USD an hour."""


def node_type(name, cores, usd, offerings=None):
    room = {"cpu": cores * 1000, "memory": cores * 4000, "pods": 110_000}
    offerings = offerings or (Offering("on-demand", ("a",), usd),)
    return NodeType(f"lab.{name}", "lab", {INSTANCE_TYPE: (name,)}, room, room, 0, offerings)


TYPES = (node_type(*SMALL), node_type(*LARGE))


def pod(cpu=1000, app="web", **rules):
    return Pod("default", (("app", app),), (("cpu", cpu), ("memory", cpu * 2), ("pods", 1000)), **rules)


def running(name, kind, *pods, pool="default", **fields):
    _, cores, usd = kind
    free = {"cpu": cores * 1000, "memory": cores * 4000, "pods": 110_000}
    for each in pods:
        for resource, amount in each.requests:
            free[resource] -= amount
    placed = tuple(PlacedPod(each.namespace, each.labels, each.anti_affinity) for each in pods)
    labels = {HOSTNAME: name, ZONE: "a", NODE_POOL: pool, INSTANCE_TYPE: kind[0]}
    counts = {each: pods.count(each) for each in pods}
    node = Node(name, labels, free, (), placed)
    return RunningNode(node, tuple(counts.items()), pool, usd, 1.0 + len(pods), **fields)


def fleet(*nodes, rules=None, types=TYPES, **fields):
    pools = tuple(Pool(name, types) for name in sorted({node.pool for node in nodes}))
    return Fleet(nodes, pools, {"default": rules} if rules else {}, **fields)


def names(decision):
    return sorted(node.name for node in decision.nodes) if decision else []


def test_a_node_whose_pods_have_room_elsewhere_goes():
    nodes = (running("one", LARGE, pod(), pod()), running("two", LARGE, *[pod()] * 4))
    decision = consolidate(fleet(*nodes, types=TYPES[1:]))
    assert names(decision) == ["one"]
    assert (decision.price_before, decision.price_after, decision.replacements) == (0.36, 0, ())
    assert [(each.node, len(each.pods)) for each in decision.placements] == [("two", 2)]


def test_a_large_node_with_little_on_it_becomes_a_small_one():
    decision = consolidate(fleet(running("one", LARGE, pod())))
    (replacement,) = decision.replacements
    assert replacement.claim.row.node_type.bare == "small"
    assert decision.saving == pytest.approx(0.26)
    assert decision.possible == pytest.approx(0.36 - 0.045)
    # Launched as whatever is still allowed, it saves what the margin asks for.
    assert replacement.ceiling == pytest.approx(0.36 * 0.95)


def test_the_set_is_chosen_for_price_and_not_by_its_order():
    # Four small nodes are worth no more than one large; none of them can go alone, nor two or three together.
    nodes = [running(f"small-{number}", ("small", 2, 0.12), pod(2000)) for number in range(4)]
    decision = consolidate(fleet(*nodes, types=TYPES[1:]))
    assert names(decision) == [node.name for node in nodes]
    assert decision.saving == pytest.approx(4 * 0.12 - 0.36)


def test_nothing_goes_where_nothing_is_saved():
    assert consolidate(fleet(running("one", SMALL, pod(2000)))) is None
    assert consolidate(fleet()) is None


@pytest.mark.parametrize(
    ("rules", "going"),
    [
        (PoolRules(), ["one", "two"]),
        (PoolRules(underutilized=1), ["one"]),
        (PoolRules(underutilized=0), []),
        (PoolRules(WHEN_EMPTY), []),
        (PoolRules(minimum_saving=0.2), ["one", "two"]),
        (PoolRules(minimum_saving=0.4), []),
    ],
)
def test_a_pool_says_how_many_and_for_what(rules, going):
    nodes = (running("one", LARGE, pod()), running("two", LARGE, pod(), pod()), running("wide", LARGE, *[pod()] * 4))
    decision = consolidate(fleet(*nodes, rules=rules), Settings(share=1.0))
    assert names(decision) == going


def test_what_is_hindered_stays_and_has_room():
    guarded = running("guarded", LARGE, pod(), blocker="pod default/web-1 is not to be disrupted")
    decision = consolidate(fleet(guarded, running("one", LARGE, *[pod()] * 5)))
    assert names(decision) == ["one"]
    assert [each.node for each in decision.placements] == ["guarded"]


def test_pods_that_keep_apart_are_not_put_together():
    selector = Selector(term([{"key": "app", "operator": "In", "values": ["db"]}]))
    database = pod(app="db", anti_affinity=(PodTerm(HOSTNAME, selector, frozenset({"default"})),))
    nodes = (running("one", SMALL, database), running("two", SMALL, database))
    assert consolidate(fleet(*nodes)) is None
    assert names(consolidate(fleet(running("one", SMALL, pod()), running("two", SMALL, pod())))) == ["one"]


def test_a_margin_keeps_prices_that_flicker_from_moving_anything():
    dear = running("one", ("small", 2, 0.104), pod(2000))
    assert consolidate(fleet(dear)) is None
    assert names(consolidate(fleet(dear), Settings(margin=0.0))) == ["one"]


def test_spot_is_replaced_by_spot_only_with_a_wide_choice():
    def spot(name, usd):
        return node_type(name, 2, usd, (Offering("spot", ("a",), usd),))

    few = tuple(spot(f"s{number}", 0.04 + number / 1000) for number in range(14))
    node = running("one", LARGE, pod(), spot=True)
    assert consolidate(fleet(node, types=few)) is None
    decision = consolidate(fleet(node, types=(*few, spot("s14", 0.06))))
    assert decision.replacements[0].claim.row.node_type.bare == "s0"
    # From on demand to spot any choice will do.
    assert names(consolidate(fleet(replace(node, spot=False), types=few))) == ["one"]


def test_balanced_weighs_the_money_against_the_pods():
    # It saves a fifth of the money and disturbs most of the pods.
    crowded = running("crowded", ("large", 8, 0.2), *[pod(100, app=f"a{number}") for number in range(40)])
    wide = running("wide", ("wide", 16, 0.8), pod())
    cluster = fleet(crowded, wide, rules=PoolRules(BALANCED), types=())
    assert consolidate(fleet(crowded, wide, types=())) is not None
    assert names(consolidate(cluster)) != ["crowded"]


def test_empty_nodes_go_first_the_dearest_within_the_budget():
    nodes = (running("one", SMALL), running("two", LARGE), running("three", SMALL, blocker="held"))
    assert names(empty_nodes(fleet(*nodes))) == ["one", "two"]
    decision = empty_nodes(fleet(*nodes, rules=PoolRules(empty=1)))
    assert (decision.reason, names(decision), decision.saving) == (EMPTY, ["two"], 0.36)
    assert empty_nodes(fleet(running("one", SMALL, pod()))) is None
    assert consolidate(fleet(*nodes)) is None


def test_every_node_is_judged_by_itself():
    nodes = (
        running("empty", SMALL),
        running("delete", SMALL, pod(500)),
        running("replace", LARGE, pod(1600), pod(200)),
        running("dear", SMALL, pod(2000)),
        running("large", LARGE, pod(7000)),
        running("alone", ("huge", 32, 2.0), pod(20_000)),
    )
    cluster = fleet(*nodes)
    outcomes = {each.node.name: each for each in verdicts(cluster, nodes, Meter(10**6))}
    assert {name: each.outcome for name, each in outcomes.items()} == {
        "empty": EMPTY,
        "delete": DELETE,
        "replace": DELETE,
        "dear": DELETE,
        "large": DELETE,
        "alone": NO_PLACE,
    }
    by_itself = {
        node.name: verdicts(fleet(node), [node], Meter(10**6))[0]
        for node in nodes
        if node.name not in ("empty", "alone")
    }
    assert {name: each.outcome for name, each in by_itself.items()} == {
        "delete": NO_SAVING,
        "replace": REPLACE,
        "dear": NO_SAVING,
        "large": NO_SAVING,
    }
    assert by_itself["replace"].saving == pytest.approx(0.26)
    assert by_itself["replace"].type == "lab.small"


def test_waste_is_what_a_node_costs_above_the_worth_of_its_pods():
    full, idle = running("full", LARGE, *[pod()] * 8), running("idle", LARGE, pod())
    assert wastes(fleet(full, idle), (full, idle)) == pytest.approx([0.0, 0.36 - 0.045])
    unknown = replace(full, pods=((pod(64_000), 1),))
    assert wastes(fleet(unknown), (unknown,)) is None


def test_a_search_ends_when_its_steps_are_used():
    nodes = [running(f"n{number:02}", LARGE, pod(app=f"app-{number}")) for number in range(40)]
    search = Search(fleet(*nodes), Settings(steps=3_000))
    decision = search.decide()
    assert decision is None or decision.saving > 0
    assert search.meter.spent < 60_000


def test_of_fifteen_types_that_spot_may_become_all_are_cheaper():
    """Types that the ceiling shuts out are no choice: a claim that may be one type alone is soon interrupted again."""

    def spot(name, usd):
        return node_type(name, 2, usd, (Offering("spot", ("a",), usd),))

    node = running("node", ("mid", 2, 0.05), pod(), spot=True)
    dear = tuple(spot(f"s{number}", 0.02 + number * 0.02) for number in range(15))
    assert consolidate(fleet(node, types=dear)) is None
    cheap = tuple(spot(f"s{number}", 0.02 + number * 0.001) for number in range(15))
    assert names(consolidate(fleet(node, types=cheap))) == ["node"]
    assert consolidate(fleet(node, types=cheap[:14])) is None


def test_what_comes_has_the_least_values_that_its_pool_asks_for_below_its_ceiling():
    """A claim that may be one type alone, where the pool asks for three, would never be bound."""
    least = Requirements.of([{"key": INSTANCE_TYPE, "operator": "Exists", "minValues": 3}])
    node = running("node", LARGE, pod())
    for prices, goes in (((0.1, 0.35, 0.355), []), ((0.1, 0.15, 0.2), ["node"]), ((0.1, 0.15), [])):
        types = tuple(node_type(f"t{number}", 2, usd) for number, usd in enumerate(prices))
        whole = fleet(node, types=types)
        pools = tuple(replace(pool, requirements=least) for pool in whole.pools)
        assert names(consolidate(replace(whole, pools=pools))) == goes, prices


def test_a_search_whose_time_is_over_decides_only_what_is_safe_and_saves():
    nodes = [running(f"n{number:02}", LARGE, *[pod(700 + 300 * (number % 4))] * 2) for number in range(24)]
    whole, cut = fleet(*nodes), []
    for limit in range(40):
        calls = count()
        settings = Settings(careful=True, expired=lambda calls=calls, limit=limit: next(calls) >= limit)
        decision = consolidate(whole, settings)
        cut.append(decision.saving if decision is not None else 0.0)
        if decision is not None:
            assert decision.saving > 0
            there = sum(not homeless_pods(whole, [node]) for node in decision.nodes)
            assert there == len(decision.nodes)
            assert decision.replacements or not homeless_pods(whole, decision.nodes)
    assert cut[0] == 0.0
    assert cut[-1] > 0.0
    assert len(set(cut)) > 2, "what was found until then counts"


def own(name, kind, *pods):
    """A machine that its owner has anyway, and says to be dearer than all that is rented."""
    node = running(name, kind, *pods)
    weight = OWN_TYPE.weight(OWN_TYPE.offerings[0])
    return replace(node, price=weight, own_usd_hour=5.0)


OWN_TYPE = replace(TYPES[1], name="hosts.large", provider="hosts", owned=True, unit_price=1.0, cost=5.0)


def test_pods_leave_rented_nodes_for_own_ones_and_never_the_other_way():
    host, rented = own("host", LARGE, pod()), running("rented", SMALL, pod())
    decision = consolidate(fleet(host, rented, types=(*TYPES, OWN_TYPE)))
    assert (names(decision), decision.replacements) == (["rented"], ())
    # Not even where a rented node of a tenth of the price would do, nor where own ones could be fewer.
    assert consolidate(fleet(host, types=TYPES)) is None
    assert consolidate(fleet(host, own("other", LARGE, pod()), types=(*TYPES, OWN_TYPE))) is None


def test_a_rented_node_is_replaced_by_an_own_one_and_its_price_is_counted():
    decision = consolidate(fleet(running("rented", SMALL, pod(2000)), types=(*TYPES, OWN_TYPE)))
    (replacement,) = decision.replacements
    assert replacement.claim.row.node_type.name == "hosts.large"
    assert (decision.price_before, decision.price_after) == (0.1, 0.36)
