"""Choices from a handful of node types."""

from __future__ import annotations

import pytest

from stockyard.domain.nodes.node_types import Offering
from stockyard.domain.values.requirements import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODE_TYPE,
    ZONE,
    Requirement,
    Requirements,
)
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import (
    Availability,
    SchedulingRequest,
    choose,
    choose_all,
    possible_offerings,
    unserved_types,
)

NOTHING = Availability()


def name(choice):
    return None if choice is None else choice.node_type.name


def test_choose_returns_cheapest_match(node_type, asking):
    index = Index.build([node_type("p.big", 3.0, cpu=16), node_type("p.small", 1.0), node_type("p.middle", 2.0, cpu=8)])
    assert name(choose(index, asking(), NOTHING)) == "p.small"
    assert name(choose(index, asking(cpu="4001m"), NOTHING)) == "p.middle"
    assert name(choose(index, asking(cpu="8", memory="8"), NOTHING)) == "p.middle"
    assert choose(index, asking(cpu="17"), NOTHING) is None
    assert choose(index, asking(vendor="1"), NOTHING) is None
    assert name(choose(index, asking(vendor="0"), NOTHING)) == "p.small"


def test_choose_orders_by_price_over_providers_and_by_cost_within_one(node_type, asking):
    node_types = [
        node_type("p.a", 3.0, cost=1, cost_given=True),
        node_type("p.b", 2.0),
        node_type("q.c", cost=100, unit_price=0.01),
        node_type("r.d", cost=1),
    ]
    index = Index.build(node_types)
    first = choose(index, asking(), NOTHING, candidates=9)
    assert [name(offering) for offering in (first, *first.alternatives)] == ["q.c", "p.b", "p.a", "r.d"]
    assert (first.usd_hour, first.cost) == (1.0, 100)
    assert first.alternatives[-1].usd_hour is None
    assert name(choose(index, asking(provider="p"), NOTHING)) == "p.a"
    assert choose(index, asking(provider="nobody"), NOTHING) is None


def test_choose_breaks_ties_by_name_then_capacity_type(node_type, asking):
    both = (Offering("spot", ("a",), 1.0), Offering("on-demand", ("a",), 1.0))
    index = Index.build([node_type("p.b", offerings=both), node_type("p.a", offerings=both)])
    first = choose(index, asking((CAPACITY_TYPE, "Exists")), NOTHING, candidates=2)
    ways = [(name(offering), offering.capacity_type) for offering in (first, *first.alternatives)]
    assert ways == [("p.a", "on-demand"), ("p.a", "spot"), ("p.b", "on-demand")]


def test_choose_requires_zone_and_capacity_type_in_same_offering(node_type, asking):
    ways = (Offering("on-demand", ("a", "b"), 1.0), Offering("spot", ("b", "c"), 0.3))
    index = Index.build([node_type("p.x", offerings=ways)])
    spot_in_a = asking((ZONE, "In", "a"), (CAPACITY_TYPE, "In", "spot"))
    assert choose(index, spot_in_a, NOTHING) is None
    choice = choose(index, asking((ZONE, "NotIn", "c"), (CAPACITY_TYPE, "In", "spot")), NOTHING)
    assert (choice.capacity_type, choice.zones, choice.usd_hour) == ("spot", ("b",), 0.3)
    assert choose(index, asking((ZONE, "DoesNotExist")), NOTHING) is None
    assert choose(Index.build([node_type("p.x", zones=("*",))]), asking((ZONE, "In", "q")), NOTHING).zones == ("*",)


