"""Cloud accounts in Cudo: what a verification shows, and what the sweep sees and removes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from local.cudo.api import SimulatedCudo
from local.vault.server import VaultServer, app_role, ask
from stockyard.domain.records import CloudAccount
from stockyard.domain.values.ids import account_secret
from stockyard.errors import CredentialsRevoked, NotFound, VendorRefused, VendorUnavailable
from stockyard.providers.clouds.cudo import marks, sheets
from stockyard.providers.clouds.cudo.access import Access
from stockyard.providers.clouds.cudo.cloud import CudoCloud
from stockyard.providers.clouds.cudo.values import NewVm, Rule
from tests.harness.worlds.memory import MemorySecrets

KEY, DALLAS = "cudo-api-key-0123456789", "us-dallas-1"
ATTRIBUTES = {"project_id": "acme", "data_center_id": DALLAS}
ACCOUNT = CloudAccount("7", "cudo", "gpus", "", ATTRIBUTES, "ext", "unverified", "", "t", "t", secrets=("api_key",))


class Yard:
    """A simulated Cudo, an account in it, and the cloud that is asked."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
        self.cudo = SimulatedCudo({KEY: "acme", "other": "globex"}, lambda: self.moment)
        self.secrets = MemorySecrets()
        self.secrets.put(account_secret("acme", "7", "api_key"), KEY)
        self.access = Access(lambda: self.secrets, transport=self.cudo.transport())
        self.cloud = CudoCloud(self.access)

    def machine(self, name: str, metadata: dict[str, str]) -> None:
        self.access.client("acme", ACCOUNT).create_vm(
            NewVm(name, DALLAS, "intel-broadwell", 2, 4, 20, "ubuntu-2404", "true", metadata, ())
        )


@pytest.fixture
def yard() -> Yard:
    return Yard()


def test_a_key_that_may_change_the_project_is_verified(yard: Yard) -> None:
    verification = yard.cloud.verify(ACCOUNT, "acme")
    assert verification.works
    (without_vault,) = verification.warnings
    assert "names no Vault: clusters need settings.no_vault" in without_vault
    yard.cudo.role = "UNKNOWN"
    assert "does not say" in yard.cloud.verify(ACCOUNT, "acme").warnings[1]


@pytest.mark.parametrize(
    ("attributes", "key", "role", "message"),
    [
        ({}, "wrong", "EDITOR", "not valid"),
        ({}, "other", "EDITOR", "does not open project acme"),
        ({"project_id": "nowhere"}, KEY, "EDITOR", "does not open project nowhere"),
        ({}, KEY, "VIEWER", "may only read"),
        ({"data_center_id": "moon"}, KEY, "EDITOR", "no data center moon"),
    ],
)
def test_what_does_not_work_is_told(yard: Yard, attributes: dict[str, str], key: str, role: str, message: str) -> None:
    yard.secrets.put(account_secret("acme", "7", "api_key"), key)
    yard.cudo.role = role
    verification = yard.cloud.verify(replace(ACCOUNT, attributes={**ATTRIBUTES, **attributes}), "acme")
    assert not verification.works
    assert message in verification.message
    assert key not in verification.message or key == "other"


@pytest.fixture
def vault() -> Iterator[VaultServer]:
    server = VaultServer()
    yield server
    server.close()


def with_vault(yard: Yard, vault: VaultServer) -> tuple[CudoCloud, CloudAccount]:
    """The cloud and an account that has an AppRole of the Vault."""
    role_id, secret_id = app_role(vault)
    yard.secrets.put(account_secret("acme", "7", "vault_secret_id"), secret_id)
    attributes = {**ATTRIBUTES, "vault_address": "https://vault.example.test", "vault_role_id": role_id}
    access = Access(
        lambda: yard.secrets,
        transport=yard.cudo.transport(),
        vault_url=vault.url,
        vault_transport=vault.vault.transport(),
    )
    return CudoCloud(access), replace(ACCOUNT, attributes=attributes, secrets=("api_key", "vault_secret_id"))


