"""What is chosen, from a handful of kinds."""

from __future__ import annotations

import pytest

from stockyard.domain.node_types import Offering
from stockyard.domain.requirements import CAPACITY_TYPE, INSTANCE_TYPE, NODE_TYPE, ZONE, Requirement, Requirements
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import State, Wanted, choose, choose_all

NOTHING = State()


def name(choice):
    return None if choice is None else choice.kind.name


def test_the_cheapest_that_fits(kind, wanted):
    index = Index.build([kind("p.big", 3.0, cpu=16), kind("p.small", 1.0), kind("p.middle", 2.0, cpu=8)])
    assert name(choose(index, wanted(), NOTHING)) == "p.small"
    assert name(choose(index, wanted(cpu="4001m"), NOTHING)) == "p.middle"
    assert name(choose(index, wanted(cpu="8", memory="8"), NOTHING)) == "p.middle"
    assert choose(index, wanted(cpu="17"), NOTHING) is None
    assert choose(index, wanted(vendor="1"), NOTHING) is None
    assert name(choose(index, wanted(vendor="0"), NOTHING)) == "p.small"


def test_money_decides_over_providers_and_cost_within_one(kind, wanted):
    kinds = [
        kind("p.a", 3.0, cost=1, cost_given=True),
        kind("p.b", 2.0),
        kind("q.c", cost=100, unit_price=0.01),
        kind("r.d", cost=1),
    ]
    index = Index.build(kinds)
    first = choose(index, wanted(), NOTHING, candidates=9)
    assert [name(one) for one in (first, *first.alternatives)] == ["q.c", "p.b", "p.a", "r.d"]
    assert (first.usd_hour, first.cost) == (1.0, 100)
    assert first.alternatives[-1].usd_hour is None
    assert name(choose(index, wanted(provider="p"), NOTHING)) == "p.a"
    assert choose(index, wanted(provider="nobody"), NOTHING) is None


def test_ties_go_by_name_then_capacity_type(kind, wanted):
    both = (Offering("spot", ("a",), 1.0), Offering("on-demand", ("a",), 1.0))
    index = Index.build([kind("p.b", offerings=both), kind("p.a", offerings=both)])
    first = choose(index, wanted(), NOTHING, candidates=2)
    ways = [(name(one), one.capacity_type) for one in (first, *first.alternatives)]
    assert ways == [("p.a", "on-demand"), ("p.a", "spot"), ("p.b", "on-demand")]


def test_one_offering_must_have_both_zone_and_capacity_type(kind, wanted):
    ways = (Offering("on-demand", ("a", "b"), 1.0), Offering("spot", ("b", "c"), 0.3))
    index = Index.build([kind("p.x", offerings=ways)])
    spot_in_a = wanted((ZONE, "In", "a"), (CAPACITY_TYPE, "In", "spot"))
    assert choose(index, spot_in_a, NOTHING) is None
    found = choose(index, wanted((ZONE, "NotIn", "c"), (CAPACITY_TYPE, "In", "spot")), NOTHING)
    assert (found.capacity_type, found.zones, found.usd_hour) == ("spot", ("b",), 0.3)
    assert choose(index, wanted((ZONE, "DoesNotExist")), NOTHING) is None
    assert choose(Index.build([kind("p.x", zones=("*",))]), wanted((ZONE, "In", "q")), NOTHING).zones == ("*",)


def test_what_was_refused_is_left_out(kind, wanted):
    index = Index.build([kind("p.x", 1.0, zones=("a", "b")), kind("p.y", 2.0)])
    some = choose(index, wanted(), State(refused=frozenset({("p.x", "on-demand", "a")})))
    assert (name(some), some.zones) == ("p.x", ("b",))
    in_a = wanted((ZONE, "In", "a"))
    assert name(choose(index, in_a, State(refused=frozenset({("p.x", "on-demand", "a")})))) == "p.y"
    assert name(choose(index, wanted(), State(refused=frozenset({("p.x", "on-demand", "*")})))) == "p.y"
    assert name(choose(index, wanted(), State(refused=frozenset({("p.x", "spot", "*"), ("q", "spot", "a")})))) == "p.x"


