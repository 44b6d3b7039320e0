"""A control plane's members in one story whose balancer, machines and volume are EC2's: moto in process, and a fault at
one call to AWS. Claims are played as in ``member_life``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from unittest.mock import patch

import pytest
from moto import mock_aws
from moto.ssm.models import ParameterDict

from stockyard.domain.records import Cluster, NodeClaim
from stockyard.ports import CloudWork, Outcome
from stockyard.providers.clusters.ec2.provider import Ec2Config
from tests.harness.checkpoint import Checkpoint
from tests.harness.crash.faults import Crash, Fault, Tap, tapped_clients
from tests.harness.worlds.direct_aws import direct_aws
from tests.unit.operations.clusters.members_world import ZONES, MembersProvider, MembersWorld, members_world
from tests.unit.providers.conftest import ENVIRONMENT, Moment, Yard, _new_yard
from tests.workflows.member_life import MemberLife, Story
from tests.workflows.table_faults import Died

T = TypeVar("T")
CONFIG = Ec2Config("vantage", "https://api.example.test", "https://id.example.test/realms/s", 60)
PHASES = ("network", "security", "identity", "endpoint", "control_plane")
LOOK_SECONDS = 30


@dataclass
class Ec2MembersProvider(MembersProvider):
    """Provider whose work for members is done in the account of ``yard``. The tap sees these calls, and no others."""

    yard: Yard = field(kw_only=True)
    point: str = ""
    machines: dict[str, str] = field(default_factory=dict)
    """By the name of the claim that they were made for."""

    def machine_of(self, cluster: Cluster) -> str:
        return next(line.vendor_id for line in self.yard.ledger.lines() if line.kind == "instance")

    def targets(self, work: CloudWork, machine_ids: Any) -> Any:
        return self._at("targets", lambda own: self.yard.provider.targets(own, machine_ids))

    def admit(self, work: CloudWork, machine_id: str) -> None:
        self._at("admit", lambda own: self.yard.provider.admit(own, machine_id))

    def withdraw(self, work: CloudWork, machine_id: str) -> None:
        self._at("withdraw", lambda own: self.yard.provider.withdraw(own, machine_id))

    def release_first(self, work: CloudWork) -> Outcome:
        return self._at("release_first", self.yard.provider.release_first)

    def _at(self, point: str, do: Callable[[CloudWork], T]) -> T:
        self.yard.later(LOOK_SECONDS)
        self.point = point
        try:
            return do(self.yard.work("members"))
        except Crash as death:
            raise Died(str(death)) from None
        finally:
            self.point = ""

    def machine_for(self, claim: NodeClaim) -> str:
        if claim.name not in self.machines:
            client = self.yard.tenant().client("ec2")
            subnet = next(line.vendor_id for line in self.yard.ledger.lines() if line.kind == "subnet")
            copy = {"ImageId": client.describe_images()["Images"][0]["ImageId"], "InstanceType": "t3.large"}
            answer = client.run_instances(**copy, SubnetId=subnet, MinCount=1, MaxCount=1)
            self.machines[claim.name] = str(answer["Instances"][0]["InstanceId"])
        return self.machines[claim.name]

    def end(self, machine_id: str) -> None:
        super().end(machine_id)
        self.yard.tenant().client("ec2").terminate_instances(InstanceIds=[machine_id])

    def removed(self, machine_id: str) -> None:
        super().removed(machine_id)
        if not machine_id or machine_id in self.ended_machines:
            return  # a worker's, or one that has died
        self.ended_machines.add(machine_id)
        self.yard.tenant().client("ec2").terminate_instances(InstanceIds=[machine_id])

    def balanced(self) -> set[str]:
        client = self.yard.tenant().client("elbv2")
        (group,) = client.describe_target_groups()["TargetGroups"]
        health = client.describe_target_health(TargetGroupArn=group["TargetGroupArn"])["TargetHealthDescriptions"]
        serving = {str(entry["Target"]["Id"]) for entry in health if entry["TargetHealth"]["State"] == "healthy"}
        return serving - self.ended_machines


@dataclass
class Account:
    """The account of all lives, and the clusters that they begin with."""

    tap: Tap = field(default_factory=lambda: Tap(lambda: ""))
    beginnings: dict[tuple[int, bool], tuple[MembersWorld, Checkpoint, Moment]] = field(default_factory=dict)

    def begin(self, story: Story) -> MembersWorld:
        key = (story.before, story.completed)
        if key not in self.beginnings:
            self.beginnings[key] = self._new_cluster(story)
        members, checkpoint, moment = self.beginnings[key]
        moment.restore()
        checkpoint.restore()
        provider = members.provider
        assert isinstance(provider, Ec2MembersProvider)
        self.tap.point = lambda: provider.point
        self.tap.calls.clear()
        self.tap._counts.clear()
        return members

    def _new_cluster(self, story: Story) -> tuple[MembersWorld, Checkpoint, Moment]:
        Moment((), {}).restore()
        self.tap.faults = []
        yard = _new_yard(CONFIG).with_settings(zones=list(ZONES), control_plane_size=3)
        for phase in PHASES:
            yard.ensure(phase)
        members = members_world(story.before, Ec2MembersProvider(yard=yard))
        if story.completed and story.before > 1:
            assert members.drive() == "changed"
        members.world.clock.advance(60)
        yard.provider.targets(yard.work("members"), [])
        unchanging = (yard.provider, yard.cloud, yard.cluster, yard.account, yard.tenant())
        return members, members.world.checkpoint(members, yard, yard.ledger, shared=unchanging), Moment.now()


@dataclass
class Ec2MemberLife(MemberLife):
    """``fault`` happens at a call to AWS."""

    account: Account = field(kw_only=True)
    fault: Fault | None = field(default=None, kw_only=True)

    def _begin(self) -> MembersWorld:
        members = self.account.begin(self.story)
        self.account.tap.faults = [self.fault] if self.fault is not None else []
        return members

    def _mend(self) -> None:
        self.account.tap.lift()

    def _after_deletion(self) -> Iterator[str]:
        self.account.tap.lift()
        yield from super()._after_deletion()
        provider = self.members.provider
        assert isinstance(provider, Ec2MembersProvider)
        provider.yard.later(3600)
        provider.yard.delete()
        if provider.yard.living():
            yield f"left in the account: {provider.yard.living()}"


@contextmanager
def member_account() -> Iterator[Account]:
    """An account for the lives of one module."""
    with pytest.MonkeyPatch.context() as patched, ExitStack() as stack:
        for name, value in ENVIRONMENT.items():
            patched.setenv(name, value)
        patched.delenv("AWS_ENDPOINT_URL", raising=False)
        stack.enter_context(mock_aws())
        stack.enter_context(direct_aws())
        # Images are looked up there, and nothing changes; it cannot be copied.
        stack.enter_context(patch.object(ParameterDict, "__deepcopy__", lambda own, _: own, create=True))
        account = Account()
        stack.enter_context(tapped_clients(account.tap, {}))
        yield account
