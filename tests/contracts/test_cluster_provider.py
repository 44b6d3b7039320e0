"""The contract of ``ports.ClusterProvider``, with the real ledger. A new provider adds a row to ``PROVIDERS``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest
from moto import mock_aws

from local.memory import FixedClock
from local.memory_store import MemoryStore, MemoryTable
from stockyard.domain.ids import client_id
from stockyard.domain.records import CloudAccount, Cluster, Resource
from stockyard.domain.times import to_text
from stockyard.errors import CredentialsRevoked, Fenced, VendorError
from stockyard.operations.ledger import Owner, StoreLedger, lines_of
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, ClusterProvider, Create, Outcome
from stockyard.providers.clusters.ec2.provider import Ec2ClusterProvider, Ec2Config

CREATE = ("account", "network", "security", "identity", "endpoint", "control_plane")
DELETE = ("leftovers", "control_plane", "endpoint", "identity", "security", "network")
CLUSTER = "clu_01KDVJXQ80000000000000000A"


@dataclass
class Case:
    """A provider and what it needs to be asked."""

    provider: ClusterProvider
    account: CloudAccount
    settings: dict[str, Any]


def ec2() -> Case:
    arn = "arn:aws:iam::222222222222:role/stockyard"
    keys = boto3.client("sts").assume_role(RoleArn=arn, RoleSessionName="me")["Credentials"]
    tenant = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], "us-east-1")
    tenant.client("ec2").create_key_pair(KeyName="my-key")
    config = Ec2Config("vantage", "1.34", "https://api.example.test", "https://id.example.test", "stockyard", 60)
    account = CloudAccount("1", "aws", "a", "", {"role_arn": arn}, "ext", "verified", "", "t", "t")
    return Case(Ec2ClusterProvider(config, boto3.Session), account, {"key_pair": "my-key"})


PROVIDERS: dict[str, Callable[[], Case]] = {"ec2": ec2}


class World:
    """One cluster on the provider, with a table in memory."""

    def __init__(self, case: Case) -> None:
        self.case, self.clock = case, FixedClock()
        self.store = MemoryStore(MemoryTable(), "acme")
        wanted = SimpleNamespace(store=self.store, clock=self.clock, now=lambda: to_text(self.clock.now()))
        self.services = cast(Services, wanted)
        moment = to_text(self.clock.now())
        self.cluster = Cluster(
            CLUSTER, "c", "d", "k8s", case.account.provider, 1, client_id("acme", CLUSTER, "c"), "preparing",
            case.settings, moment, moment, operation_id="op_1",
        )  # fmt: skip
        self.store.commit(Create(self.cluster))

    def work(self, phase: str, operation: str = "op_1") -> CloudWork:
        ledger = StoreLedger(self.services, Owner.of_cluster(self.cluster, operation, 1), phase)
        return CloudWork("acme", "inst", self.cluster, self.case.account, ledger, self.clock.now(), operation)

    def run(self, what: str, phases: tuple[str, ...]) -> None:
        for phase in phases:
            for _ in range(60):
                outcome: Outcome = getattr(self.case.provider, what)(phase, self.work(phase))
                if outcome.done:
                    break
                assert outcome.message
                assert outcome.wait_seconds > 0
                self.clock.advance(outcome.wait_seconds)
            else:
                raise AssertionError(f"{what} {phase} does not end")

    def lines(self) -> list[Resource]:
        return lines_of(self.services, CLUSTER)

    def tagged(self, installation: str = "inst", tenant: str = "acme") -> set[tuple[str, str]]:
        found = self.case.provider.tagged(self.case.account, installation, tenant, ["us-east-1"])
        return {(thing.kind, thing.vendor_id) for thing in found}


@pytest.fixture(params=sorted(PROVIDERS))
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield World(PROVIDERS[request.param]())


def test_what_is_made_is_on_the_ledger_and_found_by_its_tags(world: World) -> None:
    world.run("ensure", CREATE)
    assert {line.state for line in world.lines()} == {"made"}
    assert {line.vendor_id for line in world.lines()} <= {vendor_id for _, vendor_id in world.tagged()}
    assert world.tagged(installation="another") == set()
    assert world.tagged(tenant="globex") == set()


def test_a_second_run_changes_nothing(world: World) -> None:
    world.run("ensure", CREATE)
    lines, things = world.lines(), world.tagged()
    world.clock.advance(3600)
    world.run("ensure", CREATE)
    assert (world.lines(), world.tagged()) == (lines, things)


@pytest.mark.parametrize("last", range(len(CREATE) + 1))
def test_removal_leaves_nothing_however_far_creation_came(world: World, last: int) -> None:
    world.run("ensure", CREATE[:last])
    world.run("remove", DELETE)
    assert world.lines() == []
    assert world.tagged() == set()
    world.run("remove", DELETE)


def test_a_stale_operation_makes_nothing(world: World) -> None:
    with pytest.raises(Fenced):
        world.case.provider.ensure("network", world.work("network", "op_stale"))
    assert world.tagged() == set()


def test_the_next_attempt_goes_on_with_what_the_last_one_made(world: World) -> None:
    world.run("ensure", CREATE[:4])
    before = world.lines()
    world.cluster = replace(world.cluster, attempt=2, version=2)
    world.run("ensure", ("network", "security", "identity"))
    assert world.lines() == before


def test_inspection_makes_nothing_and_a_lost_role_is_named(world: World) -> None:
    assert [f for f in world.case.provider.inspect(world.work("account")) if not f.warning] == []
    assert world.tagged() == set()
    world.case.account = replace(world.case.account, attributes={})
    with pytest.raises(CredentialsRevoked) as raised:
        world.case.provider.ensure("account", world.work("account"))
    assert isinstance(raised.value, VendorError)
    assert raised.value.hint


def test_another_tenants_thing_is_never_discarded(world: World) -> None:
    world.run("ensure", CREATE[:2])
    things = world.case.provider.tagged(world.case.account, "inst", "acme", ["us-east-1"])
    assert not world.case.provider.discard(world.case.account, things[0], "globex")
    assert not world.case.provider.discard(world.case.account, replace(things[0], resource_id="clu_other"), "acme")
    assert world.tagged() == {(thing.kind, thing.vendor_id) for thing in things}
    for thing in things:
        assert world.case.provider.discard(world.case.account, thing, "acme")
        assert world.case.provider.discard(world.case.account, thing, "acme"), "again is no error"
    assert world.tagged() == set()