def test_choose_excludes_refused_offerings(node_type, asking):
    index = Index.build([node_type("p.x", 1.0, zones=("a", "b")), node_type("p.y", 2.0)])
    other_zone = choose(index, asking(), Availability(refused=frozenset({("p.x", "on-demand", "a")})))
    assert (name(other_zone), other_zone.zones) == ("p.x", ("b",))
    in_a = asking((ZONE, "In", "a"))
    assert name(choose(index, in_a, Availability(refused=frozenset({("p.x", "on-demand", "a")})))) == "p.y"
    assert name(choose(index, asking(), Availability(refused=frozenset({("p.x", "on-demand", "*")})))) == "p.y"
    assert (
        name(choose(index, asking(), Availability(refused=frozenset({("p.x", "spot", "*"), ("q", "spot", "a")}))))
        == "p.x"
    )


def test_what_can_be_anywhere_is_refused_to_those_who_name_the_zones_where_it_was(node_type, asking):
    index = Index.build([node_type("p.x", 1.0, zones=("*",))])
    in_b = Availability(refused=frozenset({("p.x", "on-demand", "b")}))
    assert choose(index, asking((ZONE, "In", "b")), in_b) is None
    for requirement in ((ZONE, "In", "a"), (ZONE, "In", "a", "b"), (ZONE, "NotIn", "a")):
        assert name(choose(index, asking(requirement), in_b)) == "p.x"
    assert name(choose(index, asking(), in_b)) == "p.x"
    both = Availability(refused=frozenset({("p.x", "on-demand", "a"), ("p.x", "on-demand", "b")}))
    assert choose(index, asking((ZONE, "In", "a", "b")), both) is None


def test_choose_all_uses_up_limited_types_in_order_of_claims(node_type, asking):
    index = Index.build([node_type("p.few", 1.0, limited=True), node_type("p.many", 2.0, limited=False)])
    claims = [asking(), asking(provider="p"), asking(), asking(cpu="5")]
    availability = Availability({"p.few": 2})
    assert [name(choice) for choice in choose_all(index, claims, availability)] == ["p.few", "p.few", "p.many", None]
    assert availability.free == {"p.few": 2}
    assert [name(choice) for choice in choose_all(index, claims, NOTHING)] == ["p.many", "p.many", "p.many", None]
    assert name(choose_all(index, claims, Availability({"p.few": -3}))[0]) == "p.many"


def test_choose_all_shares_free_nodes_between_tables(node_type, asking):
    """A pass that starts later sees what others took before."""
    index = Index.build([node_type("p.few", 1.0, limited=True), node_type("q.other", 2.0)])
    choices = choose_all(
        index,
        [asking(), asking(provider="p"), asking()],
        Availability({"p.few": 1}),
    )
    assert [name(choice) for choice in choices] == ["p.few", None, "q.other"]


def test_choose_never_returns_unrequested_extended_resources(node_type, asking):
    gpu = node_type("p.gpu", 1.0, allocatable={"nvidia/gpu": 1000})
    index = Index.build([gpu, node_type("p.plain", 9.0)])
    assert name(choose(index, asking(), NOTHING)) == "p.plain"
    assert name(choose(index, asking(nvidia_gpu="0"), NOTHING)) == "p.plain"
    assert name(choose(index, asking(nvidia_gpu="1"), NOTHING)) == "p.gpu"
    assert choose(Index.build([gpu]), asking(), NOTHING) is None


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
def test_choose_returns_allowed_node_types_only(node_type, asking, allowed, expected):
    index = Index.build([node_type("p.a", 1.0), node_type("p.b", 2.0), node_type("q.a", 3.0)])
    assert name(choose(index, asking(allowed=allowed), NOTHING)) == expected


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
def test_choose_accepts_all_spellings_of_node_type_names(node_type, asking, entry, provider, expected):
    node_types = [
        node_type("p.m6i.large", 1.0, label="m6i.large"),
        node_type("q.m6i.large", 2.0, label="m6i.large"),
        node_type("q.only", 3.0),
    ]
    assert name(choose(Index.build(node_types), asking(entry, provider=provider), NOTHING)) == expected


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
def test_choose_matches_properties(node_type, asking, entry, expected):
    node_types = [
        node_type("p.four", 1.0, size="4"),
        node_type("p.list", 2.0, size=("2", "16")),
        node_type("p.any", 3.0, size="*"),
        node_type("p.none", 4.0),
    ]
    assert name(choose(Index.build(node_types), asking(entry), NOTHING)) == expected


