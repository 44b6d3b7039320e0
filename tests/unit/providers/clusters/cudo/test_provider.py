"""The driver phase by phase over the simulated Cudo: what it makes, what it tells, what it refuses, what it leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from local.machines.programs import script_files
from local.vault.server import VaultServer, app_role
from stockyard.domain.ids import account_secret, client_id
from stockyard.domain.models.base import read
from stockyard.domain.records import Cluster, Resource
from stockyard.domain.times import to_text
from stockyard.errors import InsufficientCapacity, PermissionDenied, VendorConflict, VendorRefused
from stockyard.machines.control_plane import CONFIG_PATH
from stockyard.operations.engine.ledger import Owner, StoreLedger, lines_of
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, Create, Outcome
from stockyard.providers.clouds.cudo import marks
from stockyard.providers.clouds.cudo.access import Access
from stockyard.providers.clouds.cudo.making import CHOICE, TTL_SECONDS
from stockyard.providers.clouds.cudo.values import NewVm, Rule
from stockyard.providers.clusters.cudo.configuration import CudoConfig
from stockyard.providers.clusters.cudo.network import FROM_NETWORK, OUTWARD
from stockyard.providers.clusters.cudo.provider import CudoClusterDriver
from stockyard.providers.clusters.cudo.settings import CudoSettings
from tests.harness.cudo_yard import NUMBER, CudoYard
from tests.harness.memory_store import MemoryStore, MemoryTable
from tests.unit.providers.clusters.cudo.test_settings import CONTROL, KEY

CLUSTER = "clu_01KDVJXQ80000000000000000A"
TOKEN = "e" * 64
PHASES = ("account", "machine_type", "network", "disk", "control_plane")
CHEAP, DEAR = "epyc-milan", "intel-broadwell"


class World:
    """One cluster in a project where two machine types are sold, the first the cheaper."""

    def __init__(self, *, dns_suffix: str = "", name: str = "demo", **settings: Any) -> None:
        self.yard = CudoYard(CHEAP, DEAR)
        config = CudoConfig("vantage", "https://api.example.test", "https://id.example.test", dns_suffix)
        self.driver = CudoClusterDriver(config, self.yard.access())
        clock = self.yard.clock
        store = MemoryStore(MemoryTable(), "acme")
        services = SimpleNamespace(store=store, clock=clock, now=lambda: to_text(clock.now()))
        self.services, moment = cast(Services, services), to_text(clock.now())
        own = read(CudoSettings, {"no_vault": True, **settings}).normal()
        self.cluster = Cluster(
            CLUSTER, name, "d", "k8s", "cudo", 2, client_id("acme", CLUSTER, name), "preparing", own, moment, moment,
            operation_id="op_1", driver="cudo", created_by="user:ann",
        )  # fmt: skip
        store.commit(Create(self.cluster))

    def step(self, phase: str, method: str = "ensure") -> Outcome:
        ledger = StoreLedger(self.services, Owner.of_cluster(self.cluster, "op_1", 1), phase)
        now = self.yard.clock.now()
        token = TOKEN if phase == "control_plane" else ""
        work = CloudWork("acme", "inst", self.cluster, self.yard.account, ledger, now, "op_1", machine_token=token)
        outcome: Outcome = getattr(self.driver, method)(phase, work)
        return outcome

    def until_done(self, phase: str, method: str = "ensure") -> Outcome:
        for _ in range(60):
            outcome = self.step(phase, method)
            if outcome.done:
                return outcome
            self.yard.clock.advance(outcome.wait_seconds)
        raise AssertionError(f"{phase} does not end: {outcome.message}")

    def up_to(self, last: str) -> Outcome:
        for phase in PHASES[: PHASES.index(last) + 1]:
            outcome = self.until_done(phase)
        return outcome

    def removed(self) -> None:
        for phase in reversed(PHASES[1:]):
            self.until_done(phase, "remove")

    def choice(self) -> Resource:
        (line,) = [line for line in lines_of(self.services, CLUSTER) if line.kind == CHOICE]
        return line

    def things(self) -> list[str]:
        project = self.yard.project
        return [*self.yard.machines(), *project.disks, *project.networks, *project.groups]

    def rules(self, thing: str) -> set[tuple[str, str, str]]:
        """The rules for what comes in: protocol, ports, range."""
        group = self.yard.project.groups[f"vantage-{self.cluster.client_id}-{thing}"]
        inbound = [rule for rule in group["rules"] if rule["ruleType"] == "RULE_TYPE_INBOUND"]
        return {(rule["protocol"], rule.get("ports", ""), rule["ipRangeCidr"]) for rule in inbound}

    def machine(self) -> dict[str, Any]:
        (machine,) = self.yard.project.machines.values()
        return machine.body


def test_all_phases_make_a_machine_on_its_network_with_its_disk() -> None:
    world = World(control_plane_size="sm")
    outcome = world.up_to("control_plane")
    stem = f"vantage-{world.cluster.client_id}"
    assert sorted(world.things()) == sorted(
        [f"{stem}-control-plane", f"{stem}-data", f"{stem}-net", f"{stem}-control-plane", f"{stem}-node"]
    )
    body = world.machine()
    assert (body["vcpus"], body["memoryGib"], body["bootDiskSizeGib"]) == (4, 8, 50)
    assert body["storageDiskIds"] == [f"{stem}-data"]
    (nic,) = body["nics"]
    assert (nic["networkId"], nic["assignPublicIp"]) == (f"{stem}-net", True)
    assert nic["securityGroupIds"] == [f"{stem}-control-plane"]
    (document,) = world.yard.cudo.machines().values()
    assert outcome.facts == {
        "instance_id": f"{stem}-control-plane",
        "private_address": document["internalIpAddress"],
        "endpoint": f"https://{document['externalIpAddress']}:6443",
        "machine_endpoint": f"https://{world.cluster.client_id}.stockyard.internal:6443",
    }
    assert document["internalIpAddress"] != document["externalIpAddress"] != ""
    assert world.yard.cudo.outside == []


def test_the_machine_is_told_its_token_in_its_start_script_alone() -> None:
    world = World()
    world.up_to("control_plane")
    body = world.machine()
    machine_json = json.loads(script_files(body["startScript"])[CONFIG_PATH])
    assert (machine_json["cluster_id"], machine_json["token"], machine_json["creator"]) == (CLUSTER, TOKEN, "ann")
    assert TOKEN not in json.dumps({**body, "startScript": ""})
    assert TOKEN not in repr(lines_of(world.services, CLUSTER))


def test_the_stages_domain_is_that_of_the_machines_name() -> None:
    world = World(dns_suffix="clusters.example.test")
    facts = world.up_to("control_plane").facts
    assert facts["machine_endpoint"] == f"https://{world.cluster.client_id}.clusters.example.test:6443"


# --- which type -------------------------------------------------------------------------------------------------------


def test_the_machine_type_is_chosen_once_and_kept_whatever_the_prices_are_later() -> None:
    world = World()
    outcome = world.up_to("machine_type")
    assert outcome.facts == {"place": "us-dallas-1"}
    assert world.choice().detail["types"] == [CHEAP, DEAR]
    choice = world.choice()
    world.yard.cudo.stock = tuple(reversed(world.yard.cudo.stock))[:1]
    assert world.until_done("machine_type").message == outcome.message
    assert world.choice() == choice
    assert world.yard.cudo.calls["ListVMMachineTypes"] == 1


def test_everything_stands_where_the_type_was_chosen_whatever_the_account_names_since() -> None:
    world = World()
    world.until_done("machine_type")
    attributes = {**world.yard.account.attributes, "data_center_id": "no-kristiansand-1"}
    world.yard.account = replace(world.yard.account, attributes=attributes)
    for phase in PHASES[2:]:
        world.until_done(phase)
    project = world.yard.project
    bodies = [thing.body for thing in (*project.networks.values(), *project.disks.values())]
    things = [*project.groups.values(), *bodies, world.machine()]
    assert {thing["dataCenterId"] for thing in things} == {"us-dallas-1"}


def test_the_cheapest_type_is_taken_and_the_next_one_where_it_is_scarce() -> None:
    first, second = World(), World()
    first.up_to("control_plane")
    assert first.machine()["machineType"] == CHEAP
    second.up_to("disk")
    second.yard.run_out([CHEAP])
    assert not second.step("control_plane").done
    assert second.choice().detail["refused"] == [CHEAP]
    second.yard.run_out([])
    second.until_done("control_plane")
    assert second.machine()["machineType"] == DEAR
    assert second.choice().detail["refused"] == [], "one that takes its place may have the cheapest again"
    second.until_done("control_plane")
    assert second.machine()["machineType"] == DEAR, "a machine that is there is not made again"


def test_a_later_try_begins_anew_when_there_was_no_room_for_any_type() -> None:
    world = World()
    world.up_to("disk")
    world.yard.run_out([CHEAP, DEAR])
    with pytest.raises(InsufficientCapacity):
        world.step("control_plane")
    assert world.yard.machines() == []
    assert world.choice().detail["refused"] == []
    world.yard.run_out([])
    world.until_done("control_plane")
    assert world.machine()["machineType"] == CHEAP


def test_no_type_is_chosen_where_none_has_room() -> None:
    world = World()
    world.up_to("account")
    world.yard.run_out([CHEAP, DEAR])
    with pytest.raises(InsufficientCapacity, match="No machine type in us-dallas-1 has 8 vCPUs"):
        world.step("machine_type")
    world.yard.run_out([CHEAP])
    world.until_done("machine_type")
    assert world.choice().detail["types"] == [DEAR]


def test_a_named_type_is_the_only_one() -> None:
    world = World(autoscaler_node_groups=[CONTROL])
    world.up_to("machine_type")
    assert world.choice().detail["types"] == ["intel-broadwell"]
    world = World(autoscaler_node_groups=[{**CONTROL, "machine_type": "sapphire-rapids"}])
    with pytest.raises(VendorRefused, match="us-dallas-1 has no sapphire-rapids"):
        world.step("machine_type")


@pytest.mark.parametrize(("dev_mode", "image"), [(False, "ubuntu-2404"), (True, "ubuntu-2504")])
def test_dev_mode_chooses_the_image_of_the_development_channel(dev_mode: bool, image: str) -> None:
    world = World(dev_mode=dev_mode)
    world.up_to("control_plane")
    assert world.machine()["bootDiskImageId"] == image


# --- who may reach it -------------------------------------------------------------------------------------------------

INSIDE = ("PROTOCOL_ALL", "", FROM_NETWORK.cidr)


@pytest.mark.parametrize(
    ("settings", "control_plane"),
    [
        ({"api_cidrs": ["203.0.113.0/24"]}, {("PROTOCOL_TCP", "6443", "203.0.113.0/24")}),
        ({"api_cidrs": ["203.0.113.0/24"], "ssh_public_key": KEY}, {("PROTOCOL_TCP", "6443", "203.0.113.0/24")}),
        (
            {"api_cidrs": ["203.0.113.0/24", "198.51.100.7/32"], "ssh_public_key": KEY, "ssh_cidrs": ["192.0.2.0/24"]},
            {
                ("PROTOCOL_TCP", "6443", "203.0.113.0/24"),
                ("PROTOCOL_TCP", "6443", "198.51.100.7/32"),
                ("PROTOCOL_TCP", "22", "192.0.2.0/24"),
            },
        ),
    ],
)
def test_only_the_api_is_open_and_port_22_with_key_and_range(
    settings: dict[str, Any], control_plane: set[tuple[str, str, str]]
) -> None:
    world = World(**settings)
    world.up_to("control_plane")
    assert world.rules("control-plane") == {*control_plane, INSIDE}
    assert world.rules("node") == {INSIDE}
    assert world.machine()["customSshKeys"] == ([KEY] if "ssh_public_key" in settings else [])
    assert world.machine()["sshKeySource"] == "SSH_KEY_SOURCE_NONE"


def test_rules_that_somebody_has_changed_are_put_right_by_the_next_try() -> None:
    world = World(api_cidrs=["203.0.113.0/24"])
    world.up_to("network")
    group = world.yard.project.groups[f"vantage-{world.cluster.client_id}-control-plane"]
    group["rules"] = [Rule("1-65535", "0.0.0.0/0").document(), OUTWARD.document()]
    world.until_done("network")
    assert world.rules("control-plane") == {("PROTOCOL_TCP", "6443", "203.0.113.0/24"), INSIDE}


def test_names_fit_and_keep_the_digits_that_make_them_unique() -> None:
    world = World(name="a-very-long-name-of-a-cluster-with-many-letters-" * 2 + "z")
    world.up_to("control_plane")
    digest = world.cluster.client_id[-12:]
    for name in world.things():
        assert len(name) <= 63
        assert digest in name


# --- how long it lives ------------------------------------------------------------------------------------------------


def test_cudo_ends_a_machine_that_nobody_came_back_for_and_no_other() -> None:
    lost, adopted = World(), World()
    lost.up_to("disk")
    assert not lost.step("control_plane").done
    assert lost.machine()["ttl"] == f"{TTL_SECONDS}s"
    lost.yard.clock.advance(TTL_SECONDS + 1)
    assert lost.yard.machines() == []
    adopted.up_to("control_plane")
    assert adopted.yard.cudo.calls["UpdateVMExpireTime"] == 1
    adopted.yard.clock.advance(30 * TTL_SECONDS)
    assert len(adopted.yard.machines()) == 1
    adopted.until_done("control_plane")
    assert adopted.yard.cudo.calls["UpdateVMExpireTime"] == 1, "it is kept once"


def test_a_machine_that_was_adopted_and_is_gone_is_not_made_again_behind_the_users_back() -> None:
    world = World()
    world.up_to("control_plane")
    world.yard.client().terminate_vm(world.yard.machines()[0])
    world.yard.clock.advance(60)
    with pytest.raises(VendorRefused, match="is gone"):
        world.step("control_plane")
    assert world.yard.machines() == []


@pytest.mark.parametrize(
    ("phase", "operation", "words"),
    [
        ("network", "CreateNetwork", "Network vantage-demo-.*-net has failed"),
        ("disk", "CreateStorageDisk", "Disk vantage-demo-.*-data has failed"),
        ("control_plane", "CreateVM", "Machine vantage-demo-.*-control-plane has failed"),
    ],
)
def test_what_has_failed_ends_its_phase_at_once_and_can_be_removed(phase: str, operation: str, words: str) -> None:
    world = World()
    world.yard.cudo.plan.failing[operation] = 1
    before = PHASES[PHASES.index(phase) - 1]
    world.up_to(before)
    with pytest.raises(VendorRefused, match=words) as caught:
        world.until_done(phase)
    assert caught.value.code == "FAILED"
    world.until_done(phase, "remove")
    world.until_done(phase)
    world.removed()
    assert world.things() == []


# --- whose it is ------------------------------------------------------------------------------------------------------


def test_the_key_of_somebody_who_may_only_read_is_refused_before_anything_is_made() -> None:
    world = World()
    world.yard.cudo.role = "VIEWER"
    with pytest.raises(PermissionDenied, match="may only read"):
        world.step("account")
    assert lines_of(world.services, CLUSTER) == []


def test_an_encrypted_cluster_is_refused_where_the_account_has_no_vault() -> None:
    world = World(no_vault=False)
    with pytest.raises(VendorRefused, match="The cloud account has no Vault"):
        world.step("account")


def test_a_key_that_may_be_left_in_a_vault_that_the_account_has_no_more_is_told() -> None:
    world, vault = World(no_vault=False), VaultServer()
    role_id, secret_id = app_role(vault)
    vault.close()
    world.yard.secrets.put(account_secret("acme", NUMBER, "vault_secret_id"), secret_id)
    access = Access(
        lambda: world.yard.secrets,
        transport=world.yard.cudo.transport(),
        vault_url=vault.url,
        vault_transport=vault.vault.transport(),
    )
    world.driver = CudoClusterDriver(
        CudoConfig("vantage", "https://api.example.test", "https://id.example.test"), access
    )

    def address(value: str) -> None:
        attributes = {**world.yard.account.attributes, "vault_address": value, "vault_role_id": role_id}
        world.yard.account = replace(world.yard.account, attributes=attributes)

    for later, words in (("https://first.test", ""), ("https://later.test", "https://first.test"), ("", "first.test")):
        address("https://first.test")
        world.up_to("disk")
        address(later)
        message = world.until_done("disk", "remove").message
        assert (words in message, "may be left" in message) == (True, bool(words))


def test_deletion_leaves_nothing_and_touches_nothing_of_others() -> None:
    world = World()
    client = world.yard.client()
    client.create_disk("somebody-elses", "us-dallas-1", 10)
    client.create_network("theirs", "us-dallas-1", "10.1.0.0/24")
    client.put_security_group("their-group", "us-dallas-1", "by hand", [OUTWARD])
    world.up_to("control_plane")
    world.removed()
    assert sorted(world.things()) == ["somebody-elses", "their-group", "theirs"]
    assert lines_of(world.services, CLUSTER) == []
    assert world.yard.cudo.outside == []


@pytest.mark.parametrize("phase", ["network", "disk", "control_plane"])
def test_a_thing_of_that_id_that_is_not_ours_stops_the_phase_and_stays(phase: str) -> None:
    """A disk and a network carry no marks: of these, another place or size tells. See ``Maker._without_disk``."""
    world = World()
    world.up_to(PHASES[PHASES.index(phase) - 1])
    name, client = f"vantage-{world.cluster.client_id}-control-plane", world.yard.client()
    if phase == "network":
        client.put_security_group(name, "us-dallas-1", "by hand", [OUTWARD])
    elif phase == "disk":
        name = f"vantage-{world.cluster.client_id}-data"
        client.create_disk(name, "us-dallas-1", 500)
    else:
        other_marks = marks.marks("another installation", "acme", CLUSTER, 1)
        new_vm = NewVm(name, "us-dallas-1", DEAR, 4, 8, 50, "ubuntu-2404", "true", other_marks, ())
        client.create_vm(new_vm)
    world.yard.clock.advance(60)
    with pytest.raises(VendorConflict, match="There is another"):
        world.until_done(phase)
    world.until_done(phase, "remove")
    assert name in world.things()
