"""Sets of manifests: who owns what was applied, and what is left when things go or are made again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stockyard.domain.manifest_sets import SetMember
from stockyard.domain.pools.records import Pool
from stockyard.errors import InUse
from stockyard.operations.fleet.pools.pools import give_back_pool
from stockyard.operations.listing import every
from stockyard.operations.manifests.apply import apply_manifests, document_warnings
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.manifests.sets import ManifestSet, thing_of
from stockyard.ports import Remove
from tests.unit.operations.manifests.test_pools import LAB, USER, nodes, own, pool, vcluster
from tests.unit.operations.nodes import Nodes

__all__ = ["nodes"]


def apply(nodes: Nodes, name: str, *documents: Mapping[str, Any], takes: bool = False) -> list[str]:
    """Apply the documents as those of a set, as the route does; the actions."""
    manifest_set = ManifestSet.of(nodes.services, name, documents, takes=takes)
    desired = read_desired(nodes.services, documents, USER, admin=True, set_name=name)
    manifest_set.check(desired)
    results = apply_manifests(nodes.services, desired, USER, "req-1", on_applied=manifest_set.note)
    manifest_set.forget_gone()
    return [result["action"] for result in results]


def members(nodes: Nodes, name: str) -> list[tuple[str, str]]:
    records = every(nodes.services.store, SetMember, where={"set_name": name})
    return [(member.kind, member.name) for member in records if thing_of(nodes.services, member) is not None]


def test_what_a_set_applies_belongs_to_it(nodes: Nodes) -> None:
    documents = [LAB, own("web", quantity=1, labels={"team": "a"}), vcluster({"name": "a"}, {"name": "b"})]
    assert apply(nodes, "shop", *documents) == ["created"] * 4
    assert members(nodes, "shop") == [("node-provider", "later"), ("pool", "a"), ("pool", "b"), ("pool", "web")]
    before = list(every(nodes.services.store, SetMember))
    web = next(member for member in before if member.name == "web")
    assert (web.cluster, web.labels) == ("demo", {"team": "a"})
    assert web.fields == {"kind": None, "quantity": None, "labels": {"team": None}}
    assert apply(nodes, "shop", *documents) == ["unchanged"] * 4
    assert list(every(nodes.services.store, SetMember)) == before
    # a document that is not there any more leaves its thing in the set
    apply(nodes, "shop", own("web", quantity=1))
    assert len(members(nodes, "shop")) == 4


def test_another_set_is_refused_until_it_takes(nodes: Nodes) -> None:
    apply(nodes, "shop", own("web", quantity=1), LAB)
    with pytest.raises(InUse, match="web belongs to the set shop") as refused:
        apply(nodes, "other", LAB, own("web", quantity=2), own("mine", quantity=1))
    assert [fault.pointer for fault in refused.value.errors] == ["/0/metadata/name", "/1/metadata/name"]
    assert (members(nodes, "other"), pool(nodes, "web").quantity) == ([], 1)
    assert apply(nodes, "other", own("web", quantity=2), takes=True) == ["changed"]
    assert members(nodes, "other") == [("pool", "web")]
    assert members(nodes, "shop") == [("node-provider", "later")]


def test_what_goes_leaves_its_set_and_what_is_made_again_is_nobodys(nodes: Nodes) -> None:
    apply(nodes, "shop", own("web", quantity=1), own("api", quantity=1))
    give_back_pool(nodes.services, pool(nodes, "web"), USER)
    assert members(nodes, "shop") == [("pool", "api")]
    nodes.services.store.commit(Remove(Pool, pool(nodes, "web").id))  # as the pass over the pool does
    nodes.hours(1)
    desired = read_desired(nodes.services, [own("web", quantity=1)], USER, admin=True)
    apply_manifests(nodes.services, desired, USER, "req-2")
    assert members(nodes, "shop") == [("pool", "api")]
    assert apply(nodes, "other", own("web", quantity=1)) == ["unchanged"]
    assert members(nodes, "other") == [("pool", "web")]
    apply(nodes, "shop", own("api", quantity=1))
    assert members(nodes, "shop") == [("pool", "api")]


def test_pools_that_a_vcluster_yaml_does_not_name_stay_when_they_are_of_a_set(nodes: Nodes) -> None:
    apply(nodes, "shop", vcluster({"name": "a"}, {"name": "old"}))
    documents = [vcluster({"name": "a"})]
    pruned = read_desired(nodes.services, documents, USER, admin=True, prune=True)
    (warning,) = document_warnings(pruned)
    assert warning["detail"] == "Pool old is not in it and stays: it belongs to the set shop."
    apply_manifests(nodes.services, pruned, USER, "req-2")
    assert not pool(nodes, "old").deleting
    assert document_warnings(read_desired(nodes.services, documents, USER, admin=True, set_name="shop")) == []
