"""Places of machines in an overlay: by proof alone, for as long as their claims live."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent.stockyard_agent.overlay import OverlayList
from benchmarks.cost import AGENT_WRITES
from benchmarks.site_cost import OVERLAY_READS, OVERLAY_WRITES
from local.kubernetes.store import Key
from stockyard.domain.clusters import overlay as rules
from stockyard.domain.models.clusters.observations import OverlayList as Answer
from stockyard.domain.models.pools.read_vcluster import read_vcluster
from stockyard.domain.records import Cluster, Fact, NodeProvider
from stockyard.errors import Conflict, InvalidInput, RequestInProgress
from stockyard.machines.on_machine import stockyard_overlay as program
from stockyard.operations.clusters.removal.record import removal
from stockyard.operations.listing import every
from stockyard.operations.machines import overlay, overlay_paths
from stockyard.operations.machines.observe import AgentReply, observe
from stockyard.operations.manifests.former import Former
from stockyard.operations.manifests.pools import desired_pools
from stockyard.operations.node_providers.reach import out_of_reach
from stockyard.ports import Remove, Replace
from tests.unit.agent.rig import Rig
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes
from tests.workflows.table_faults import ERRORS, Faults, FaultyStore

HUB, NODE, OTHER = (f"{letter * 42}A=" for letter in "HNO")


@pytest.fixture
def cluster(world: World) -> Cluster:
    cluster_with_overlay = world.create()
    cluster_with_overlay = replace(
        cluster_with_overlay,
        settings={**cluster_with_overlay.settings, "overlay": {"range": rules.DEFAULT_RANGE, "node_to_node": True}},
        endpoint="https://api.test:6443",
        instance_id="i-1",
        version=cluster_with_overlay.version + 1,
    )
    world.services.store.commit(Replace(cluster_with_overlay))
    return cluster_with_overlay


def _news(world: World, cluster: Cluster, have: str | None = None) -> overlay.OverlayList | None:
    version = world.services.store.get(Fact, f"{cluster.id}/{overlay.VERSION}")
    return overlay.news(world.services, cluster, version, have)


def test_a_machine_has_the_same_address_whenever_it_asks_and_hears_of_the_hubs(world: World, cluster: Cluster) -> None:
    services = world.services
    first = overlay.admit(services, cluster, cluster.id, HUB, local="10.0.0.5", hub=True)
    assert first is not None
    assert (first.address, first.hub, first.peers) == ("100.64.0.1", True, [])
    configuration = overlay.admit(services, cluster, "ncl_1", NODE)
    assert configuration is not None
    assert configuration.address == "100.64.0.2"
    assert overlay.hub_addresses(configuration) == ["100.64.0.1"]
    assert overlay.admit(services, cluster, "ncl_1", NODE) == configuration
    again = overlay.admit(services, cluster, "ncl_1", OTHER)
    assert again == configuration, (
        "a machine that was cluster_with_overlay again has the address of its claim, and its own key"
    )
    assert overlay.hub_slots(services, cluster) == {"i-1": 0}
    with pytest.raises(InvalidInput, match="has an overlay"):
        overlay.admit(services, cluster, "ncl_2", None)
    assert overlay.admit(services, replace(cluster, settings={}), "ncl_2", None) is None


def test_two_that_ask_at_once_get_two_addresses(world: World, cluster: Cluster) -> None:
    store = world.services.store
    commit, late = store.commit, list[str]()

    def slow(*writes: object) -> object:
        if not late:
            late.append("ncl_2")
            overlay.admit(world.services, cluster, "ncl_2", OTHER)
        return commit(*writes)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(store), "commit", lambda _, *writes: slow(*writes))
        configuration = overlay.admit(world.services, cluster, "ncl_1", NODE)
    assert configuration is not None
    news = _news(world, cluster)
    assert news is not None
    assert {row["key"]: row["address"] for row in news.peers} == {OTHER: "100.64.0.1", NODE: "100.64.0.2"}

    def refused(*_: object) -> object:
        raise Conflict("others write")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(store), "commit", refused)
        with pytest.raises(RequestInProgress):
            overlay.admit(world.services, cluster, "ncl_3", NODE)


@pytest.mark.parametrize("when", ["before", "after"])
def test_whatever_write_is_cut_off_each_machine_has_one_address_and_nobody_stays(
    world: World, cluster: Cluster, when: str
) -> None:
    """The story is played once for each of its writes. Whoever gets no answer asks again, as machines do."""
    whole = _played(world, cluster, Faults())
    assert len(whole.points) == 6
    for site, error in itertools.product(range(len(whole.points)), ERRORS):
        world.services.store.commit(
            *(Remove(Fact, f"{cluster.id}/{name}") for name in (overlay.TABLE, overlay.VERSION))
        )
        faults = _played(world, cluster, Faults(site, when, error))
        assert len(faults.points) == 6 + (when == "before"), "what was written is not written again"


def _played(world: World, cluster: Cluster, faults: Faults) -> Faults:
    """A hub and nodes come, one goes, another comes: with one write that is cut off."""
    store: Any = FaultyStore(world.services.store, faults)
    services = replace(world.services, store=store)
    addresses: dict[str, str] = {}

    def patiently(act: Callable[[], overlay.OverlayConfiguration | None]) -> overlay.OverlayConfiguration | None:
        try:
            return act()
        except tuple(ERRORS):
            return act()

    for owner in (cluster.id, "ncl_1", "ncl_2", "ncl_3"):
        configuration = patiently(
            lambda owner=owner: overlay.admit(services, cluster, owner, NODE, hub=owner == cluster.id)
        )
        assert configuration is not None
        addresses[owner] = configuration.address
    patiently(lambda: overlay.release(services, cluster, "ncl_2"))
    configuration = patiently(lambda: overlay.admit(services, cluster, "ncl_4", OTHER))
    assert configuration is not None
    addresses["ncl_4"] = configuration.address
    assert len(set(addresses.values())) == 5
    news = _news(world, cluster)
    assert news is not None
    assert {row["address"] for row in news.peers} == {addresses[owner] for owner in addresses if owner != "ncl_2"}
    version = world.services.store.get(Fact, f"{cluster.id}/{overlay.VERSION}")
    assert version is not None
    assert version.value == news.version, "the agent hears of what is there"
    return faults


def test_who_is_released_is_in_no_list_and_its_address_rests_for_a_day(world: World, cluster: Cluster) -> None:
    services = world.services
    overlay.admit(services, cluster, "ncl_1", NODE)
    before = _news(world, cluster)
    assert before is not None
    assert _news(world, cluster, before.version) is None, "an idle cluster's agent is told nothing"
    overlay.release(services, cluster, "ncl_1")
    overlay.release(services, cluster, "ncl_1")
    after = _news(world, cluster, before.version)
    assert after is not None
    assert after.peers == []
    overlay.release(services, None, "ncl_1")
    configuration = overlay.admit(services, cluster, "ncl_2", OTHER)
    assert configuration is not None
    assert configuration.address != before.peers[0]["address"]


def test_nothing_is_written_for_a_cluster_that_is_gone_and_its_removal_takes_the_table(
    world: World, cluster: Cluster
) -> None:
    overlay.admit(world.services, cluster, "ncl_1", NODE)
    world.services.store.commit(*removal(world.services, cluster))
    assert [fact.id for fact in every(world.services.store, Fact, f"{cluster.id}/")] == []
    with pytest.raises(RequestInProgress):
        overlay.admit(world.services, cluster, "ncl_2", OTHER)
    assert [fact.id for fact in every(world.services.store, Fact, f"{cluster.id}/")] == []


def _post(world: World, cluster: Cluster, number: int, have: str | None, **more: object) -> AgentReply:
    """The answer to a post of the agent, which has that list."""
    post = {
        "sequence": int(world.clock.now().timestamp() * 1000) + number, "observed_at": world.services.now(),
        "agent_version": "2", "kubernetes_version": "v1", "ca_hash": "sha256:" + "0" * 64, "results": [],
        "nodes": [{"name": "n", "labels": {}, "claim": None, **more}], "overlay": have,
    }  # fmt: skip
    return observe(world.services, world.registry.in_hand, b"key", cluster, post)


def test_an_idle_clusters_posts_cost_what_they_cost_without_an_overlay(world: World, cluster: Cluster) -> None:
    """Each call of the store is counted: what ``make cost`` assumes of an agent's posts holds for both."""
    store, calls = world.services.store, Counter[str]()
    overlay.admit(world.services, cluster, cluster.id, HUB, hub=True)
    have = _post(world, cluster, 0, None).overlay
    assert have is not None
    counts = []
    with pytest.MonkeyPatch.context() as patched:
        for name in ("get", "get_all", "get_together", "commit", "list"):
            call = getattr(store, name)
            patched.setattr(
                type(store), name, lambda _, *a, _n=name, _c=call, **k: (calls.update([_n]), _c(*a, **k))[1]
            )
        paths = {"overlay": '{"direct":0,"down":{}}', "labels": {overlay_paths.PLANE: ""}}
        ready = replace(cluster, status="ready")
        world.clock.advance(1)
        _post(world, ready, 0, have.version, **paths)
        for each in (ready, replace(ready, settings={})):
            calls.clear()
            for number in range(1, 49):
                world.clock.advance(world.services.settings.agent_idle_seconds)
                assert _post(world, each, number, have.version, **paths).overlay is None
            counts.append(dict(calls))
    assert (counts[0], OVERLAY_READS, OVERLAY_WRITES) == (counts[1], 0, 0)
    assert counts[0]["commit"] <= 48 * AGENT_WRITES + 2


