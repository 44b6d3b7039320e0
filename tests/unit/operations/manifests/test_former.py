"""Three ways: what a manifest says, what it said before, and what somebody else has made of the thing meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stockyard.domain.manifest_sets import merged, said_names
from stockyard.domain.nodes.records import NodeProvider
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.manifests.apply import apply_manifests, plan_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.manifests.sets import ManifestSet
from stockyard.ports import Replace
from tests.unit.operations.clusters.managed_world import ManagedWorld
from tests.unit.operations.manifests.test_own_clusters import manifest
from tests.unit.operations.manifests.test_pools import LAB, USER, node_pool, nodes, own, pool
from tests.unit.operations.manifests.test_sets import apply
from tests.unit.operations.nodes import Nodes

__all__ = ["nodes"]


def by_hand(nodes: Nodes, name: str, **changes: Any) -> None:
    """Somebody changes the pool by its own routes."""
    current = pool(nodes, name)
    nodes.services.store.commit(Replace(replace(current, **changes, version=current.version + 1)))


def test_what_nobody_has_written_of_a_pool_stays_as_it_was_made_by_hand(nodes: Nodes) -> None:
    for document in (own("web", labels={"a": "1"}, limits={"cpu": "8"}), node_pool("web2", limits={"cpu": "8"})):
        name = document["metadata"]["name"]
        apply(nodes, "shop", document)
        by_hand(nodes, name, weight=7, floor=1, limits={"cpu": "99", "memory": "64Gi"})
        assert apply(nodes, "shop", document) == ["changed"]
        changed = pool(nodes, name)
        assert (changed.weight, changed.floor) == (7, 1), name
        assert changed.limits == {"cpu": "8", "memory": "64Gi"}
        assert apply(nodes, "shop", document) == ["unchanged"]


def test_what_a_manifest_says_no_more_goes(nodes: Nodes) -> None:
    apply(nodes, "shop", own("web", labels={"a": "1", "b": "2"}, weight=5, limits={"cpu": "8"}))
    by_hand(nodes, "web", labels={"a": "1", "b": "2", "c": "3"})
    assert apply(nodes, "shop", own("web", labels={"a": "1"})) == ["changed"]
    changed = pool(nodes, "web")
    assert (changed.labels, changed.weight, changed.limits) == ({"a": "1", "c": "3"}, 0, {})


def test_how_many_nodes_a_static_pool_has_is_always_said(nodes: Nodes) -> None:
    apply(nodes, "shop", own("web", quantity=0))
    by_hand(nodes, "web", quantity=3)
    assert apply(nodes, "shop", own("web", quantity=0)) == ["changed"]
    assert pool(nodes, "web").quantity == 0


def test_without_a_set_a_document_counts_as_it_is(nodes: Nodes) -> None:
    apply(nodes, "shop", own("web", limits={"cpu": "8"}))
    by_hand(nodes, "web", weight=7)
    read = read_desired(nodes.services, [own("web", limits={"cpu": "8"})], USER, admin=True)
    apply_manifests(nodes.services, read, USER, "req-1")
    assert pool(nodes, "web").weight == 0


def test_labels_of_others_on_a_provider_stay(nodes: Nodes) -> None:
    document = {**LAB, "metadata": {"name": "later", "labels": {"a": "1", "b": "2"}}}
    apply(nodes, "shop", document)
    (provider,) = (each for each in nodes.services.store.list(NodeProvider).items if each.name == "later")
    labels = {**provider.labels, "c": "3"}
    nodes.services.store.commit(Replace(replace(provider, labels=labels, version=provider.version + 1)))
    apply(nodes, "shop", {**LAB, "metadata": {"name": "later", "labels": {"a": "1"}}})
    changed = nodes.services.store.get(NodeProvider, provider.id)
    assert changed is not None
    assert changed.labels == {"a": "1", "c": "3"}


def in_set(eks: ManagedWorld, document: Mapping[str, Any]) -> dict[str, Any]:
    """Plan of the document as one of the set, which is then applied."""
    services = eks.world.services
    manifest_set = ManifestSet.of(services, "shop", [document])
    plan = plan_manifests(services, read_desired(services, [document], USER, admin=False, set_name="shop"))
    read = read_desired(services, [document], USER, admin=False, set_name="shop")
    apply_manifests(services, read, USER, "req-1", "org-1", on_applied=manifest_set.note)
    return plan


def test_a_cluster_loses_what_its_manifest_says_no_more_and_keeps_what_others_added(eks: ManagedWorld) -> None:
    in_set(eks, manifest(tags={"a": "1", "b": "2"}, description="The west", limits={"usd_month": "900"}))
    services = eks.world.services
    cluster = find_cluster(services, "west")
    stored = replace(cluster, status="ready", operation_id=None, tags={**cluster.tags, "c": "3"})
    services.store.commit(Replace(replace(stored, version=cluster.version + 1)))
    plan = in_set(eks, manifest(tags={"a": "1"}))
    assert "/0/spec/description" in {entry["pointer"] for entry in plan["changes"]}
    cluster = find_cluster(services, "west")
    assert (cluster.tags, cluster.description, cluster.limits) == ({"a": "1", "c": "3"}, "", {})


VALUES = st.one_of(st.none(), st.just(""), st.text("xyz", min_size=1, max_size=2), st.integers(0, 3))
FIELDS = st.dictionaries(st.sampled_from("abcd"), st.one_of(VALUES, st.dictionaries(st.sampled_from("pqr"), VALUES)))


@given(said_fields=FIELDS, there=FIELDS, before=FIELDS)
def test_each_field_is_as_the_three_say(
    said_fields: dict[str, Any], there: dict[str, Any], before: dict[str, Any]
) -> None:
    names = said_names(before)
    result = merged(said_fields, there, names)
    assert set(result) == set(said_fields)
    for name, value in said_fields.items():
        current = there.get(name)
        if isinstance(value, dict) and isinstance(current, dict):
            own = names.get(name) or {}
            for key in {**value, **current}:
                if key in value:
                    assert result[name][key] == value[key]
                else:
                    assert (key in result[name]) == (key not in own)
        elif value or name in names:
            assert result[name] == value
        else:
            assert result[name] == current
