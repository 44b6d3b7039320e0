"""The contract of ``ports.ClusterDriver``, with the real ledger, for every driver of the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest
from moto import mock_aws

from local.cudo.api import SimulatedCudo
from local.testing.memory_store import MemoryStore, MemoryTable
from stockyard.domain.models.base import read
from stockyard.domain.records import CloudAccount, Cluster, Resource
from stockyard.domain.values.ids import account_secret, client_id
from stockyard.domain.values.times import to_text
from stockyard.errors import CredentialsRevoked, Fenced, VendorError
from stockyard.lifecycle.phases import CREATE_CLUSTER, DELETE_CLUSTER, PROCEDURES, procedure_of
from stockyard.lifecycle.procedure import ENSURE, REMOVE
from stockyard.operations.engine.ledger import Owner, StoreLedger, lines_of
from stockyard.operations.services import Services
from stockyard.ports import Cloud, CloudWork, ClusterDriver, Create, Outcome
from stockyard.providers import registry
from stockyard.providers.clouds.cudo.access import Access
from stockyard.providers.clouds.cudo.cloud import CudoCloud
from stockyard.providers.clusters.cudo.configuration import CudoConfig
from stockyard.providers.clusters.cudo.provider import CudoClusterDriver
from stockyard.providers.clusters.cudo.settings import CudoSettings
from stockyard.providers.clusters.eks.provider import EksClusterDriver, EksConfig
from stockyard.providers.clusters.eks.settings import EksSettings
from stockyard.providers.descriptors import ProviderTools
from stockyard.settings import Settings
from tests.harness.worlds import inventory
from tests.harness.worlds.direct_aws import direct_aws
from tests.harness.worlds.memory import FixedClock, MemorySecrets
from tests.harness.worlds.memory_kubernetes import MemoryKubernetes

FACTS = ("endpoint", "certificate_authority")
"""Of a phase, what later ones read of the cluster."""
CLUSTER = "clu_01KDVJXQ80000000000000000A"


@dataclass
class Case:
    """A driver, its cloud, and what they need to be asked."""

    driver: ClusterDriver
    cloud: Cloud
    account: CloudAccount
    settings: dict[str, Any]
    clock: FixedClock = field(default_factory=FixedClock)
    unseen: frozenset[str] = frozenset()
    """Kinds of ledger lines that the sweep does not see while their cluster stands."""
    untagged: frozenset[str] = frozenset()
    """Kinds of things that take no tags."""
    tags: Callable[[], dict[str, dict[str, str]]] = lambda: inventory.tags("222222222222", "us-east-1")
    """What carries tags, by name."""


def described(name: str, **settings: Any) -> Case:
    """A driver that needs nothing but its registry line: any cluster settings do, and the account is a role."""
    arn = "arn:aws:iam::222222222222:role/stockyard"
    stage = Settings("t", api_url="https://api.example.test", issuer="https://id.example.test")
    descriptor = registry.descriptor("clusters", name)
    account = CloudAccount("1", descriptor.kind.cloud, "a", "", {"role_arn": arn}, "ext", "verified", "", "t", "t")
    tools = ProviderTools(stage, MemorySecrets)
    cloud = registry.descriptor("clouds", descriptor.kind.cloud).make(tools)
    return Case(descriptor.make(tools), cloud, account, settings)


def ec2() -> Case:
    """As ``described``, with the template's role and a key pair in the tenant's account, and snapshots of etcd."""
    inventory.tenant_role("222222222222", "stockyard")
    backup = {"interval_hours": 6, "keep": 2, "bucket": None, "on_deletion": "remove"}
    case = described("ec2", key_pair="my-key", cloud_controllers=True, etcd_backup=backup)
    arn = case.account.attributes["role_arn"]
    keys = boto3.client("sts").assume_role(RoleArn=arn, RoleSessionName="me")["Credentials"]
    tenant = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], "us-east-1")
    tenant.client("ec2").create_key_pair(KeyName="my-key")
    return case


def cudo() -> Case:
    """Over a simulated Cudo. The account has no Vault."""
    clock, key = FixedClock(), "cudo-api-key-0123456789"
    secrets, vendor = MemorySecrets(), SimulatedCudo({key: "project"}, clock.now)
    for tenant in ("acme", "globex"):
        secrets.put(account_secret(tenant, "1", "api_key"), key)
    access = Access(lambda: secrets, transport=vendor.transport())
    attributes = {"project_id": "project", "data_center_id": "us-dallas-1"}
    account = CloudAccount("1", "cudo", "a", "", attributes, "", "verified", "", "t", "t")
    config = CudoConfig("vantage", "https://api.example.test", "https://id.example.test")
    settings = read(CudoSettings, {"no_vault": True}).normal()

    def tags() -> dict[str, dict[str, str]]:
        return {vm.id: dict(vm.metadata) for vm in access.client("acme", account).vms()}

    driver, cloud = CudoClusterDriver(config, access), CudoCloud(access)
    unseen, untagged = frozenset({"choice", "disk"}), frozenset({"security_group", "network"})
    return Case(driver, cloud, account, settings, clock, unseen, untagged, tags)


def eks() -> Case:
    """With the template's role, and a cluster whose API takes what is applied. The group of EKS's own gets our tags
    from us, but for its name; mount targets take none."""
    inventory.tenant_role("222222222222", "stockyard")
    group = {"name": "gpus", "role": "gpu", "instance_type": "p5.48xlarge", "accelerator_type": "h100", "fabric": "efa"}
    settings = read(EksSettings, {"node_groups": [{**group, "zones": ["us-east-1b"]}]}).normal()
    case = described("eks", **settings)
    config = EksConfig("t", "https://api.example.test", "https://id.example.test")
    case.driver = EksClusterDriver(config, boto3.Session, MemoryKubernetes().client)
    case.untagged = frozenset({"mount_target"})
    return case


WITH_NEEDS: dict[str, Callable[[], Case]] = {"ec2": ec2, "cudo": cudo, "eks": eks}
DRIVERS = {name: WITH_NEEDS.get(name, partial(described, name)) for name in registry.names("clusters")}
"""Every driver in the registry; those whose clusters need something in the account are made by a function."""


def phases_of(driver: str, kind: str, work: str) -> tuple[str, ...]:
    """The phases of an operation that the driver carries out, by its rows in the table of phases."""
    rows = registry.descriptor("clusters", driver).kind.rows
    return tuple(phase.name for phase in procedure_of(PROCEDURES, kind, rows).phases if phase.runs == work)


class World:
    """One cluster of the driver, with a table in memory."""

    def __init__(self, driver: str) -> None:
        self.case = DRIVERS[driver]()
        self.clock = self.case.clock
        self.creation = phases_of(driver, CREATE_CLUSTER, ENSURE)
        self.deletion = phases_of(driver, DELETE_CLUSTER, REMOVE)
        self.store = MemoryStore(MemoryTable(), "acme")
        services = SimpleNamespace(store=self.store, clock=self.clock, now=lambda: to_text(self.clock.now()))
        self.services = cast(Services, services)
        moment, cluster_type = to_text(self.clock.now()), registry.descriptor("clusters", driver).kind.cluster_type
        self.cluster = Cluster(
            CLUSTER, "c", "d", cluster_type, self.case.account.provider, 1, client_id("acme", CLUSTER, "c"),
            "preparing", self.case.settings, moment, moment, operation_id="op_1", driver=driver,
        )  # fmt: skip
        self.store.commit(Create(self.cluster))

    def work(self, phase: str, operation: str = "op_1") -> CloudWork:
        ledger = StoreLedger(self.services, Owner.of_cluster(self.cluster, operation, 1), phase)
        return CloudWork("acme", "inst", self.cluster, self.case.account, ledger, self.clock.now(), operation)

    def run(self, method: str, phases: tuple[str, ...], operation: str = "op_1") -> None:
        for phase in phases:
            for _ in range(60):
                outcome: Outcome = getattr(self.case.driver, method)(phase, self.work(phase, operation))
                if outcome.done:
                    facts = {name: outcome.facts[name] for name in FACTS if name in outcome.facts}
                    self.cluster = replace(self.cluster, **facts)
                    break
                assert outcome.message
                assert outcome.wait_seconds > 0
                self.clock.advance(outcome.wait_seconds)
            else:
                raise AssertionError(f"{method} {phase} does not end")

    def lines(self) -> list[Resource]:
        return lines_of(self.services, CLUSTER)

    def tagged(self, installation: str = "inst", tenant: str = "acme") -> set[tuple[str, str]]:
        resources = self.case.cloud.tagged(self.case.account, installation, tenant, ["us-east-1"])
        return {(thing.kind, thing.vendor_id) for thing in resources}


@pytest.fixture(params=sorted(DRIVERS))
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws(), direct_aws():
        yield World(request.param)


def test_created_resources_are_on_ledger_and_found_by_tags(world: World) -> None:
    world.run("ensure", world.creation)
    assert {line.state for line in world.lines()} == {"made"}
    seen_lines = {line.vendor_id for line in world.lines() if line.kind not in world.case.unseen}
    assert seen_lines
    assert seen_lines <= {vendor_id for _, vendor_id in world.tagged()}
    assert world.tagged(installation="another") == set()
    assert world.tagged(tenant="globex") == set()


def test_second_run_changes_nothing(world: World) -> None:
    world.run("ensure", world.creation)
    lines, things = world.lines(), world.tagged()
    world.clock.advance(3600)
    world.run("ensure", world.creation)
    assert (world.lines(), world.tagged()) == (lines, things)


@pytest.mark.parametrize(
    ("world", "last"),
    [(name, last) for name in DRIVERS for last in range(len(phases_of(name, CREATE_CLUSTER, ENSURE)) + 1)],
    indirect=["world"],
)
def test_removal_leaves_nothing_after_partial_creation(world: World, last: int) -> None:
    world.run("ensure", world.creation[:last])
    world.run("remove", world.deletion)
    assert world.lines() == []
    assert world.tagged() == set()
    world.run("remove", world.deletion)


def test_stale_operation_creates_nothing(world: World) -> None:
    with pytest.raises(Fenced):
        world.run("ensure", world.creation, "op_stale")
    assert world.tagged() == set()


def test_next_attempt_continues_with_existing_resources(world: World) -> None:
    world.run("ensure", world.creation[:4])
    before = world.lines()
    world.cluster = replace(world.cluster, attempt=2, version=2)
    world.run("ensure", world.creation[:4])
    assert world.lines() == before


def test_inspection_creates_nothing_and_names_missing_role(world: World) -> None:
    assert [f for f in world.case.driver.inspect(world.work(world.creation[0])) if not f.warning] == []
    assert world.tagged() == set()
    world.case.account = replace(world.case.account, attributes={})
    with pytest.raises(CredentialsRevoked) as raised:
        world.case.driver.ensure(world.creation[0], world.work(world.creation[0]))
    assert isinstance(raised.value, VendorError)
    assert raised.value.hint


def test_resource_of_another_tenant_is_never_discarded(world: World) -> None:
    for phase in world.creation:
        if world.tagged():
            break
        world.run("ensure", (phase,))
    things = world.case.cloud.tagged(world.case.account, "inst", "acme", ["us-east-1"])
    assert not world.case.cloud.discard(world.case.account, things[0], "globex")
    assert not world.case.cloud.discard(world.case.account, replace(things[0], resource_id="clu_other"), "acme")
    assert world.tagged() == {(thing.kind, thing.vendor_id) for thing in things}
    for thing in things:
        assert world.case.cloud.discard(world.case.account, thing, "acme")
        assert world.case.cloud.discard(world.case.account, thing, "acme"), "again is no error"
    assert world.tagged() == set()


def test_other_tags_reach_everything_and_ours_stay(world: World) -> None:
    driver = world.case.driver
    if not driver.retags:
        return  # The port is one that a driver need not have.
    world.cluster = replace(world.cluster, tags={"team": "a", "stage": "one"})
    world.run("ensure", world.creation)
    before = world.case.tags()
    own = {name: tags for name, tags in before.items() if tags.get("team") == "a"}
    assert len(own) >= len([thing for thing, _ in world.tagged() if thing not in world.case.untagged]) > 0
    world.cluster = replace(world.cluster, tags={"stage": "two", "cost": "7"})
    for _ in range(2):
        assert driver.retag(world.work("tags"), ["team", "stockyard:tenant", "Name"]).done
        after = world.case.tags()
        assert after.keys() == before.keys()
        for name, tags in own.items():
            fixed = {key: value for key, value in tags.items() if key not in ("team", "stage")}
            assert after[name] == {**fixed, "stage": "two", "cost": "7"}, name
        assert {name: after[name] for name in after if name not in own} == {
            name: tags for name, tags in before.items() if name not in own
        }


def test_snapshots_are_listed_and_removed_and_one_is_read_at_a_time(world: World) -> None:
    keeper = world.case.driver.snapshot_keeper
    if keeper is None:
        return  # The port is one that a driver need not have.
    world.run("ensure", world.creation)
    work, old, new = world.work("identity"), "20260101T000000Z", "20260101T060000Z"
    store = keeper.snapshot_store(world.cluster)
    assert store is not None
    assert list(keeper.snapshots(work)) == []
    assert keeper.snapshot(work, old) is None
    inventory.put_object("222222222222", store.bucket, store.key(old), {"release": "1.35.4"})
    inventory.put_object("222222222222", store.bucket, store.key(new), {"release": "1.35.4"})
    assert [snapshot.id for snapshot in keeper.snapshots(work)] == [new, old]
    snapshot = keeper.snapshot(work, old)
    assert snapshot is not None
    assert (snapshot.id, snapshot.kubernetes_version) == (old, "1.35")
    things = world.lines()
    for _ in range(2):
        keeper.open_snapshot(work, new)
    for _ in range(2):
        keeper.close_snapshots(work)
    assert [(line.kind, line.key, line.vendor_id) for line in world.lines()] == [
        (line.kind, line.key, line.vendor_id) for line in things
    ]
    for _ in range(2):
        keeper.remove_snapshots(work, [old])
    assert [snapshot.id for snapshot in keeper.snapshots(work)] == [new]
    assert keeper.kept_snapshots(world.cluster) == []
    without = replace(world.cluster, settings={**world.cluster.settings, "etcd_backup": None})
    assert keeper.snapshot_store(without) is None