def test_an_agent_hears_within_ten_seconds_of_a_claim_that_ends(world: World, cluster: Cluster) -> None:
    """Machines need what is left of a minute: hubs read the list each 15 seconds, and tell the others at once."""
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.provider("lab", {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}})
    # Simulated machines take no part in an overlay: the claim was placed before.
    ready = replace(cluster, status="ready", settings={}, version=cluster.version + 1)
    world.services.store.commit(Replace(ready))
    claim = nodes.claim("worker", cluster_ref=cluster.name)
    nodes.schedule()
    ready = replace(ready, settings=cluster.settings, version=ready.version + 1)
    world.services.store.commit(Replace(ready))
    overlay.admit(world.services, cluster, claim.id, NODE)
    have = _post(world, ready, 0, None).overlay
    assert have is not None
    nodes.delete(claim)
    before = _post(world, ready, 1, have.version)
    assert (before.overlay, before.interval_seconds) == (None, world.services.settings.agent_busy_seconds)
    overlay.release(world.services, cluster, claim.id)
    after = _post(world, ready, 2, have.version).overlay
    assert after is not None
    assert after.peers == []
    assert world.services.settings.agent_busy_seconds <= 10
    assert program.LOOK + 2 * program.TICK <= 40


def test_what_a_node_writes_of_itself_changes_nothing_of_the_list(world: World, cluster: Cluster) -> None:
    overlay.admit(world.services, cluster, cluster.id, HUB, hub=True)
    overlay.admit(world.services, cluster, "ncl_1", NODE)
    before = _news(world, cluster)
    forged = {
        "address": "100.64.0.1", "key": OTHER, "hub": True, "endpoints": ["192.0.2.66:51820"], "direct": 1,
        "down": {"100.64.0.2": "2026-01-01T00:00:00.000Z"}, "peers": [{"address": "100.64.0.1", "key": OTHER}],
    }  # fmt: skip
    for number, text in enumerate((json.dumps(forged), "{", "[]", "x" * 4_096)):
        _post(world, cluster, number, None, overlay=text, annotations={"stockyard.dev/overlay": text})
        assert _news(world, cluster) == before


