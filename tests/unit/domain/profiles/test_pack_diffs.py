"""Differences between two objects, for people."""

from __future__ import annotations

from typing import Any

from stockyard.domain.profiles.pack_diffs import MOST_FIELDS, object_changes

NAME = "ConfigMap tools/a"


def thing(kind: str = "ConfigMap", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "tools"}, **fields}


def test_fields_that_differ_are_named_and_others_are_not() -> None:
    before = thing(data={"same": 1, "other": "x", "old": True}, list=[{"image": "a:1"}, 2])
    after = thing(data={"same": 1, "other": "y", "new": None}, list=[{"image": "a:2"}, 2])
    at = "/objects/ConfigMap tools~1a"
    assert object_changes(NAME, before, after) == [
        {"pointer": f"{at}/data/other", "before": "x", "after": "y"},
        {"pointer": f"{at}/data/old", "before": True, "after": None},
        {"pointer": f"{at}/data/new", "before": None, "after": None},
        {"pointer": f"{at}/list/0/image", "before": "a:1", "after": "a:2"},
    ]
    assert object_changes(NAME, before, before) == []


def test_a_list_of_another_length_is_one_field() -> None:
    (change,) = object_changes(NAME, thing(list=[1, 2]), thing(list=[1]))
    assert (change["before"], change["after"]) == ([1, 2], [1])


def test_values_of_secrets_are_never_told() -> None:
    (change,) = object_changes("Secret tools/a", thing("Secret", data={"k": "c2VjcmV0"}), thing("Secret", data={}))
    assert change["pointer"] == "/objects/Secret tools~1a"
    assert "c2VjcmV0" not in str(change)
    assert change["before"].startswith("sha256:")


def test_much_is_said_by_digests() -> None:
    many = {str(number): number for number in range(MOST_FIELDS + 1)}
    (change,) = object_changes(NAME, thing(data={}), thing(data=many))
    assert change["pointer"] == "/objects/ConfigMap tools~1a"
    (change,) = object_changes(NAME, thing(text="x"), thing(text="y" * 1000))
    assert (change["before"], change["after"][:7]) == ("x", "sha256:")
