"""The source of nodes on Cudo beside the contract: what it finds wrong, what machines are told, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import (
    CloudAccount,
    Cluster,
    NodeClaim,
    NodeEnvironment,
    NodeProvider,
    Placement,
    PlacementOption,
)
from stockyard.domain.values.ids import client_id
from stockyard.domain.values.requirements import IN, Requirement, Requirements
from stockyard.errors import (
    InsufficientCapacity,
    NodeCouldNotBeProvisioned,
    NotYetVisible,
    VendorQuotaExceeded,
    VendorRefused,
    VendorTimeout,
)
from stockyard.ports import Outcome
from stockyard.ports.node_work import EnvironmentWork, NodeWork
from stockyard.providers.clouds.cudo import names
from stockyard.providers.clouds.cudo.cloud import CudoCloud
from stockyard.providers.clouds.cudo.making import TTL_SECONDS
from stockyard.providers.clouds.cudo.marks import marks
from stockyard.providers.clouds.cudo.values import NewVm
from stockyard.providers.nodes.cudo.configuration import CudoNodesConfig
from stockyard.providers.nodes.cudo.provider import CudoNodes
from tests.harness.worlds.cudo_yard import DALLAS, NUMBER, CudoYard
from tests.unit.providers.conftest import MemoryLedger
from tests.workflows.cudo_life import user_data

CLUSTER, CLAIM = "clu_01KDVJXQ80000000000000000A", "ncl_01KDVJXQ80000000000000000B"
MOMENT, CLIENT = "2026-01-31T12:00:00.000Z", client_id("acme", CLUSTER, "demo")
TOKEN = "0123456789abcdef" * 4
VM = f"vantage-demo-{CLIENT[-12:]}-node-01kdvjxq80000000000000000b-1"


class World:
    """A project with the network of a cluster, a provider and a claim, and the source."""

    def __init__(self) -> None:
        self.yard = CudoYard()
        self.access = self.yard.access()
        self.source = CudoNodes(CudoNodesConfig("vantage", "https://api.example.test"), self.access).with_sheet(
            CudoCloud(self.access).offers(self.yard.account, "acme", MOMENT)
        )
        self.cluster = Cluster(
            CLUSTER, "demo", "d", "k8s", "cudo", int(NUMBER), CLIENT, "ready", {"dev_mode": False}, MOMENT, MOMENT,
            place=DALLAS,
        )  # fmt: skip
        self.ledger = MemoryLedger(self.cluster, "launch", self.yard.clock.now())
        self.provider = provider()
        self.environment = NodeEnvironment("nev_1", CLUSTER, "npr_1", "gpus", MOMENT, MOMENT)
        self.claim = placed(NodeClaim(CLAIM, "one", MOMENT, MOMENT, cluster_id=CLUSTER), "intel-broadwell-4x16")

    @property
    def account(self) -> CloudAccount:
        return self.yard.account

    def with_network(self, data_center: str = DALLAS) -> World:
        self.yard.cluster_network(CLIENT, CLUSTER, data_center)
        return self

    def environment_work(self) -> EnvironmentWork:
        return EnvironmentWork(
            "acme", "inst", self.environment, self.provider, self.cluster, self.ledger, self.yard.clock.now(), "op_1",
            self.account,
        )  # fmt: skip

    def prepare(self) -> World:
        outputs = dict(self.source.prepare(self.environment_work()).facts)
        self.environment = replace(self.environment, outputs=outputs)
        return self

    def work(self, **changes: Any) -> NodeWork:
        self.ledger.now = self.yard.clock.now()
        work = NodeWork(
            "acme", "inst", self.claim, self.provider, self.ledger, self.yard.clock.now(), "op_1", self.cluster,
            self.account, self.environment, machine_token=TOKEN,
        )  # fmt: skip
        return replace(work, **changes)

    def launch(self, **changes: Any) -> Outcome:
        return self.until_done(lambda: self.source.launch(self.work(**changes)))

    def until_done(self, step: Callable[[], Outcome]) -> Outcome:
        for _ in range(30):
            outcome = step()
            if outcome.done:
                return outcome
            self.yard.clock.advance(outcome.wait_seconds)
        raise AssertionError(outcome)

    def body(self) -> dict[str, Any]:
        (machine,) = self.yard.project.machines.values()
        return machine.body


def provider(**block: Any) -> NodeProvider:
    spec = {"cudo": {"cloudAccount": int(NUMBER), "dataCenter": DALLAS, **block}}
    return NodeProvider("npr_1", "gpus", "cudo", spec, MOMENT, MOMENT)


def placed(claim: NodeClaim, *types: str) -> NodeClaim:
    options = tuple(PlacementOption(f"gpus.{name}", "on-demand", (DALLAS,), usd_hour=0.1, cost=1) for name in types)
    placement = Placement("npr_1", options[0].type, "on-demand", (DALLAS,), 1.0, MOMENT, options=options)
    return replace(claim, placement=placement)


@pytest.fixture
def world() -> World:
    return World().with_network().prepare()


# --- documents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "pointer", "words"),
    [
        ({"dataCenter": "mars-1"}, "/spec/dataCenter", "sells nothing in mars-1"),
        ({"machineTypes": ["epyc-*"]}, "/spec/machineTypes", "No machine type"),
        ({"sizes": [{"vcpus": 8, "memoryGib": 2}]}, "/spec/sizes", "in these sizes"),
    ],
)
def test_what_cudo_does_not_sell_is_found_without_a_call(block: dict[str, Any], pointer: str, words: str) -> None:
    world = World()
    calls = world.yard.cudo.calls.total()
    (finding,) = world.source.inspect(provider(**block), world.account)
    assert (finding.pointer, finding.warning) == (pointer, False)
    assert words in finding.detail
    assert world.yard.cudo.calls.total() == calls


def test_an_unknown_node_type_and_an_unknown_sheet_are_warnings() -> None:
    world = World()
    (finding,) = world.source.inspect(provider(nodeTypes=[{"name": "intel-broadwell-5x10"}]), world.account)
    assert (finding.pointer, finding.warning) == ("/spec/nodeTypes/0/name", True)
    (finding,) = world.source.with_sheet(None).inspect(provider(), world.account)
    assert (finding.pointer, finding.warning) == ("/spec/cloudAccount", True)
    assert world.source.with_sheet(None).node_types(provider(), world.account) == ()
    assert world.source.inspect(provider(), world.account) == []


def test_node_types_are_made_once_for_a_sheet_and_a_version(world: World) -> None:
    node_types = world.source.node_types(world.provider, world.account)
    assert world.source.node_types(world.provider, world.account) is node_types
    assert world.source.node_types(replace(world.provider, version=2), world.account) is not node_types
    later = CudoCloud(world.access).offers(world.account, "acme", "2026-01-31T12:15:00.000Z")
    assert world.source.with_sheet(later).node_types(world.provider, world.account) is not node_types


@pytest.mark.parametrize(
    ("block", "name", "offered"),
    [
        ({}, "intel-broadwell-4x16", True),
        ({}, "intel-broadwell-5x10", False),
        ({"sizes": [{"vcpus": 5, "memoryGib": 10}]}, "intel-broadwell-5x10", True),
        ({"sizes": [{"vcpus": 5, "memoryGib": 10}]}, "intel-broadwell-4x16", False),
        ({"machineTypes": ["epyc-*"]}, "intel-broadwell-4x16", False),
        ({"dataCenter": "us-newyork-1"}, "intel-broadwell-4x16", False),
    ],
)
def test_a_node_drifts_when_its_document_lets_its_size_through_no_more(
    block: dict[str, Any], name: str, offered: bool
) -> None:
    placement = placed(NodeClaim(CLAIM, "one", MOMENT, MOMENT), name).placement
    assert placement is not None
    assert World().source.still_offers(provider(**block), placement) is offered


def test_a_kubelet_keeps_what_the_node_type_does_not_offer(world: World) -> None:
    assert world.claim.placement is not None
    arguments = world.source.kubelet_args(world.provider, world.claim.placement)
    assert arguments["max-pods"] == "110"
    assert "cpu=80m" in arguments["kube-reserved"]


# --- where machines stand ---------------------------------------------------------------------------------------------


def test_a_cluster_of_another_account_or_data_center_is_out_of_reach(world: World) -> None:
    source = world.source
    assert source.out_of_reach(world.provider, world.cluster) is None
    assert source.out_of_reach(world.provider, replace(world.cluster, place="")) is None
    for other in (replace(world.cluster, cloud_account_id=1), replace(world.cluster, place="us-newyork-1")):
        assert "overlay" in source.out_of_reach(world.provider, other)
        with pytest.raises(NodeCouldNotBeProvisioned, match="overlay"):
            source.launch(world.work(cluster=other))
    assert "names none" in source.out_of_reach(world.provider, None)
    assert world.yard.machines() == []


def test_a_data_center_is_the_zone(world: World) -> None:
    here, elsewhere = (Requirements.of([{"key": "z", "operator": IN, "values": [zone]}])["z"] for zone in (DALLAS, "x"))
    assert isinstance(here, Requirement)
    assert world.source.zones(world.provider, None) == {DALLAS}
    assert world.source.out_of_zone(world.provider, None, here) is None
    assert DALLAS in world.source.out_of_zone(world.provider, None, elsewhere)
    assert world.source.location(world.provider) == (DALLAS, NUMBER)
    assert world.source.scope(world.provider, world.account) == f"cudo/{DALLAS}"


def test_the_environment_is_the_clusters_network_and_group_with_images_for_both_kinds(world: World) -> None:
    outputs = world.environment.outputs
    assert outputs["network"] == names.name("vantage", CLIENT, names.NETWORK)
    assert outputs["security_group"] == names.name("vantage", CLIENT, names.NODE)
    assert (outputs["image"], outputs["gpu_image"]) == ("ubuntu-2404", "ubuntu-2404-nvidia-570-docker-v20250801")
    assert not world.source.is_stale(world.environment, world.provider, world.yard.clock.now())
    assert world.source.is_stale(world.environment, replace(world.provider, generation=2), world.yard.clock.now())
    world.yard.clock.advance(7 * 86400)
    assert world.source.is_stale(world.environment, world.provider, world.yard.clock.now())


def test_a_network_that_is_missing_or_elsewhere_is_none_for_nodes() -> None:
    with pytest.raises(NotYetVisible, match="network"):
        World().prepare()
    there = World().with_network("us-newyork-1")
    with pytest.raises(NodeCouldNotBeProvisioned, match="us-newyork-1"):
        there.prepare()


# --- machines ---------------------------------------------------------------------------------------------------------


def test_a_machine_is_asked_for_as_the_claim_was_placed_and_ends_by_itself_until_it_is_adopted(world: World) -> None:
    first = world.source.launch(world.work())
    assert not first.done
    machine = world.yard.project.machines[VM]
    assert machine.expires_at is not None
    assert (machine.expires_at - machine.made_at).total_seconds() == TTL_SECONDS
    facts = world.launch().facts
    assert facts == {
        "machine_id": VM, "type": "gpus.intel-broadwell-4x16", "capacity_type": "on-demand", "zone": DALLAS,
    }  # fmt: skip
    assert machine.expires_at.year == 2100
    body = world.body()
    nic = {"networkId": names.name("vantage", CLIENT, names.NETWORK), "assignPublicIp": True}
    assert body["nics"] == [{**nic, "securityGroupIds": [names.name("vantage", CLIENT, names.NODE)]}]
    sizes = {name: body[name] for name in ("vcpus", "memoryGib", "gpus", "bootDiskSizeGib", "bootDiskImageId")}
    assert sizes == {"vcpus": 4, "memoryGib": 16, "gpus": 0, "bootDiskSizeGib": 50, "bootDiskImageId": "ubuntu-2404"}
    assert body["metadata"] == {
        "stockyard:installation": "inst",
        "stockyard:tenant": "acme",
        "stockyard:resource": CLAIM,
        "stockyard:generation": "1",
    }
    message = user_data(body["startScript"])
    assert message == {
        "api_url": "https://api.example.test", "claim_id": CLAIM, "cluster_id": CLUSTER, "token": TOKEN,
    }  # fmt: skip
    assert world.yard.cudo.outside == []


def test_a_machine_with_gpus_starts_from_an_image_with_their_driver(world: World) -> None:
    world.claim = placed(world.claim, "intel-broadwell-v100-8x32-1g")
    world.provider = provider(bootDiskSizeGib=200)
    world.launch()
    assert (world.body()["gpus"], world.body()["bootDiskSizeGib"]) == (1, 200)
    assert "nvidia" in world.body()["bootDiskImageId"]


def test_without_an_image_with_a_driver_no_machine_with_gpus_is_made(world: World) -> None:
    world.environment.outputs["gpu_image"] = ""
    world.claim = placed(world.claim, "intel-broadwell-v100-8x32-1g")
    with pytest.raises(VendorRefused, match="NVIDIA"):
        world.launch()
    assert world.yard.machines() == []


def test_a_quota_that_is_used_up_is_scarce_for_the_project_alone(world: World) -> None:
    def refused(_: NewVm) -> None:
        raise VendorQuotaExceeded("the quota of CPUs is used up", code="QUOTA", hint="Ask Cudo for more.")

    world.access.client("acme", world.account).create_vm = refused
    with pytest.raises(InsufficientCapacity, match=r"quota of CPUs is used up Ask Cudo") as caught:
        world.source.launch(world.work())
    assert caught.value.own == caught.value.refused == (("intel-broadwell-4x16", "on-demand", DALLAS),)


def test_a_machine_that_fails_ends_the_launch_at_once(world: World) -> None:
    world.yard.cudo.plan.failing["CreateVM"] = 1
    with pytest.raises(VendorRefused, match="has failed") as refused:
        world.launch()
    assert "claim" in refused.value.hint
    world.until_done(lambda: world.source.terminate(world.work()))
    assert world.yard.machines() == []


def test_a_machine_whose_answer_was_lost_is_waited_for_when_a_later_try_is_refused(world: World) -> None:
    """The first request may have taken the last place, and may still bring a machine."""

    def lost(_: NewVm) -> None:
        raise VendorTimeout("no answer")

    client = world.access.client("acme", world.account)
    client.create_vm = lost
    with pytest.raises(VendorTimeout):
        world.source.launch(world.work())
    del client.create_vm
    world.yard.clock.advance(10)
    world.yard.run_out(["intel-broadwell"])
    with pytest.raises(InsufficientCapacity):
        world.source.launch(world.work())
    assert not world.source.terminate(world.work()).done
    world.yard.run_out([])
    body = NewVm(VM, DALLAS, "intel-broadwell", 2, 4, 50, "ubuntu-2404", "", marks("inst", "acme", CLAIM, 1), ())
    client.create_vm(body)
    world.until_done(lambda: world.source.terminate(world.work()))
    assert world.yard.machines() == []


def test_the_machine_of_an_earlier_option_is_told_as_it_is(world: World) -> None:
    world.claim = placed(world.claim, "intel-broadwell-6x24", "intel-broadwell-4x16")
    world.source.launch(world.work())
    world.claim = placed(world.claim, "intel-broadwell-4x16")
    assert world.launch().facts["type"] == "gpus.intel-broadwell-6x24"
    assert len(world.yard.machines()) == 1


def test_another_attempt_has_another_machine_and_goes_on_with_one_that_is_there(world: World) -> None:
    world.source.launch(world.work())
    world.claim = replace(world.claim, attempt=2)
    assert world.launch().facts["machine_id"] == VM, "the machine that was announced is there"
    world.until_done(lambda: world.source.terminate(world.work()))
    assert world.launch().facts["machine_id"] == VM.removesuffix("-1") + "-2"


def test_names_of_machines_fit_for_every_prefix_and_attempt() -> None:
    world = World().with_network().prepare()
    world.claim = replace(world.claim, attempt=12345)
    config = CudoNodesConfig("a234567", "https://api.example.test")
    cluster = replace(world.cluster, client_id=client_id("acme", CLUSTER, "n" * 128))
    source = CudoNodes(config, world.access)
    assert source.launch(world.work(cluster=cluster)).done is False
    (vm_id,) = world.yard.machines()
    assert len(vm_id) <= 63
    assert f"-{cluster.client_id[-12:]}-node-" in vm_id


@pytest.mark.parametrize("how", ["ended", "failed"])
def test_a_machine_that_is_lost_is_seen_as_gone_and_its_end_is_clean(world: World, how: str) -> None:
    world.launch()
    machine = world.yard.project.machines[VM]
    if how == "ended":
        del world.yard.project.machines[VM]
    else:
        machine.fails = True
    assert world.source.look(world.work()).state == "gone"
    with pytest.raises(NodeCouldNotBeProvisioned):
        world.source.power(world.work(), "On")
    world.until_done(lambda: world.source.terminate(world.work()))
    assert world.yard.machines() == []


def test_an_operation_reboots_once(world: World) -> None:
    world.launch()
    for session in ("op_2", "op_2", "op_3"):
        assert world.source.power(world.work(session=session), "Reboot").done
    assert world.yard.cudo.calls["RebootVM"] == 2
    world.until_done(lambda: world.source.terminate(world.work()))
    assert [line.state for line in world.ledger.all.values()] == ["gone"] * 3


def test_a_machine_of_somebody_else_is_left_alone(world: World) -> None:
    world.launch()
    world.yard.project.machines[VM].body["metadata"] = {"owner": "ann"}
    world.until_done(lambda: world.source.terminate(world.work()))
    assert world.yard.machines() == [VM]


def test_a_token_is_in_no_text_of_what_is_asked_for(world: World) -> None:
    work = world.work()
    world.launch()
    assert TOKEN not in repr((work, world.ledger.lines(), world.ledger.all))
    assert TOKEN not in repr(NewVm(VM, DALLAS, "m", 1, 1, 50, "i", TOKEN, {}, ()))
