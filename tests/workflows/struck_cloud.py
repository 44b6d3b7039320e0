"""A tenant's account of moto in process with one cluster's network, and faults at whatever is done there.

Corrections of the local cloud hide what is new, keep client tokens and run out of machines; a virtual clock passes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import boto3
import moto.ec2
import pytest
from moto import mock_aws
from moto.ec2.models import ec2_backends

from local.corrections.compute import hidden_at_first, idempotent_calls, instant_fleets
from local.corrections.refusals import gone_have_no_tags
from local.faults import Errors, Tap, tapped_clients
from local.memory import FixedClock
from stockyard.domain.ids import client_id
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import StockyardError
from stockyard.ports import CloudWork
from stockyard.providers.aws.sessions import Sessions
from stockyard.providers.clusters.ec2.provider import Ec2ClusterProvider, Ec2Config
from tests.unit.providers.conftest import MemoryLedger

T = TypeVar("T")
ACCOUNT, REGION = "222222222222", "us-east-1"
CLUSTER = "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV"
URL = "https://api.example.test"
HIDDEN_SECONDS = 45.0
LOOKS = ("Describe", "Get")
DEATHS, ANSWERS = ("before", "after"), ("timeout", "throttled", "refused")


class Died(StockyardError):
    """The worker's process ended. Lambda reports it under this name, and documents and streams try again."""

    workflow_name = "Runtime.ExitError"


@dataclass(frozen=True, slots=True)
class Site:
    """A write or a call: where, and of what name."""

    where: str
    name: str

    @property
    def faults(self) -> tuple[str, ...]:
        """A look can be answered badly; what changes something can be cut off before and after it besides."""
        if self.name == "commit":
            return DEATHS
        return ANSWERS if self.name.partition(".")[2].startswith(LOOKS) else (*DEATHS, *ANSWERS)


@dataclass
class Strikes:
    """Every write and call of a life, in order; the ``site``-th fails by ``fault``."""

    site: int = -1
    fault: str = ""
    seen: list[Site] = field(default_factory=list)
    where: str = ""
    fired: bool = False

    def strike(self, name: str, do: Callable[[], T], errors: Errors) -> T:
        """Carry it out, or what the fault makes of it."""
        mine = len(self.seen) == self.site
        self.seen.append(Site(self.where, name))
        if not mine:
            return do()
        self.fired = True
        if self.fault == "before":
            raise Died("before it")
        if self.fault in ("throttled", "refused"):
            raise (errors.throttled if self.fault == "throttled" else errors.refused)()
        found = do()
        if self.fault == "after":
            raise Died("after it")
        if self.fault == "timeout":
            raise errors.timeout()
        return found


class _OneSession:
    """One session for all operations of all lives: each would assume the role anew."""

    def __init__(self) -> None:
        self._sessions = Sessions(boto3.Session)

    def of(self, account: CloudAccount, name: str) -> Any:
        return self._sessions.of(account, "all")


class Cloud:
    """A tenant's account with one cluster's network, for many lives; each begins with no machine in it."""

    def __init__(self, stack: ExitStack) -> None:
        stack.enter_context(mock_aws())
        self.limits: dict[str, int] = {}
        self.clock = FixedClock()
        self.chance = random.Random(0)
        self.strikes: Strikes | None = None
        self.sessions = _OneSession()
        self.backend = ec2_backends[ACCOUNT][REGION]
        self.cluster = self._cluster()
        stack.enter_context(tapped_clients(_Tap(self), {}))
        self._life = stack.enter_context(ExitStack())
        """What moto must forget between two lives: client tokens, and what is hidden until when."""

    def _hidden(self) -> float:
        """Most things are hidden for a moment, one in ten for longer than twenty seconds."""
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
        config = Ec2Config("vantage", "1.34", URL, "https://id.example.test", "stockyard", 60)
        provider = Ec2ClusterProvider(config, boto3.Session)
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

    def begin(self, clock: FixedClock, strikes: Strikes, seed: int, limits: Mapping[str, int]) -> None:
        """No machine and no template; time passes on ``clock``."""
        self.backend.reservations.clear()
        self.backend.launch_templates.clear()
        self.backend.launch_template_name_to_ids.clear()
        self.backend.volumes.clear()
        self._life.close()
        self._life.enter_context(idempotent_calls())
        self._life.enter_context(gone_have_no_tags())
        self._life.enter_context(instant_fleets(self.limits))
        self._life.enter_context(hidden_at_first(self._hidden, lambda: self.clock.now().timestamp()))
        self.clock, self.strikes, self.chance = clock, strikes, random.Random(seed)
        self.limits.clear()
        self.limits.update(limits)

    def machines(self) -> list[Any]:
        """The machines that have not ended."""
        found = (one for group in self.backend.reservations.values() for one in group.instances)
        return [one for one in found if one.state not in ("terminated", "shutting-down")]

    def left(self) -> list[str]:
        """What must not be there once the claim and its cluster are gone."""
        names = [one.id for one in self.machines()] + [one.name for one in self.backend.launch_templates.values()]
        return names + list(self.backend.volumes)


class _Tap(Tap):
    """Where all calls to AWS pass."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(lambda: "")
        self._cloud = cloud

    def around(self, name: str, work: Callable[[], T], errors: Errors) -> T:
        strikes = self._cloud.strikes
        if strikes is None or not strikes.where or name.startswith("sts."):
            return work()  # whose session it is is kept for all lives
        return strikes.strike(name, work, errors)


@contextmanager
def machine_cloud() -> Iterator[Cloud]:
    """The account, for the lives of one module."""
    with pytest.MonkeyPatch.context() as patched, ExitStack() as stack:
        amis = str(Path(moto.ec2.__file__).parent / "resources" / "amis.json")
        for name, value in {
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "example",
            "AWS_DEFAULT_REGION": REGION,
            "MOTO_AMIS_PATH": amis,
        }.items():
            patched.setenv(name, value)
        patched.delenv("AWS_ENDPOINT_URL", raising=False)
        yield Cloud(stack)
