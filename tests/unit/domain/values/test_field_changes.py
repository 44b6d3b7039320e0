"""Differences of documents, field by field."""

from __future__ import annotations

import pytest

from stockyard.domain.values.field_changes import change_views, field_at, field_changes, with_subject

LAB = {
    "launchSeconds": 2,
    "nodeTypes": [
        {"name": "small", "usdPerHour": 0.05, "resources": {"cpu": "2"}},
        {"name": "large", "usdPerHour": 0.2},
    ],
}


def differences(before, after):
    return [(change.path, change.field, change.before, change.after) for change in field_changes(before, after)]


def test_entries_of_lists_are_matched_by_name_and_equal_numbers_are_no_change():
    after = {
        "launchSeconds": 2.0,
        "nodeTypes": [
            {"name": "large", "usdPerHour": 0.2},
            {"name": "new", "usdPerHour": 1},
            {"name": "small", "usdPerHour": 0.07, "resources": {"cpu": "2"}},
        ],
    }
    assert differences(LAB, after) == [
        (("nodeTypes", 1), "nodeTypes[new]", None, {"name": "new", "usdPerHour": 1}),
        (("nodeTypes", 2, "usdPerHour"), "nodeTypes[small].usdPerHour", 0.05, 0.07),
    ]


def test_what_goes_has_the_position_that_it_had():
    after = {"nodeTypes": LAB["nodeTypes"][:1]}
    assert differences(LAB, after) == [
        (("nodeTypes", 1), "nodeTypes[large]", {"name": "large", "usdPerHour": 0.2}, None),
        (("launchSeconds",), "launchSeconds", 2, None),
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([1, 2], [2, 1]),
        ([{"size": 1}], [{"size": 2}]),
        ([{"key": "a", "effect": "NoExecute"}, {"key": "a"}], [{"key": "a"}]),
        (["a"], [{"name": "a"}]),
    ],
)
def test_a_list_without_names_is_one_field(before, after):
    assert differences({"x": before}, {"x": after}) == [(("x",), "x", before, after)]


def test_a_list_whose_entries_come_in_another_order_is_the_same():
    assert differences({"taints": [{"key": "a"}, {"key": "b"}]}, {"taints": [{"key": "b"}, {"key": "a"}]}) == []


def test_views_have_pointers_and_keys_with_slashes_stand_in_brackets():
    changes = field_changes({}, {"karpenter.sh/x": "1"}, ("labels",), "labels")
    assert change_views(changes, 3, "metadata", kind="node-claim", name="one") == [
        {
            "kind": "node-claim",
            "name": "one",
            "pointer": "/3/metadata/labels/karpenter.sh~1x",
            "field": "labels[karpenter.sh/x]",
            "before": None,
            "after": "1",
        }
    ]


def test_a_pointer_is_told_with_the_names_of_its_document():
    settings = {"settings": {"groups": [{"name": "workers", "size": 1}], "a.b": {"c": 1}}}
    assert field_at("/settings/groups/0/size", settings) == "settings.groups[workers].size"
    assert field_at("/settings/groups/4/size", settings) == "settings.groups[4].size"
    assert field_at("/settings/a.b/c") == "settings[a.b].c"
    entries = [
        {"pointer": "/settings/groups/0/size", "before": 1, "after": 2},
        {"pointer": "/settings/groups/0", "before": {"name": "gone"}, "after": None},
        {"pointer": "/description", "before": "", "after": "x", "kind": "cluster", "name": "b"},
    ]
    assert [(e["kind"], e["name"], e["field"]) for e in with_subject(entries, "cluster", "a", settings)] == [
        ("cluster", "a", "settings.groups[workers].size"),
        ("cluster", "a", "settings.groups[gone]"),
        ("cluster", "b", "description"),
    ]
