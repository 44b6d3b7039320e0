"""Pools of a vcluster.yaml that a later one does not name: they stay with a warning, or go with ``prune``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stockyard.errors import InvalidInput
from stockyard.operations.manifests.apply import apply_manifests, document_warnings, plan_manifests
from stockyard.operations.manifests.desired import read_desired
from tests.unit.operations.manifests.test_pools import USER, apply, desired, node_pool, nodes, own, pool, vcluster
from tests.unit.operations.nodes import Nodes

__all__ = ["nodes"]


def pruned(nodes: Nodes, *documents: Mapping[str, Any]) -> Any:
    return read_desired(nodes.services, documents, USER, admin=True, prune=True)


def test_pools_that_no_document_names_are_given_back(nodes: Nodes) -> None:
    apply(nodes, vcluster({"name": "a"}, {"name": "old"}, {"name": "older"}), node_pool(), own(quantity=1))
    read = pruned(nodes, vcluster({"name": "a"}))
    plan = plan_manifests(nodes.services, read)
    assert plan["deletes"] == [{"kind": "pool", "name": "old"}, {"kind": "pool", "name": "older"}]
    assert [result["name"] for result in apply_manifests(nodes.services, read, USER, "req-1")] == ["a", "old", "older"]
    leaving = {name: pool(nodes, name).deleting for name in ("a", "old", "older", "general", "own")}
    assert leaving == {"a": False, "old": True, "older": True, "general": False, "own": False}
    again = apply_manifests(nodes.services, pruned(nodes, vcluster({"name": "a"})), USER, "req-2")
    assert [(result["name"], result["action"]) for result in again] == [("a", "unchanged")]


def test_what_another_document_of_the_request_names_stays_without_a_warning(nodes: Nodes) -> None:
    apply(nodes, vcluster({"name": "a"}, {"name": "b"}, {"name": "c"}))
    both = [vcluster({"name": "a"}), vcluster({"name": "b"})]
    (warning,) = document_warnings(desired(nodes, *both))
    assert warning["detail"] == "Pool c is not in it and stays: remove it by its name, or apply with prune."
    results = apply_manifests(nodes.services, pruned(nodes, *both), USER, "req-1")
    actions = [(result["index"], result["name"], result["action"]) for result in results]
    assert actions == [(0, "a", "unchanged"), (0, "c", "deleted"), (1, "b", "unchanged")]


def test_nothing_is_pruned_where_no_document_says_that_its_pools_are_all(nodes: Nodes) -> None:
    apply(nodes, vcluster({"name": "a"}))
    for documents in ([own(quantity=1)], [node_pool()], [{"privateNodes": {"enabled": True}}]):
        with pytest.raises(InvalidInput, match=r"prune needs a vcluster\.yaml with pools"):
            pruned(nodes, *documents)
    assert not pool(nodes, "a").deleting
