"""Why: the first rule against each kind, in the stated order."""

from __future__ import annotations

import pytest

from stockyard.domain.node_types import Offering
from stockyard.domain.requirements import NODE_TYPE, ZONE, Requirement, Requirements
from stockyard.scheduling.explain import RULES, Reason, explain, reasons
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import State, Wanted


def only(kinds, claim, state=None):
    (verdict,) = explain(Index.build([kinds]), claim, state or State())
    return verdict


def test_each_rule_in_its_order(kind):
    """A kind that breaks every rule is ruled out by the first; mended one by one, by the next."""
    broken = {
        "name": "q.x",
        "available": False,
        "size": "2",
        "cpu": 1,
        "allocatable": {"vendor/x": 1000},
        "zones": ("b",),
        "limited": True,
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
    }
    state = State(refused=frozenset({("p.x", "on-demand", "a")}))
    mends = [
        {"name": "p.x"},
        {"claim": {"out_of_reach": frozenset()}},
        {"claim": {"allowed": None}},
        {"available": True},
        {"size": "4"},
        {"allocatable": {}},
        {"cpu": 2},
        {"zones": ("a",)},
        {"limited": False},
        {"state": State()},
        {"kubernetes.io/arch": "amd64"},
        {},
    ]
    claim["allowed"] = ("p.none",)
    found = []
    for mend in mends:
        found.append(only(kind(**broken), Wanted(**claim), state).rule)
        claim |= mend.pop("claim", {})
        state = mend.pop("state", state)
        broken |= mend
    assert found == [*RULES, None]


def test_the_chosen_and_those_that_cost_more(kind, wanted):
    kinds = [kind("p.a", 2.0), kind("q.b", 1.0), kind("r.c"), kind("p.d", 0.5, cpu=1)]
    verdicts = explain(Index.build(kinds), wanted(cpu="2"), State())
    assert [(one.kind.name, one.rule, one.chosen) for one in verdicts] == [
        ("q.b", None, True),
        ("p.a", None, False),
        ("r.c", None, False),
        ("p.d", "Resource", False),
    ]
    assert [(one.usd_hour, one.cost) for one in verdicts] == [(1.0, 1.0), (2.0, 2.0), (None, 40), (0.5, 0.5)]
    assert [one.message for one in verdicts] == [
        "the cheapest that fits",
        "it fits, but others come first",
        "it fits, but others come first; no price is known, so it ranks last",
        "cpu: 2 asked, 1 allocatable",
    ]
    assert "no price" not in explain(Index.build(kinds), wanted(provider="r"), State())[0].message


def test_a_full_one_is_named_with_its_price(kind, wanted):
    kinds = [kind("p.a", 1.0, limited=True), kind("q.b", 2.0)]
    chosen, full = explain(Index.build(kinds), wanted(), State())
    assert (chosen.kind.name, chosen.usd_hour) == ("q.b", 2.0)
    assert (full.kind.name, full.rule, full.usd_hour, full.message) == ("p.a", "Full", 1.0, "all its nodes are taken")


@pytest.mark.parametrize(
    ("made", "claim", "state", "subject", "message"),
    [
        (
            {"size": ("2", "3")},
            [("size", "Gt", "4"), ("size", "Lt", "9")],
            State(),
            "size",
            "size is 2, 3; asked is Gte 5 and Lte 8",
        ),
        ({}, [("team", "Exists")], State(), "team", "team is not there; asked is Exists"),
        ({"label": "x"}, [(NODE_TYPE, "In", "y")], State(), NODE_TYPE, f"{NODE_TYPE} is p.a; asked is In y"),
        (
            {"allocatable": {"vendor/x": 1000}},
            [],
            State(),
            "vendor/x",
            "it has vendor/x, which the claim does not ask for",
        ),
        ({"allocatable": {"pods": -1000}}, [], State(), "pods", "pods: its overhead is larger than what it has"),
        (
            {},
            [(ZONE, "In", "z")],
            State(),
            "",
            "no offering has the capacity type and a zone as asked; it has on-demand in a, b",
        ),
        ({"offerings": ()}, [], State(), "", "no offering has the capacity type and a zone as asked; it has nothing"),
        (
            {},
            [],
            State(refused=frozenset({("p.a", "on-demand", "*")})),
            "",
            "the provider refused it a short while ago in a, b",
        ),
    ],
)
def test_messages(kind, wanted, made, claim, state, subject, message):
    verdict = only(kind("p.a", 1.0, **made), wanted(*claim), state)
    assert (verdict.subject, verdict.message) == (subject, message)


def test_too_few_values_rule_out_all_that_are_left(kind):
    claim = Wanted(Requirements({"size": Requirement.of("Exists", (), 3)}))
    verdicts = explain(Index.build([kind("p.a", size="1"), kind("p.b", size="2"), kind("p.c")]), claim, State())
    assert [(one.kind.name, one.rule) for one in verdicts] == [
        ("p.a", "MinValues"),
        ("p.b", "MinValues"),
        ("p.c", "Requirement"),
    ]
    assert verdicts[0].message == "size: 2 values are left to choose from, minValues is 3"


def test_the_cheapest_way_of_a_kind_is_shown(kind, wanted):
    ways = (Offering("on-demand", ("a",), 2.0), Offering("spot", ("a", "b"), 1.0))
    verdict = only(kind("p.a", offerings=ways), wanted((ZONE, "In", "b", "a")))
    assert (verdict.capacity_type, verdict.zones, verdict.usd_hour) == ("spot", ("a", "b"), 1.0)


def test_reasons_are_counted_per_rule(kind, wanted):
    kinds = [kind("p.a", size="1"), kind("p.b", size="1"), kind("p.c", size="9", cpu=1), kind("q.d", size="9")]
    verdicts = explain(Index.build(kinds), wanted(("size", "Gt", "4"), cpu="2", provider="p"), State())
    assert reasons(verdicts) == [
        Reason("Provider", "", 1, "1 node type of another provider"),
        Reason("Requirement", "size", 2, "2 node types without a value of size as asked"),
        Reason("Resource", "cpu", 1, "1 node type without enough cpu"),
    ]
    assert reasons(explain(Index.build(kinds), wanted(), State())) == []