def test_limited_kinds_are_taken_in_the_order_of_the_claims(kind, wanted):
    index = Index.build([kind("p.few", 1.0, limited=True), kind("p.many", 2.0, limited=False)])
    claims = [wanted(), wanted(provider="p"), wanted(), wanted(cpu="5")]
    state = State({"p.few": 2})
    assert [name(one) for one in choose_all(index, claims, state)] == ["p.few", "p.few", "p.many", None]
    assert state.free == {"p.few": 2}
    assert [name(one) for one in choose_all(index, claims, NOTHING)] == ["p.many", "p.many", "p.many", None]
    assert name(choose_all(index, claims, State({"p.few": -3}))[0]) == "p.many"


def test_one_provider_after_the_other_shares_what_is_left(kind, wanted):
    """A pass that starts later sees what others took before."""
    index = Index.build([kind("p.few", 1.0, limited=True), kind("q.other", 2.0)])
    chosen = choose_all(index, [wanted(), wanted(provider="p"), wanted()], State({"p.few": 1}))
    assert [name(one) for one in chosen] == ["p.few", None, "q.other"]


def test_extended_resources_are_never_given_unasked(kind, wanted):
    gpu = kind("p.gpu", 1.0, allocatable={"nvidia/gpu": 1000})
    index = Index.build([gpu, kind("p.plain", 9.0)])
    assert name(choose(index, wanted(), NOTHING)) == "p.plain"
    assert name(choose(index, wanted(nvidia_gpu="0"), NOTHING)) == "p.plain"
    assert name(choose(index, wanted(nvidia_gpu="1"), NOTHING)) == "p.gpu"
    assert choose(Index.build([gpu]), wanted(), NOTHING) is None


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        (None, "p.a"),
        ((), None),
        (("p.*",), "p.a"),
        (("q.*",), "q.a"),
        (("q.a", "p.b"), "p.b"),
        (("a", "P.*", "*", "p*", "p."), None),
    ],
)
def test_allowed_node_types(kind, wanted, allowed, expected):
    index = Index.build([kind("p.a", 1.0), kind("p.b", 2.0), kind("q.a", 3.0)])
    assert name(choose(index, wanted(allowed=allowed), NOTHING)) == expected


@pytest.mark.parametrize(
    ("entry", "provider", "expected"),
    [
        ((NODE_TYPE, "In", "p.m6i.large"), None, "p.m6i.large"),
        ((NODE_TYPE, "In", "m6i.large"), None, None),
        ((NODE_TYPE, "In", "m6i.large"), "q", "q.m6i.large"),
        ((NODE_TYPE, "In", "only"), None, "q.only"),
        ((INSTANCE_TYPE, "In", "only"), None, "q.only"),
        ((INSTANCE_TYPE, "In", "m6i.large"), None, "p.m6i.large"),
        ((INSTANCE_TYPE, "NotIn", "m6i.large"), None, "q.only"),
        ((NODE_TYPE, "NotIn", "p.m6i.large", "only"), None, "q.m6i.large"),
        ((NODE_TYPE, "Exists"), None, "p.m6i.large"),
        ((NODE_TYPE, "DoesNotExist"), None, None),
        ((NODE_TYPE, "Gt", "1"), None, None),
        ((INSTANCE_TYPE, "In", "unknown"), None, None),
    ],
)
def test_names_of_node_types_in_all_spellings(kind, wanted, entry, provider, expected):
    kinds = [
        kind("p.m6i.large", 1.0, label="m6i.large"),
        kind("q.m6i.large", 2.0, label="m6i.large"),
        kind("q.only", 3.0),
    ]
    assert name(choose(Index.build(kinds), wanted(entry, provider=provider), NOTHING)) == expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (("size", "In", "4"), "p.four"),
        (("size", "Gt", "4"), "p.list"),
        (("size", "Gte", "4"), "p.four"),
        (("size", "Lt", "4"), "p.list"),
        (("size", "Gt", "16"), "p.any"),
        (("size", "Exists"), "p.four"),
        (("size", "DoesNotExist"), "p.none"),
        (("size", "NotIn", "4"), "p.list"),
        (("size", "NotIn", "4", "2", "16"), "p.any"),
        (("other", "NotIn", "4"), "p.four"),
        (("other", "DoesNotExist"), "p.four"),
        (("other", "Exists"), None),
        (("kubernetes.io/arch", "In", "amd64"), None),
        (("kubernetes.io/arch", "NotIn", "amd64"), "p.four"),
    ],
)
def test_properties(kind, wanted, entry, expected):
    kinds = [
        kind("p.four", 1.0, size="4"),
        kind("p.list", 2.0, size=("2", "16")),
        kind("p.any", 3.0, size="*"),
        kind("p.none", 4.0),
    ]
    assert name(choose(Index.build(kinds), wanted(entry), NOTHING)) == expected