def test_choose_matches_two_bounds_with_one_value(node_type, asking):
    index = Index.build([node_type("p.list", 1.0, size=("2", "16")), node_type("p.eight", 2.0, size="8")])
    assert name(choose(index, asking(("size", "Gt", "4"), ("size", "Lt", "10")), NOTHING)) == "p.eight"


def least(key, operator, values, count):
    return SchedulingRequest(Requirements({key: Requirement.of(operator, values, count)}))


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
def test_choose_respects_min_values(node_type, claim, refused, expected):
    node_types = [
        node_type("p.a", 1.0, size="4"),
        node_type("p.b", 2.0, size="8"),
        node_type("p.c", 3.0, size="*", zones=("z",)),
    ]
    assert name(choose(Index.build(node_types), claim, Availability(refused=frozenset(refused)))) == expected


def test_choose_excludes_unavailable_and_oversubscribed_types(node_type, asking):
    index = Index.build(
        [
            node_type("p.a", 1.0, available=False),
            node_type("p.b", 2.0, allocatable={"pods": -1}),
            node_type("p.d", 2.5, unserved="no image"),
            node_type("p.c", 3.0),
        ]
    )
    assert name(choose(index, asking(), NOTHING)) == "p.c"
    assert [each.name for each in unserved_types(index, asking())] == ["p.d"]
    assert list(unserved_types(index, asking(("size", "Exists")))) == []


def test_choose_excludes_types_without_offering_or_zone(node_type, asking):
    assert choose(Index.build([node_type("p.a", offerings=()), node_type("p.b", zones=())]), asking(), NOTHING) is None
    assert choose(Index.build([]), asking(), NOTHING) is None


def test_choose_limits_number_of_alternatives(node_type, asking):
    index = Index.build([node_type(f"p.{number}", float(number)) for number in range(9)])
    first = choose(index, asking(), NOTHING, candidates=3)
    assert [alternative.node_type.name for alternative in first.alternatives] == ["p.1", "p.2", "p.3"]
    assert choose(index, asking(), NOTHING).alternatives == ()
    (batch_choice,) = choose_all(index, [asking()], NOTHING, candidates=3)
    assert batch_choice == first


@pytest.mark.parametrize("key", [NODE_TYPE, INSTANCE_TYPE])
def test_who_names_a_type_gets_it_though_it_is_kept_for_others(node_type, asking, key):
    index = Index.build([node_type("p.gpu", 1.0, allocatable={"vendor/gpu": 1000}), node_type("p.plain", 2.0)])
    assert name(choose(index, asking(), NOTHING)) == "p.plain"
    assert name(choose(index, asking((key, "In", "p.gpu")), NOTHING)) == "p.gpu"
    assert name(choose(index, asking((key, "In", "p.gpu", "p.plain")), NOTHING)) == "p.plain"
    assert choose(index, asking((key, "NotIn", "p.plain")), NOTHING) is None


def test_small_machines_are_for_those_who_ask_for_them(node_type, asking):
    index = Index.build([node_type("p.nano", 1.0, small=True), node_type("p.large", 2.0)])
    assert name(choose(index, asking(cpu="1"), NOTHING)) == "p.large"
    assert name(choose(index, asking(cpu="1", memory="0"), NOTHING)) == "p.large"
    assert name(choose(index, asking(memory="1"), NOTHING)) == "p.nano"
    assert name(choose(index, asking((NODE_TYPE, "In", "p.nano", "p.large")), NOTHING)) == "p.nano"
    assert [name(row) for row in possible_offerings(index, asking(), NOTHING)] == ["p.large"]
    named = asking((INSTANCE_TYPE, "In", "p.nano"))
    assert [name(row) for row in possible_offerings(index, named, NOTHING)] == ["p.nano"]
