"""Differences field by field, merge patches, and fields by ``--set``."""

from __future__ import annotations

import re

import pytest

from stockyard_client.cli.documents.assignments import patch_of, source_of
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.output.differences import differences, merge_patch

GROUPS = [{"name": "control", "max_size": 1}, {"name": "workers", "max_size": 3}]
RECORD = {
    "description": "x",
    "tags": {"a": "1"},
    "settings": {"groups": GROUPS, "cidrs": ["a"], "bastion": {"enabled": False}},
}


def test_of_a_long_object_that_is_new_each_field_that_says_something_has_a_line():
    group = {"name": "gpu", "types": ["m6i.large"], "labels": {}, "bid": None, "strategy": {"type": "a", "surge": None}}
    long = {**group, "text": "x" * 60}
    for before in ({}, {"g": None}):
        (row,) = differences(before, {"g": long})
        expected = ["+ g:", 'name: "gpu"', 'types: ["m6i.large"]', 'strategy: {"type": "a"}', f'text: "{"x" * 60}"']
        assert row.lines == expected
    (short,) = differences({}, {"g": {"name": "gpu"}})
    assert short.lines == [short.text]
    (removal,) = differences({"g": long}, {})
    assert removal.lines == [removal.text]


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1, "b": 2}, {"a": 2, "c": None}, ["~ a: 1 -> 2", "- b: 2", "+ c: null"]),
        ({"a": {"b": {"c": "x"}}}, {"a": {"b": {"c": "y"}}}, ['~ a.b.c: "x" -> "y"']),
        ({"g": GROUPS}, {"g": [GROUPS[1] | {"max_size": 5}]}, ['- g[control]: {"name": "control", "max_size": 1}',
                                                               "~ g[workers].max_size: 3 -> 5"]),
        ({"l": [1, 2]}, {"l": [1, 3, 4]}, ["~ l[1]: 2 -> 3", "+ l[2]: 4"]),
        ({"l": []}, {"l": None}, ["~ l: [] -> null"]),
        ({}, {"a/b": "é"}, ['+ ["a/b"]: "é"']),
    ],
)  # fmt: skip
def test_differences_are_lines_by_field(before, after, lines):
    assert [difference.text for difference in differences(before, after)] == lines


def test_a_merge_patch_leads_from_one_to_the_other():
    after = {"description": "x", "tags": {"b": "2"}, "settings": {**RECORD["settings"], "groups": GROUPS[:1]}}
    assert merge_patch(RECORD, after) == {"tags": {"a": None, "b": "2"}, "settings": {"groups": GROUPS[:1]}}
    assert merge_patch(RECORD, RECORD) == {}
    assert merge_patch({"a": 1}, {}) == {"a": None}


@pytest.mark.parametrize(
    ("text", "patch"),
    [
        ("description=some words", {"description": "some words"}),
        ("description=12", {"description": "12"}),
        ("tags.version=1", {"tags": {"version": "1"}}),
        ("tags.a=null", {"tags": {"a": None}}),
        (r"labels.x\.dev/y=z", {"labels": {"x.dev/y": "z"}}),
        ("settings.bastion.enabled=true", {"settings": {"bastion": {"enabled": True}}}),
        ('settings.cidrs=["10.0.0.0/8"]', {"settings": {"cidrs": ["10.0.0.0/8"]}}),
        ("settings.groups[workers].max_size=5", {"settings": {"groups": [GROUPS[0], GROUPS[1] | {"max_size": 5}]}}),
        ("settings.groups[0].max_size=5", {"settings": {"groups": [GROUPS[0] | {"max_size": 5}, GROUPS[1]]}}),
        ("settings.groups[1]={}", {"settings": {"groups": [GROUPS[0], {}]}}),
    ],
)
def test_fields_by_path(text, patch):
    assert patch_of([text], RECORD) == patch


def test_several_fields_of_a_list_are_one_change_and_the_record_stays():
    patch = patch_of(["settings.groups[workers].max_size=5", "settings.groups[control].max_size=2"], RECORD)
    assert [group["max_size"] for group in patch["settings"]["groups"]] == [2, 5]
    assert [group["max_size"] for group in GROUPS] == [1, 3]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("description", "is not PATH=VALUE"),
        ("=x", "is not PATH=VALUE"),
        ("[0]=x", "is not PATH=VALUE"),
        ("settings.groups[nope].max_size=5", "the list has no item nope: control, workers"),
        ("settings.groups[9].max_size=5", "the list has no item 9"),
        ("settings.none[0].x=5", "there is no list none; there is groups, cidrs, bastion"),
        ("settings.group[0].x=5", "there is no list group; did you mean groups?"),
        ("settings.cidrs[0].x=5", "holds no fields"),
        ("settings.x.y[0].z=5", "there is no list y; there is nothing at that place"),
    ],
)
def test_paths_that_lead_nowhere_are_refused(text, fault):
    with pytest.raises(BadInput, match=fault.replace("[", r"\[")):
        patch_of([text], RECORD)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("settings.node_groups[w].max_size=5", "no list node_groups; did you mean autoscaler_node_groups?"),
        ("settings.zones[0]=x", "the list has no item 0: it is empty"),
        ("settings.autoscaler_node_groups[9].x=1", "the list has no item 9: its items are 0 to 0"),
    ],
)
def test_lists_are_named_by_their_other_name_and_empty_ones_as_empty(text, fault):
    with pytest.raises(BadInput, match=re.escape(fault)):
        patch_of([text], {"settings": {"autoscaler_node_groups": [{}], "zones": []}})


@pytest.mark.parametrize("text", ["NaN", "1e999", '{"a": -Infinity}', "1" * 5000])
def test_what_json_cannot_send_is_a_text(text):
    assert patch_of([f"settings.x={text}"], RECORD) == {"settings": {"x": text}}


def test_a_refusal_names_the_option():
    assert source_of(["settings.groups[0].x=1", "tags.a=b"]).options == {
        "/settings/groups": "--set settings.groups[0].x",
        "/tags/a": "--set tags.a",
    }
