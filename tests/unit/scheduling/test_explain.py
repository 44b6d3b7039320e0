"""Explanations: the first rule against each node type, in the stated order."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.nodes.node_types import Offering
from stockyard.domain.pools.bids import Bid
from stockyard.domain.values.requirements import CAPACITY_TYPE, NODE_TYPE, ZONE, Requirement, Requirements
from stockyard.scheduling.explain import RULES, explain
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability, SchedulingRequest


def only(node_types, claim, availability=None):
    (evaluation,) = explain(Index.build([node_types]), claim, availability or Availability())
    return evaluation


def test_explain_names_first_rule_in_order(node_type):
    """A node type that breaks every rule is ruled out by the first; mended one by one, by the next."""
    broken = {
        "name": "q.x",
        "available": False,
        "size": "2",
        "cpu": 1,
        "allocatable": {"vendor/x": 1000},
        "offerings": (Offering("spot", ("b",), 1.0),),
        "limited": True,
        "small": True,
        "unserved": "no image",
        "kubernetes.io/arch": "riscv64",
    }
    claim = {
        "requirements": Requirements.of(
            [
                {"key": "size", "values": ["4"], "minValues": 1},
                {"key": ZONE, "values": ["a"]},
                {"key": "kubernetes.io/arch", "operator": "NotIn", "values": ["arm64"], "minValues": 1},
            ]
        ),
        "resources": {"cpu": 2000},
        "provider": "p",
        "allowed": ("p.*",),
        "out_of_reach": frozenset({"p"}),
        "bid": Bid(percent=50),
        "images": {"p": frozenset({"amd64"})},
        "defaults": {CAPACITY_TYPE: "on-demand"},
    }
    availability = Availability(refused=frozenset({("p.x", "spot", "a")}))
    mends: list[dict[str, Any]] = [
        {"name": "p.x"},
        {"claim": {"out_of_reach": frozenset()}},
        {"claim": {"allowed": None}},
        {"available": True},
        {"size": "4"},
        {"allocatable": {}},
        {"cpu": 2},
        {"small": False},
        {"unserved": None},
        {"kubernetes.io/arch": "*"},
        {"offerings": (Offering("spot", ("a",), 1.0, {}, 1.5), Offering("spot", ("c",), 0.1))},
        {"claim": {"defaults": {}}},
        {"limited": False},
        {"state": Availability()},
        {"claim": {"bid": Bid(percent=67)}},
        {"kubernetes.io/arch": "amd64"},
        {},
    ]
    claim["allowed"] = ("p.none",)
    excluded_by = []
    for mend in mends:
        excluded_by.append(only(node_type(**broken), SchedulingRequest(**claim), availability).rule)
        claim |= mend.pop("claim", {})
        availability = mend.pop("state", availability)
        broken |= mend
    assert excluded_by == [*RULES, None]


def test_explain_lists_selected_then_more_expensive_node_types(node_type, asking):
    node_types = [node_type("p.a", 2.0), node_type("q.b", 1.0), node_type("r.c"), node_type("p.d", 0.5, cpu=1)]
    evaluations = explain(Index.build(node_types), asking(cpu="2"), Availability())
    assert [(evaluation.node_type.name, evaluation.rule, evaluation.selected) for evaluation in evaluations] == [
        ("q.b", None, True),
        ("p.a", None, False),
        ("r.c", None, False),
        ("p.d", "Resource", False),
    ]
    assert [(evaluation.usd_hour, evaluation.cost) for evaluation in evaluations] == [
        (1.0, 1.0),
        (2.0, 2.0),
        (None, 40),
        (0.5, 0.5),
    ]
    assert [evaluation.message for evaluation in evaluations] == [
        "the cheapest that fits",
        "it fits, but others come first",
        "it fits, but others come first; no price is known, so it ranks last",
        "cpu: 2 asked, 1 allocatable",
    ]
    assert "no price" not in explain(Index.build(node_types), asking(provider="r"), Availability())[0].message


def test_amounts_are_plain_numbers(node_type, asking):
    evaluation = only(node_type("p.a", allocatable={"cpu": 47_810}), asking(cpu="1000"))
    assert evaluation.message == "cpu: 1000 asked, 47.81 allocatable"


def test_what_was_excluded_comes_in_order_of_rules(node_type, asking):
    node_types = [node_type("p.a", cpu=1), node_type("p.b", available=False), node_type("p.c"), node_type("p.d", cpu=1)]
    evaluations = explain(Index.build(node_types), asking(cpu="2"), Availability())
    assert [evaluation.node_type.name for evaluation in evaluations] == ["p.c", "p.b", "p.a", "p.d"]


def test_explain_shows_price_of_full_node_type(node_type, asking):
    node_types = [node_type("p.a", 1.0, limited=True), node_type("q.b", 2.0)]
    selected, full = explain(Index.build(node_types), asking(), Availability())
    assert (selected.node_type.name, selected.usd_hour) == ("q.b", 2.0)
    assert (full.node_type.name, full.rule, full.usd_hour, full.message) == (
        "p.a",
        "Full",
        1.0,
        "all its nodes are taken",
    )


@pytest.mark.parametrize(
    ("fields", "claim", "availability", "subject", "message"),
    [
        (
            {"size": ("2", "3")},
            [("size", "Gt", "4"), ("size", "Lt", "9")],
            Availability(),
            "size",
            "size is 2, 3; asked is Gte 5 and Lte 8",
        ),
        ({}, [("team", "Exists")], Availability(), "team", "team is not there; asked is Exists"),
        ({"label": "x"}, [(NODE_TYPE, "In", "y")], Availability(), NODE_TYPE, f"{NODE_TYPE} is p.a; asked is In y"),
        (
            {"allocatable": {"vendor/x": 1000}},
            [],
            Availability(),
            "vendor/x",
            "it has vendor/x, which the claim does not ask for",
        ),
        (
            {"small": True, "allocatable": {"memory": 2**29 * 1000}},
            [],
            Availability(),
            "",
            "it has 512Mi of memory; below 2Gi its type or its memory has to be asked for",
        ),
        ({"allocatable": {"pods": -1000}}, [], Availability(), "pods", "pods: its overhead is larger than what it has"),
        (
            {},
            [(ZONE, "In", "z")],
            Availability(),
            "",
            "no offering has the capacity type and a zone as asked; it has on-demand in a, b",
        ),
        (
            {"offerings": ()},
            [],
            Availability(),
            "",
            "no offering has the capacity type and a zone as asked; it has nothing",
        ),
        (
            {},
            [],
            Availability(refused=frozenset({("p.a", "on-demand", "*")})),
            "",
            "the provider refused it a short while ago in a, b",
        ),
    ],
)
def test_explain_messages(node_type, asking, fields, claim, availability, subject, message):
    evaluation = only(node_type("p.a", 1.0, **fields), asking(*claim), availability)
    assert (evaluation.subject, evaluation.message) == (subject, message)


def test_min_values_rules_out_all_remaining_node_types(node_type):
    claim = SchedulingRequest(Requirements({"size": Requirement.of("Exists", (), 3)}))
    evaluations = explain(
        Index.build([node_type("p.a", size="1"), node_type("p.b", size="2"), node_type("p.c")]), claim, Availability()
    )
    assert [(evaluation.node_type.name, evaluation.rule) for evaluation in evaluations] == [
        ("p.c", "Requirement"),
        ("p.a", "MinValues"),
        ("p.b", "MinValues"),
    ]
    assert evaluations[1].message == "size: 2 values are left to choose from, minValues is 3"


def test_explain_shows_cheapest_offering_of_node_type(node_type, asking):
    ways = (Offering("on-demand", ("a",), 2.0), Offering("spot", ("a", "b"), 1.0))
    evaluation = only(node_type("p.a", offerings=ways), asking((ZONE, "In", "b", "a"), (CAPACITY_TYPE, "Exists")))
    assert (evaluation.capacity_type, evaluation.zones, evaluation.usd_hour) == ("spot", ("a", "b"), 1.0)


def test_message_repeats_first_values_of_long_requirement_only(node_type):
    values = [f"v{number:02}" for number in range(25)]
    request = SchedulingRequest(Requirements.of([{"key": "size", "operator": "In", "values": values}]))
    message = only(node_type("p.a", size="4"), request).message
    assert message == f"size is 4; asked is In {', '.join(values[:10])} and 15 more"


def test_alike_node_types_share_what_rules_them_out(node_type):
    """The work grows with the values that node types have, not with node types times values that a claim lists."""
    asked_values = [f"v{number}" for number in range(1000)]
    request = SchedulingRequest(Requirements.of([{"key": "size", "operator": "In", "values": asked_values}]))
    evaluations = explain(Index.build([node_type(f"p.t{n}", size="4") for n in range(50)]), request, Availability())
    assert len({id(evaluation.message) for evaluation in evaluations}) == 1
