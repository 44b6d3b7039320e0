"""The driver phase by phase over the simulated Cudo: what it makes, what it tells, what it refuses, what it leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from local.machines.programs import script_files
from local.vault.server import VaultServer, app_role
from stockyard.domain.values.ids import account_secret
from stockyard.errors import PermissionDenied, VendorConflict, VendorRefused
from stockyard.machines.control_plane import CONFIG_PATH
from stockyard.operations.engine.ledger import lines_of
from stockyard.providers.clouds.cudo import marks
from stockyard.providers.clouds.cudo.access import Access
from stockyard.providers.clouds.cudo.making import TTL_SECONDS
from stockyard.providers.clouds.cudo.values import NewVm, Rule
from stockyard.providers.clusters.cudo.configuration import CudoConfig
from stockyard.providers.clusters.cudo.network import FROM_NETWORK, OUTWARD
from stockyard.providers.clusters.cudo.provider import CudoClusterDriver
from tests.harness.worlds.cudo_yard import NUMBER
from tests.unit.providers.clusters.cudo.test_settings import KEY
from tests.unit.providers.clusters.cudo.world import CLUSTER, DEAR, PHASES, TOKEN, World


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
    """A disk and a network carry no marks: of these, another place or size tells. See ``Reconciler._without_disk``."""
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
