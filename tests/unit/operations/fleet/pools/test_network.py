"""Paths of an overlay: kept when they change and seldom, and shown of the cluster's own machines alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.clusters import overlay as rules
from stockyard.domain.models.clusters.network import NetworkView
from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.operations.clusters.network import network_view
from stockyard.operations.clusters.tree import cluster_tree
from stockyard.operations.fleet.explain import explain_claim
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.machines import overlay, overlay_paths
from stockyard.ports import Replace
from tests.unit.operations.fleet.pools.conftest import Yard

THEN, LATER = "2026-01-01T00:00:00.000Z", "2026-01-01T00:05:00.000Z"
KEYS = [f"{letter * 42}A=" for letter in "HNO"]
PLANE = {"node-role.kubernetes.io/control-plane": ""}


@pytest.fixture
def cluster(yard: Yard) -> Cluster:
    """A cluster with an overlay, its first machine as its hub, and two nodes of a pool in it."""
    # Simulated machines take no part in an overlay: these were there before it.
    yard.pool(quantity=2)
    yard.settle()
    current = yard.current()
    span = {"range": rules.DEFAULT_RANGE, "node_to_node": True}
    with_overlay = replace(current, settings={**current.settings, "overlay": span}, version=current.version + 1)
    services = yard.nodes.services
    services.store.commit(Replace(with_overlay))
    overlay.admit(services, with_overlay, with_overlay.id, KEYS[0], hub=True)
    for claim, key in zip(claims(yard), KEYS[1:], strict=True):
        overlay.admit(services, with_overlay, claim.id, key)
    return yard.current()


def claims(yard: Yard) -> list[NodeClaim]:
    return sorted(claims_of(yard.nodes.services, yard.current().id), key=lambda claim: claim.name)


def post(yard: Yard, down: dict[str, str] | None = None, **more: Any) -> list[dict[str, Any]]:
    """Nodes of a post: the hub, and both workers, of which the first one says ``more``."""
    first, second = claims(yard)
    report = {"direct": 1, "relayed": ["100.64.0.3"], "count": 1, "home": "100.64.0.1", "since": THEN, **more}
    return [
        {"name": "plane", "labels": PLANE, "overlay": json.dumps({"direct": 2, "down": down or {}})},
        {"name": first.node_name or first.name, "labels": {}, "overlay": json.dumps(report)},
        {"name": second.node_name or second.name, "labels": {}, "overlay": "nonsense"},
        {"name": "stranger", "labels": {}, "overlay": json.dumps({"direct": 9, "down": {"100.64.0.2": LATER}})},
    ]


def note(yard: Yard, nodes: list[dict[str, Any]]) -> None:
    services, cluster = yard.nodes.services, yard.current()
    digest = services.store.get(Fact, f"{cluster.id}/{overlay_paths.DIGEST}")
    overlay_paths.note(services, cluster, nodes, digest)


def view_of(yard: Yard) -> dict[str, Any]:
    view = network_view(yard.nodes.services, yard.current())
    NetworkView.model_validate(view)
    return view


def test_members_stand_with_networks_and_paths(yard: Yard, cluster: Cluster) -> None:
    assert {member["state"] for member in view_of(yard)["members"]} == {"unknown"}
    note(yard, post(yard, handshake=LATER))
    first, second = claims(yard)
    view = view_of(yard)
    assert (view["range"], view["changed_at"]) == (rules.DEFAULT_RANGE, yard.nodes.services.now())
    hub, first_row, second_row = view["members"]
    assert (hub["name"], hub["node"], hub["address"], hub["hub"], hub["claim"]) == (
        cluster.name, "plane", "100.64.0.1", True, None,
    )  # fmt: skip
    assert f"of cloud account {cluster.cloud_account_id}" in hub["network"]
    assert first_row == {
        "name": first.name, "claim": first.id, "node": first.node_name or first.name, "address": "100.64.0.2",
        "network": "simulated of node provider sim", "hub": False, "state": "up", "since": THEN, "home": "plane",
        "handshake_at": LATER, "direct": 1, "relayed": 1, "through_hub": [second.node_name or second.name],
    }  # fmt: skip
    assert (second_row["name"], second_row["state"], second_row["direct"], second_row["node"]) == (
        second.name,
        "up",
        None,
        None,
    )


def test_what_is_down_comes_first_with_its_moment(yard: Yard, cluster: Cluster) -> None:
    note(yard, post(yard, {"100.64.0.3": LATER}))
    member = view_of(yard)["members"][0]
    assert (member["name"], member["state"], member["since"]) == (claims(yard)[1].name, "down", LATER)
    services = yard.nodes.services
    first, second = claims(yard)
    text = "overlay 100.64.0.2, through plane, 1 direct, 0 relayed"
    assert explain_claim(services, first.id)["network"] == f"simulated of node provider sim; {text}"
    assert str(explain_claim(services, second.id)["network"]).endswith(f"down since {LATER}")
    (pool,) = [child for child in cluster_tree(services, cluster)["children"] if child["kind"] == "pool"]
    messages = {node["message"] for claim in pool["children"] for node in claim["children"]}
    assert f"simulated of node provider sim; {text}" in messages


def test_only_changes_are_kept_and_seldom(yard: Yard, cluster: Cluster) -> None:
    services, writes = yard.nodes.services, list[tuple[Any, ...]]()
    commit = services.store.commit
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(services.store), "commit", lambda _, *w: (writes.append(w), commit(*w))[1])
        note(yard, [{"name": "plane", "labels": PLANE}])
        assert not writes, "machines of before say nothing"
        note(yard, post(yard))
        for count in range(1, 200):
            yard.nodes.clock.advance(300)
            note(yard, post(yard, handshake=f"2026-01-02T00:{count % 60:02d}:00.000Z"))
        assert len(writes) == 1, "an idle cluster costs nothing more"
        note(yard, post(yard, {"100.64.0.3": LATER}))
        yard.nodes.clock.advance(overlay_paths.SOON_SECONDS - 1)
        note(yard, post(yard))
        assert len(writes) == 2
        yard.nodes.clock.advance(1)
        note(yard, post(yard))
        assert len(writes) == 3
        note(yard, post(yard)[:-1])
        assert len(writes) == 4, "a machine that has gone is kept at once"
    without = replace(cluster, settings={}, version=cluster.version + 1)
    services.store.commit(Replace(without))
    before = services.store.get(Fact, f"{cluster.id}/{overlay_paths.REPORTS}")
    yard.nodes.clock.advance(3600)
    note(yard, post(yard, {"100.64.0.3": LATER}))
    assert services.store.get(Fact, f"{cluster.id}/{overlay_paths.REPORTS}") == before
    assert network_view(services, yard.current())["range"] is None
    assert explain_claim(services, claims(yard)[0].id)["network"] is None


def test_the_largest_reports_stay_below_a_record(yard: Yard, cluster: Cluster) -> None:
    report = {"direct": 1, "relayed": [f"100.127.255.{n}" for n in range(20)], "count": 2000, "home": "100.127.255.1",
            "since": THEN, "handshake": LATER}  # fmt: skip
    note(yard, [{"name": f"n-{n:060}", "labels": {}, "overlay": json.dumps(report)} for n in range(1_000)])
    fact = yard.nodes.services.store.get(Fact, f"{cluster.id}/{overlay_paths.REPORTS}")
    assert fact is not None
    assert len(fact.value) < overlay_paths.MOST_BYTES