def test_machines_of_providers_that_take_no_part_are_out_of_reach(world: World, cluster: Cluster) -> None:
    provider = NodeProvider("npr_1", "lab", "simulated", {}, "", "")
    assert "take part in no overlay" in str(out_of_reach(None, provider, cluster))
    assert out_of_reach(None, provider, replace(cluster, settings={})) is None


def test_agent_writes_the_list_once_and_again_when_that_failed(world: World, cluster: Cluster) -> None:
    overlay.admit(world.services, cluster, cluster.id, HUB, hub=True)
    news = _news(world, cluster)
    assert news is not None
    content = Answer.model_validate(news, from_attributes=True).model_dump()
    rig = Rig()
    agent = rig.agent()
    kube = agent._kube
    written = OverlayList(kube, rig.logs.append)
    written.hear(None)
    written.hear({"version": "1"})
    assert written.version is None
    written.hear(content)
    assert written.version == news.version
    stored = rig.kube.store.get(Key("", "configmaps", "stockyard-system", "overlay"))
    assert stored["data"]["version"] == news.version
    assert json.loads(stored["data"]["peers"]) == content["peers"]
    assert content["peers"][0] == {"address": "100.64.0.1", "key": HUB, "hub": True, "endpoints": ["api.test:51820"]}
    written.hear({"version": "2", "peers": ["x" * 1_000_001]})
    assert written.version == news.version
    assert len([line for line in rig.logs if "overlay" in line]) == 2


def test_a_vcluster_takes_part_where_its_cluster_has_an_overlay_and_is_refused_elsewhere(
    world: World, cluster: Cluster
) -> None:
    static = [{"name": "far", "provider": "lab", "quantity": 1}]
    document = {
        "metadata": {"labels": {"stockyard.dev/cluster": cluster.name}},
        "privateNodes": {"enabled": True, "vpn": {"enabled": True}, "autoNodes": {"static": static}},
    }
    read = read_vcluster(document)
    assert [
        pool.pool.name for pool in desired_pools(world.services, (), read, {}, Former(world.services, None)).pools
    ] == ["far"]
    without = replace(cluster, settings={}, version=cluster.version + 1)
    world.services.store.commit(Replace(without))
    with pytest.raises(InvalidInput, match="has no overlay"):
        desired_pools(world.services, (), read, {}, Former(world.services, None))
