"""Hosts that people and other programs change while a claim has one, or wants one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from stockyard.errors import InsufficientCapacity, NodeCouldNotBeProvisioned
from stockyard.providers.clouds.kubernetes import bare_metal
from stockyard.providers.nodes.metal3.provider import Metal3Nodes
from tests.contracts.test_node_source import World
from tests.harness.bare_metal.yard import CONFIG, BareMetalYard, block
from tests.harness.worlds.kubernetes_host import NAMESPACE
from tests.harness.worlds.node_source_cases import FIRST, SECOND

FOREIGN = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "m-1"}


@pytest.fixture
def world() -> World:
    return World("metal3", ExitStack())


def yard_of(world: World) -> BareMetalYard:
    yard: BareMetalYard = world.case.machines.__self__  # type: ignore[attr-defined]
    return yard


def test_a_host_that_somebody_takes_from_a_claim_is_theirs(world: World) -> None:
    world.prepare()
    name = world.launch().facts["machine_id"]
    yard = yard_of(world)
    yard.change(name, consumerRef=FOREIGN)
    before = yard.hosts()[name]
    assert world.look().state == "gone"
    world.terminate()
    after = yard.hosts()[name]
    assert after["spec"] == before["spec"], "the image of a host in use is never touched"
    assert yard.objects("secrets") == {}
    assert world.lines() == []
    assert [*world.case.cloud.tagged(world.account, "inst", "acme", [])] == []


def test_a_host_that_somebody_takes_while_it_gets_its_image_fails_its_claim(world: World) -> None:
    world.prepare()
    assert not world.case.source.launch(world.work()).done
    yard = yard_of(world)
    (name,) = yard.hosts_of_claims()
    yard.change(name, consumerRef=FOREIGN)
    with pytest.raises(NodeCouldNotBeProvisioned, match=f"Host {name} was taken from the claim"):
        world.launch()


@pytest.mark.parametrize(
    "change", [{"image": None}, {"image": None, "consumerRef": None}, {"consumerRef": None}], ids=str
)
def test_a_machine_whose_host_lost_image_or_consumer_is_gone(world: World, change: dict[str, Any]) -> None:
    world.prepare()
    name = world.launch().facts["machine_id"]
    yard_of(world).change(name, **change)
    assert world.look().state == "gone"


def test_another_image_of_a_host_in_use_is_drift_and_an_image_is_set_once(world: World) -> None:
    world.prepare()
    name = world.launch().facts["machine_id"]
    source: Any = world.case.source
    assert source.drift(world.work()) is None
    mark = source.template_fingerprint(world.provider)
    world.provider.spec["metal3"]["nodeTypes"][0]["properties"]["metal3.vcluster.com/image-url"] = "https://b/other"
    assert source.template_fingerprint(world.provider) != mark
    assert "another image" in source.drift(world.work())
    world.launch()
    assert yard_of(world).hosts()[name]["spec"]["image"]["url"] != "https://b/other"


def test_network_data_that_a_person_gave_a_host_in_use_stay(world: World) -> None:
    world.prepare()
    name = world.launch().facts["machine_id"]
    yard = yard_of(world)
    yard.change(name, networkData={"name": "new-one"})
    world.terminate()
    assert yard.hosts()[name]["spec"]["networkData"] == {"name": "new-one"}


def test_an_owner_changes_network_data_that_were_never_ours_without_a_conflict(world: World) -> None:
    world.prepare()
    name = world.launch().facts["machine_id"]
    world.terminate()
    yard = yard_of(world)
    host = yard.hosts()[name]
    path = f"/apis/metal3.io/v1alpha1/namespaces/{NAMESPACE}/baremetalhosts/{name}?fieldManager=owner"
    document = {
        **{part: host[part] for part in ("apiVersion", "kind")},
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"online": False, "networkData": {"name": "of-today"}},
    }
    yard.caller.call("PATCH", path, document, "application/apply-patch+yaml")
    assert yard.hosts()[name]["spec"]["networkData"] == {"name": "of-today"}
    document["spec"] = {"online": False}
    yard.caller.call("PATCH", path, document, "application/apply-patch+yaml")
    assert "networkData" not in yard.hosts()[name]["spec"], "what its owner takes away is gone"


@pytest.mark.parametrize(
    "spec",
    [
        {"consumerRef": FOREIGN},
        {"image": {"url": "https://a/b", "checksum": "a" * 64}},
        {"externallyProvisioned": True},
        {"customDeploy": {"method": "install"}},
    ],
    ids=str,
)
def test_a_host_that_somebody_uses_is_never_taken(world: World, spec: dict[str, Any]) -> None:
    yard = yard_of(world)
    for name in yard.machines:
        yard.change(name, **spec)
    yard.settle()
    before = {name: host["spec"] for name, host in yard.hosts().items()}
    world.prepare()
    with pytest.raises(InsufficientCapacity, match="in use"):
        world.launch()
    assert {name: host["spec"] for name, host in yard.hosts().items()} == before


@pytest.mark.parametrize("name", ["paused", "detached"])
def test_a_host_that_is_set_aside_is_not_taken(world: World, name: str) -> None:
    yard = yard_of(world)
    for each in yard.machines:
        path = f"/apis/metal3.io/v1alpha1/namespaces/{NAMESPACE}/baremetalhosts/{each}"
        patch = {"metadata": {"annotations": {f"baremetalhost.metal3.io/{name}": ""}}}
        yard.caller.call("PATCH", path, patch, "application/merge-patch+json")
    world.prepare()
    with pytest.raises(InsufficientCapacity, match="paused or detached"):
        world.launch()


def test_a_host_that_failed_is_left_alone_for_an_hour(world: World) -> None:
    yard = yard_of(world)
    yard.operator.failing.update(yard.machines)
    world.prepare()
    with pytest.raises(InsufficientCapacity, match="left alone for an hour"):
        world.launch()
    world.terminate()
    assert (yard.hosts_of_claims(), yard.objects("secrets")) == ([], {})
    yard.operator.failing.clear()
    yard.settle()
    assert yard.as_lent() == []
    world.next_attempt()
    with pytest.raises(InsufficientCapacity, match="left alone for an hour"):
        world.launch()
    world.clock.advance(3601)
    assert world.launch().facts["machine_id"] in yard.machines


def test_each_host_of_a_range_has_an_address_of_its_own(world: World) -> None:
    types = block(FIRST, SECOND, **{
        "metal3.vcluster.com/network-cidr": "192.0.2.1/24",
        "metal3.vcluster.com/network-ip-range": "192.0.2.1-192.0.2.2",
    })  # fmt: skip
    world.provider.spec["metal3"] = types
    world.prepare()
    name = world.launch().facts["machine_id"]
    yard = yard_of(world)
    annotations = yard.hosts()[name]["metadata"]["annotations"]
    assert annotations[bare_metal.ADDRESS] == "192.0.2.2", "the gateway has the other"
    world.next_attempt()
    source: Any = world.case.source
    other = world.work(claim=_other(world))
    with pytest.raises(InsufficientCapacity, match="every address"):
        source.launch(other)


def _other(world: World) -> Any:
    from dataclasses import replace

    from stockyard.ports import Create

    claim = replace(world.claim, id="ncl_01KDVJXQ80000000000000000B", name="workers-2", version=1)
    world.store.commit(Create(claim))
    world.claim = claim
    return claim


Answer = Callable[[httpx.Request], httpx.Response]


def test_a_write_of_the_operator_between_read_and_take_is_no_loss(world: World) -> None:
    yard, touched = yard_of(world), set[str]()

    def answer(request: httpx.Request) -> httpx.Response:
        name = request.url.path.rpartition("/")[2]
        if request.method == "PATCH" and "baremetalhosts" in request.url.path and name not in touched:
            touched.add(name)
            host = yard.hosts()[name]
            yard.operator._put({**host, "status": {**host["status"], "errorCount": 1}}, "/status")
        return yard.answer(request)

    access = yard.access(httpx.MockTransport(answer))
    world.case.source = Metal3Nodes(CONFIG, access, lambda _: world.store)
    world.prepare()
    assert world.launch().facts["machine_id"] in touched
    assert len(touched) == 1