def test_the_vault_of_an_account_is_verified(yard: Yard, vault: VaultServer) -> None:
    cloud, account = with_vault(yard, vault)
    assert cloud.verify(account, "acme").works
    assert [path for _, path in vault.vault.requests[-2:]] == [
        "/v1/auth/approle/login",
        "/v1/auth/approle/role/stockyard/secret-id",
    ]
    before = len(vault.vault.requests)
    assert cloud.verify(ACCOUNT, "acme").works
    assert len(vault.vault.requests) == before, "an account without a Vault asks none"
    assert yard.access.vault_client("acme", ACCOUNT) is None


def test_an_approle_that_is_refused_is_a_failed_verification(yard: Yard, vault: VaultServer) -> None:
    cloud, account = with_vault(yard, vault)
    ask(vault, "POST", "auth/approle/role/stockyard", {"token_policies": "default"})
    assert "may not make secret ids" in cloud.verify(account, "acme").message
    vault.vault.secret_ids.clear()
    verification = cloud.verify(account, "acme")
    assert not verification.works
    assert "give vault_role_id and vault_secret_id again" in verification.message
    yard.secrets.delete(account_secret("acme", "7", "vault_secret_id"))
    assert "has no vault_secret_id" in cloud.verify(account, "acme").message


def test_a_vault_that_cannot_be_asked_fails_nothing(yard: Yard, vault: VaultServer) -> None:
    cloud, account = with_vault(yard, vault)
    vault.vault.failing = [503]
    with pytest.raises(VendorUnavailable):
        cloud.verify(account, "acme")


def test_an_account_without_its_key_says_what_to_do(yard: Yard) -> None:
    yard.secrets.delete(account_secret("acme", "7", "api_key"))
    verification = yard.cloud.verify(ACCOUNT, "acme")
    assert not verification.works
    assert "give it again" in verification.message
    with pytest.raises(CredentialsRevoked):
        yard.access.client("globex", ACCOUNT)


def test_a_cloud_that_does_not_answer_decides_nothing(yard: Yard) -> None:
    yard.cudo.plan.unavailable["GetProject"] = 9
    access = Access(lambda: yard.secrets, transport=yard.cudo.transport())
    access.client("acme", ACCOUNT)._pause = lambda _seconds: None
    with pytest.raises(VendorUnavailable):
        CudoCloud(access).verify(ACCOUNT, "acme")


def test_there_is_nothing_to_deploy(yard: Yard) -> None:
    with pytest.raises(NotFound, match="nothing has to be deployed"):
        yard.cloud.template(ACCOUNT, "inst")
    assert yard.cloud.principal(ATTRIBUTES) == "acme"
    assert yard.cloud.regions(ACCOUNT) == (DALLAS,)


def test_the_sweep_sees_our_machines_and_groups_and_removes_them(yard: Yard) -> None:
    own_marks = marks.marks("inst", "acme", "clu_1", 3)
    yard.machine("ours", own_marks)
    yard.machine("foreign", {"team": "b"})
    yard.machine("of-another-installation", marks.marks("other", "acme", "clu_1", 3))
    client = yard.access.client("acme", ACCOUNT)
    client.put_security_group("ours", DALLAS, marks.text(own_marks), [Rule("6443", "0.0.0.0/0")])
    client.put_security_group("foreign", DALLAS, "a group of theirs", [Rule("22", "0.0.0.0/0")])
    things = yard.cloud.tagged(ACCOUNT, "inst", "acme", [DALLAS])
    assert [(thing.kind, thing.vendor_id, thing.resource_id, thing.generation) for thing in things] == [
        ("vm", "ours", "clu_1", "3"),
        ("security_group", "ours", "clu_1", "3"),
    ]
    machine, group = things
    assert not yard.cloud.discard(ACCOUNT, machine, "globex")
    assert not yard.cloud.discard(ACCOUNT, machine, "acme"), "it is ending"
    yard.moment += timedelta(minutes=5)
    assert yard.cloud.discard(ACCOUNT, machine, "acme")
    assert yard.cloud.discard(ACCOUNT, group, "acme")
    assert yard.cloud.tagged(ACCOUNT, "inst", "acme", [DALLAS]) == []
    assert sorted(vm.id for vm in client.vms()) == ["foreign", "of-another-installation"]
    assert yard.cudo.outside == []


