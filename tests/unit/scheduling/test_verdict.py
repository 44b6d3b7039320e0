"""Verdicts of explanations: groups of node types, and one sentence."""

from __future__ import annotations

import pytest

from stockyard.domain.values.requirements import INSTANCE_TYPE, NODE_TYPE
from stockyard.scheduling.explain import RULES, explain
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability
from stockyard.scheduling.verdict import _WORDS, MOST_TYPES, groups, of_interest, verdict


def judged(node_types, claim):
    return of_interest(explain(Index.build(node_types), claim, Availability()), claim)


def sentence(node_types, claim):
    return verdict(judged(node_types, claim), waits="it will wait")


def test_every_rule_has_words():
    assert set(_WORDS) == set(RULES)


def test_groups_are_in_order_of_rules_and_name_their_first_types(node_type, asking):
    node_types = [
        node_type("p.a", 1.0, size="9"),
        node_type("p.z", 2.0, size="9"),
        node_type("p.y", 1.5, size="9"),
        *(node_type(f"p.s{number:02}", size="1") for number in range(MOST_TYPES + 2)),
        node_type("p.off", size="9", available=False),
        node_type("p.tiny", size="9", cpu=1),
        node_type("q.d", size="9"),
    ]
    listed = groups(judged(node_types, asking(("size", "Gt", "4"), cpu="2", provider="p")))
    assert [(group.rule, group.subject, group.count, group.sentence) for group in listed] == [
        ("Fits", "", 2, "2 node types fit too, and cost no less"),
        ("Unavailable", "", 1, "1 node type not available"),
        ("Requirement", "size", 12, "12 node types without a value of size as asked"),
        ("Resource", "cpu", 1, "1 node type without enough cpu"),
    ]
    assert listed[0].types == ("p.y", "p.z")
    assert listed[2].types == tuple(f"p.s{number:02}" for number in range(MOST_TYPES))


def test_verdict_names_the_choice_and_how_many_fit(node_type, asking):
    assert sentence([node_type("p.a", 1.5), node_type("p.b", 2.0)], asking()) == (
        "p.a (on-demand) at 1.5 USD an hour: the cheapest of 2 that fit."
    )
    assert sentence([node_type("p.a")], asking()) == (
        "p.a (on-demand) at a price that is not known: the only one that fits."
    )


def test_verdict_counts_what_does_not_fit(node_type, asking):
    node_types = [
        node_type("p.off", available=False),
        node_type("p.gpu", allocatable={"nvidia.com/gpu": 1000}),
        *(node_type(f"p.s{number}") for number in range(3)),
    ]
    assert sentence(node_types, asking(cpu="64")) == (
        "No node type fits now, so it will wait: 1 not available; 1 kept for claims that ask for nvidia.com/gpu; "
        "3 without enough cpu."
    )
    assert sentence([], asking()) == "There are no node types: it will wait."


@pytest.mark.parametrize("key", [NODE_TYPE, INSTANCE_TYPE])
def test_who_names_a_type_hears_of_that_type_alone(node_type, asking, key):
    node_types = [node_type("p.a"), node_type("p.b"), node_type("q.c")]
    assert sentence(node_types, asking((key, "In", "p.b"), cpu="9")) == (
        "p.b does not fit now, so it will wait: cpu: 9 asked, 4 allocatable."
    )
    assert sentence(node_types, asking((key, "In", "p.none"))) == (
        f"No node type fits now, so it will wait: 3 without a value of {key} as asked."
    )


def test_a_label_that_no_type_has_is_told_as_one(node_type, asking):
    node_types = [node_type("p.a", **{"example.com/disk": "fast"}), node_type("p.b")]
    assert sentence(node_types, asking(("example.com/disc", "In", "fast"))) == (
        "No node type fits now, so it will wait: 2 without a value of example.com/disc as asked"
        " (no node type has this label; did you mean example.com/disk?)."
    )
    assert "no node type has" not in sentence(node_types, asking(("example.com/disk", "In", "slow")))
