"""Merge patches of clusters."""

from __future__ import annotations

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.cluster_patch import ClusterPatch
from stockyard.errors import InvalidInput


def pointers(document):
    with pytest.raises(InvalidInput) as caught:
        read(ClusterPatch, document)
    return {problem.pointer: problem.detail for problem in caught.value.errors}


def test_what_is_absent_stays():
    patch = read(ClusterPatch, {})
    assert patch.description is None
    assert patch.tags_after({"a": "b"}) is None


def test_tags_are_merged():
    current = {"a": "1", "b": "2"}
    assert read(ClusterPatch, {"tags": {"a": None, "c": "3"}}).tags_after(current) == {"b": "2", "c": "3"}
    assert read(ClusterPatch, {"tags": None}).tags_after(current) == {}
    assert read(ClusterPatch, {"tags": {"x": None}}).tags_after(current) == current
    assert current == {"a": "1", "b": "2"}


def test_the_merged_tags_must_be_good():
    current = {f"k{n}": "v" for n in range(40)}
    with pytest.raises(InvalidInput) as caught:
        read(ClusterPatch, {"tags": {"one-more": "v"}}).tags_after(current)
    assert [problem.pointer for problem in caught.value.errors] == ["/tags"]
    with pytest.raises(InvalidInput) as caught:
        read(ClusterPatch, {"tags": {"aws:x": "v"}}).tags_after({})
    assert [problem.pointer for problem in caught.value.errors] == ["/tags/aws:x"]
    assert pointers({"tags": {"a": 1}}) == {"/tags/a": "must be a string"}


@pytest.mark.parametrize("name", ["name", "cloud_account_id", "cluster_type", "secret"])
def test_what_is_fixed_says_so(name):
    assert pointers({name: "x"}) == {f"/{name}": "cannot be changed after creation"}


def test_settings_are_fixed_each_by_its_name():
    problems = pointers({"settings": {"key_pair": "other", "autoscaler_node_groups": []}})
    assert problems == dict.fromkeys(
        ("/settings/key_pair", "/settings/autoscaler_node_groups"), "cannot be changed after creation"
    )
    assert pointers({"settings": {"colour": 1}}) == {"/settings/colour": "unknown field"}
    assert read(ClusterPatch, {"settings": {}})


def test_setting_of_the_mirror_may_change():
    patch = read(ClusterPatch, {"settings": {"mirror": False}})
    assert patch.settings_after({"mirror": True, "key_pair": "k"}) == {"mirror": False, "key_pair": "k"}
    assert read(ClusterPatch, {"settings": {}}).settings_after({"mirror": True}) is None
    assert pointers({"settings": {"mirror": None}}) == {"/settings/mirror": "cannot be removed"}


def test_what_cannot_be_removed_or_is_unknown():
    assert pointers({"description": None}) == {"/description": "cannot be removed"}
    assert pointers({"colour": 1}) == {"/colour": "unknown field"}
    assert pointers([]) == {"": "must be an object"}
    assert read(ClusterPatch, {"description": "d"}).description == "d"
