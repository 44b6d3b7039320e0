"""A tenant's account in moto, in process, with one cluster's network, and faults at any call or write.

The local cloud's corrections hide new resources, remember client tokens and limit capacity. Time passes on a virtual
clock.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import boto3
import pytest
from moto import mock_aws
from moto.ec2.models import ec2_backends

from local.aws.corrections.compute.compute import hidden_at_first, idempotent_calls, instant_fleets
from local.aws.corrections.refusals import gone_have_no_tags
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.domain.values.ids import client_id
from stockyard.errors import StockyardError
from stockyard.ports import CloudWork
from stockyard.providers.clouds.aws.sessions import Sessions
from stockyard.providers.clusters.ec2.provider import Ec2ClusterDriver, Ec2Config
from tests.harness.crash.faults import Errors, Tap, tapped_clients
from tests.harness.worlds.direct_aws import direct_aws
from tests.harness.worlds.memory import FixedClock
from tests.unit.providers.conftest import MemoryLedger

T = TypeVar("T")
ACCOUNT, REGION = "222222222222", "us-east-1"
CLUSTER = "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV"
URL = "https://api.example.test"
HIDDEN_SECONDS = 45.0
READS = ("Describe", "Get")
DEATHS, ANSWERS = ("before", "after"), ("timeout", "throttled", "refused")


class Died(StockyardError):
    """The worker's process ended. Lambda reports it under this name, and workflows and streams try again."""

    workflow_name = "Runtime.ExitError"


@dataclass(frozen=True, slots=True)
class Site:
    """A write or a call: the point where it happens (a phase or a handler) and its name."""

    point: str
    name: str

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults possible here. A read can only have a bad answer; at a change the worker can also die."""
        if self.name == "commit":
            return DEATHS
        return ANSWERS if self.name.partition(".")[2].startswith(READS) else (*DEATHS, *ANSWERS)


@dataclass
class FaultInjection:
    """Records every write and call of a life, in order, and lets number ``site`` fail by ``fault``."""

    site: int = -1
    fault: str = ""
    sites: list[Site] = field(default_factory=list)
    point: str = ""
    fired: bool = False

    def inject(self, name: str, do: Callable[[], T], errors: Errors) -> T:
        """Does the call ``do``, or what the fault turns it into."""
        at_site = len(self.sites) == self.site
        self.sites.append(Site(self.point, name))
        if not at_site:
            return do()
        self.fired = True
        if self.fault == "before":
            raise Died("before the call")
        if self.fault in ("throttled", "refused"):
            raise (errors.throttled if self.fault == "throttled" else errors.refused)()
        result = do()
        if self.fault == "after":
            raise Died("after the call")
        if self.fault == "timeout":
            raise errors.timeout()
        return result


class _OneSession:
    """One session for all operations of all lives. Otherwise each operation would assume the role again."""

    def __init__(self) -> None:
        self._sessions = Sessions(boto3.Session)

    def of(self, account: CloudAccount, name: str, tenant: str = "", policy: str = "") -> Any:
        return self._sessions.of(account, "all")


class Cloud:
    """A tenant's account with one cluster's network, for many lives. Each life begins without machines."""

    def __init__(self, stack: ExitStack, *, wire: bool) -> None:
        stack.enter_context(mock_aws())
        stack.enter_context(direct_aws(wire=wire))
        self.limits: dict[str, int] = {}
        self.clock = FixedClock()
        self.chance = random.Random(0)
        self.injection: FaultInjection | None = None
        self.sessions = _OneSession()
        self.backend = ec2_backends[ACCOUNT][REGION]
        self.cluster = self._cluster()
        stack.enter_context(tapped_clients(_Tap(self), {}))
        self._life = stack.enter_context(ExitStack())
        """The state that moto must forget between two lives: client tokens, and until when resources are hidden."""

    def _hidden(self) -> float:
        """Time that a new resource is hidden, in seconds: mostly a moment, one in ten for over twenty seconds."""
        return float(HIDDEN_SECONDS * self.chance.random() ** 8)

    def _cluster(self) -> Cluster:
        moment = "2026-01-31T12:00:00.000Z"
        settings = {"key_pair": "my-key", "region_name": REGION}
        name = client_id("acme", CLUSTER, "demo")
        cluster = Cluster(
            CLUSTER, "demo", "d", "k8s", "aws", 1, name, "ready", settings, moment, moment, endpoint="nlb.example.test"
        )
        role = {"role_arn": f"arn:aws:iam::{ACCOUNT}:role/tenant"}
        account = CloudAccount("1", "aws", "main", "", role, "x" * 32, "verified", "", moment, moment)
        config = Ec2Config("vantage", URL, "https://id.example.test", 60)
        provider = Ec2ClusterDriver(config, boto3.Session)
        clock, ledger = FixedClock(), MemoryLedger(cluster)
        self.backend.create_key_pair("my-key", "rsa", {})
        for phase in ("network", "security", "identity"):
            for _ in range(40):
                ledger.phase, ledger.now = phase, clock.now()
                work = CloudWork("acme", "inst-1", cluster, account, ledger, clock.now(), "op_0")
                if provider.ensure(phase, work).done:
                    break
                clock.advance(30)
        return cluster

    def begin(self, clock: FixedClock, injection: FaultInjection, seed: int, limits: Mapping[str, int]) -> None:
        """Begins a life: removes machines, templates and volumes. Time passes on ``clock``."""
        self.backend.reservations.clear()
        self.backend.launch_templates.clear()
        self.backend.launch_template_name_to_ids.clear()
        self.backend.volumes.clear()
        self._life.close()
        self._life.enter_context(idempotent_calls())
        self._life.enter_context(gone_have_no_tags())
        self._life.enter_context(instant_fleets(self.limits))
        self._life.enter_context(hidden_at_first(self._hidden, lambda: self.clock.now().timestamp()))
        self.clock, self.injection, self.chance = clock, injection, random.Random(seed)
        self.limits.clear()
        self.limits.update(limits)

    def machines(self) -> list[Any]:
        """The machines that are not terminated."""
        instances = (instance for group in self.backend.reservations.values() for instance in group.instances)
        return [instance for instance in instances if instance.state not in ("terminated", "shutting-down")]

    def leftovers(self) -> list[str]:
        """Ids and names of resources that must not exist after the claim and its cluster are deleted."""
        names = [thing.id for thing in self.machines()] + [
            thing.name for thing in self.backend.launch_templates.values()
        ]
        return names + list(self.backend.volumes)


class _Tap(Tap):
    """Passes all calls to AWS through the fault injection."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(lambda: "")
        self._cloud = cloud

    def around(self, name: str, work: Callable[[], T], errors: Errors) -> T:
        injection = self._cloud.injection
        if injection is None or not injection.point or name.startswith("sts."):
            return work()  # The assumed role is kept for all lives.
        return injection.inject(name, work, errors)


@contextmanager
def machine_cloud(*, wire: bool = False) -> Iterator[Cloud]:
    """The account for the lives of one module. With ``wire``, calls to AWS are serialized and parsed."""
    with pytest.MonkeyPatch.context() as patched, ExitStack() as stack:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "example",
            "AWS_DEFAULT_REGION": REGION,
        }.items():
            patched.setenv(name, value)
        patched.delenv("AWS_ENDPOINT_URL", raising=False)
        yield Cloud(stack, wire=wire)