def test_disks_and_networks_are_known_by_the_group_of_their_cluster(yard: Yard) -> None:
    client = yard.access.client("acme", ACCOUNT)
    own_marks = marks.marks("inst", "acme", "clu_1", 3)
    client.put_security_group("v-demo-0123456789ab-control-plane", DALLAS, marks.text(own_marks), [])
    for name in ("v-dem-0123456789ab-data", "v-demo-ba9876543210-data", "backup"):
        client.create_disk(name, DALLAS, 20)
    for name in ("v-demo-0123456789ab-net", "v-demo-ba9876543210-net", "office"):
        client.create_network(name, DALLAS, "10.160.0.0/22")
    yard.moment += timedelta(minutes=5)
    disk, network, group = yard.cloud.tagged(ACCOUNT, "inst", "acme", [DALLAS])
    assert (disk.kind, disk.vendor_id, disk.resource_id) == ("disk", "v-dem-0123456789ab-data", "clu_1")
    assert (network.kind, network.vendor_id, network.resource_id) == ("network", "v-demo-0123456789ab-net", "clu_1")
    assert yard.cloud.discard(ACCOUNT, disk, "acme")
    assert yard.cloud.discard(ACCOUNT, network, "acme")
    assert yard.cloud.discard(ACCOUNT, group, "acme")
    assert [each.id for each in client.disks()] == ["v-demo-ba9876543210-data", "backup"]
    assert [each.id for each in client.networks()] == ["v-demo-ba9876543210-net", "office"]


def test_groups_stay_as_long_as_a_disk_that_is_known_by_them(yard: Yard) -> None:
    client, own_marks = yard.access.client("acme", ACCOUNT), marks.marks("inst", "acme", "clu_1", 3)
    for thing in ("control-plane", "node"):
        client.put_security_group(f"v-demo-0123456789ab-{thing}", DALLAS, marks.text(own_marks), [])
    client.create_disk("v-demo-0123456789ab-data", DALLAS, 20)
    client.create_network("v-demo-0123456789ab-net", DALLAS, "10.160.0.0/22")
    yard.moment += timedelta(minutes=5)
    disk, network, *groups = yard.cloud.tagged(ACCOUNT, "inst", "acme", [DALLAS])
    assert not any(yard.cloud.discard(ACCOUNT, group, "acme") for group in groups)
    assert yard.cloud.discard(ACCOUNT, network, "acme")
    assert not any(yard.cloud.discard(ACCOUNT, group, "acme") for group in groups), "the disk is still there"
    assert yard.cloud.discard(ACCOUNT, disk, "acme")
    assert all(yard.cloud.discard(ACCOUNT, group, "acme") for group in groups)


def test_digits_in_a_name_and_copies_of_an_id_are_no_clusters(yard: Yard) -> None:
    """A name may have twelve hex digits of its own, such as a commit's; a tenant may have copied a disk."""
    client = yard.access.client("acme", ACCOUNT)
    for number, digits in enumerate(("b00000000001", "c00000000002")):
        own_marks = marks.marks("inst", "acme", f"clu_{number}", 1)
        name = f"v-ci-a1b2c3d4e5f6-{digits}"
        client.put_security_group(f"{name}-control-plane", DALLAS, marks.text(own_marks), [])
        client.create_disk(f"{name}-data", DALLAS, 20)
        client.create_disk(f"{name}-data-copy", DALLAS, 20)
    yard.moment += timedelta(minutes=5)
    things = yard.cloud.tagged(ACCOUNT, "inst", "acme", [DALLAS])
    assert [(thing.vendor_id, thing.resource_id) for thing in things if thing.kind == "disk"] == [
        ("v-ci-a1b2c3d4e5f6-b00000000001-data", "clu_0"),
        ("v-ci-a1b2c3d4e5f6-c00000000002-data", "clu_1"),
    ]


def test_an_account_is_offered_what_its_project_is(yard: Yard) -> None:
    moment = "2026-01-31T12:00:00.000Z"
    assert yard.cloud.sells_by_account
    sheet = sheets.read(yard.cloud.offers(ACCOUNT, "acme", moment))
    assert sheet.moment == moment
    assert [(kind.name, kind.data_center) for kind in sheet.types] == [(o.name, o.data_center) for o in yard.cudo.stock]
    yard.cudo.stock = ()
    with pytest.raises(VendorRefused, match="no machine types"):
        yard.cloud.offers(ACCOUNT, "acme", moment)