def test_two_bounds_are_met_by_one_value(kind, wanted):
    index = Index.build([kind("p.list", 1.0, size=("2", "16")), kind("p.eight", 2.0, size="8")])
    assert name(choose(index, wanted(("size", "Gt", "4"), ("size", "Lt", "10")), NOTHING)) == "p.eight"


def least(key, operator, values, count):
    return Wanted(Requirements({key: Requirement.of(operator, values, count)}))


@pytest.mark.parametrize(
    ("claim", "refused", "expected"),
    [
        (least("size", "Exists", (), 2), (), "p.a"),
        (least("size", "Exists", (), 3), (), None),
        (least("size", "In", ("4", "9"), 2), (), None),
        (least(NODE_TYPE, "Exists", (), 3), (), "p.a"),
        (least(INSTANCE_TYPE, "In", ("p.a", "b"), 2), (), "p.a"),
        (least(NODE_TYPE, "Exists", (), 4), (), None),
        (least(ZONE, "Exists", (), 3), (), "p.a"),
        (least(ZONE, "Exists", (), 3), [("p.c", "on-demand", "z")], None),
        (least(ZONE, "In", ("z", "a"), 2), (), "p.a"),
        (least(CAPACITY_TYPE, "Exists", (), 2), (), None),
        (least("nowhere", "NotIn", ("a",), 1), (), None),
    ],
)
def test_min_values(kind, claim, refused, expected):
    kinds = [kind("p.a", 1.0, size="4"), kind("p.b", 2.0, size="8"), kind("p.c", 3.0, size="*", zones=("z",))]
    assert name(choose(Index.build(kinds), claim, State(refused=frozenset(refused)))) == expected


def test_what_is_not_available_or_not_sound_is_never_chosen(kind, wanted):
    index = Index.build(
        [kind("p.a", 1.0, available=False), kind("p.b", 2.0, allocatable={"pods": -1}), kind("p.c", 3.0)]
    )
    assert name(choose(index, wanted(), NOTHING)) == "p.c"


def test_a_kind_without_offering_or_zone_is_never_chosen(kind, wanted):
    assert choose(Index.build([kind("p.a", offerings=()), kind("p.b", zones=())]), wanted(), NOTHING) is None
    assert choose(Index.build([]), wanted(), NOTHING) is None


def test_alternatives_are_cut(kind, wanted):
    index = Index.build([kind(f"p.{number}", float(number)) for number in range(9)])
    first = choose(index, wanted(), NOTHING, candidates=3)
    assert [one.kind.name for one in first.alternatives] == ["p.1", "p.2", "p.3"]
    assert choose(index, wanted(), NOTHING).alternatives == ()
    (same,) = choose_all(index, [wanted()], NOTHING, candidates=3)
    assert same == first
