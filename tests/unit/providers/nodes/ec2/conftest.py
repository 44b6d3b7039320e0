"""A provider of EC2 nodes for a cluster in a tenant's account in memory, and one claim's work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from local.aws.corrections.compute.compute import instant_fleets
from stockyard.domain.nodes.node_types import ANY
from stockyard.domain.nodes.offers import Gpus, InstanceOffer, RegionOffers
from stockyard.domain.records import NodeClaim, NodeEnvironment, NodeProvider, Placement, PlacementOption
from stockyard.errors import VendorTimeout
from stockyard.ports import Outcome
from stockyard.ports.node_work import EnvironmentWork, NodeWork
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig

MOMENT = "2026-01-01T00:00:00.000Z"
CLAIM, PROVIDER, ENVIRONMENT = (f"{kind}_01KDVJXQ80000000000000000A" for kind in ("ncl", "npr", "nev"))


def offers(region: str = "us-east-1") -> RegionOffers:
    """A small catalogue."""
    rows = [
        InstanceOffer("t3.medium", 2, 4096, "x86_64", 3, 6, 0.0416),
        InstanceOffer("m6i.large", 2, 8192, "x86_64", 3, 10, 0.096),
        InstanceOffer("m7g.large", 2, 8192, "arm64", 3, 10, 0.0816),
        InstanceOffer("g5.48xlarge", 192, 786432, "x86_64", 15, 50, 16.288, (Gpus("A10G", "NVIDIA", 8, 22888),)),
        InstanceOffer("g6f.large", 2, 8192, "x86_64", 2, 10, 0.202, (Gpus("L4", "NVIDIA", 0, 2861),)),
        InstanceOffer("hpc7a.12xlarge", 24, 786432, "x86_64", 4, 50, None),
        InstanceOffer("mac2.metal", 8, 16384, "arm64_mac", 8, 30, 0.65),
    ]
    return RegionOffers(region, "2026-01-01", {row.name: row for row in rows}, {"gp3": 0.073})


def provider(**block: Any) -> NodeProvider:
    """A provider whose document has the usual values, overridden by ``block``."""
    usual = {"cloudAccount": 1, "region": "us-east-1", "capacityTypes": ["on-demand"], "instanceTypes": ["*"]}
    return NodeProvider(PROVIDER, "aws", "ec2", {"ec2": {**usual, **block}}, MOMENT, MOMENT)


def option(kind: str, capacity_type: str = "on-demand", zones: Sequence[str] = (ANY,)) -> PlacementOption:
    """One placement option."""
    return PlacementOption(f"aws.{kind}", capacity_type, tuple(zones), usd_hour=0.1, cost=1.0)


def placed(*options: PlacementOption) -> Placement:
    """A placement with these options."""
    first = options[0]
    return Placement(PROVIDER, first.type, first.capacity_type, first.zones, 1.0, MOMENT, options=options)


@dataclass
class Hand:
    """Calls the source as the workflow does: repeated until it is done, while the clock advances."""

    yard: Any
    source: Ec2Nodes
    provider: NodeProvider
    claim: NodeClaim
    environment: NodeEnvironment
    ledger: Any
    ledger_of_environment: Any
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def calls(self) -> Any:
        """A person's EC2 client in the tenant's account."""
        return self.yard.tenant().client("ec2")

    def node_work(self, **changes: Any) -> NodeWork:
        self.ledger.now, self.ledger.cluster = self.yard.now, self.claim
        work = NodeWork(
            "acme", "inst-1", self.claim, self.provider, self.ledger, self.yard.now, "op_2",
            self.yard.cluster, self.yard.account, self.environment,
        )  # fmt: skip
        return replace(work, **changes)

    def environment_work(self, **changes: Any) -> EnvironmentWork:
        self.ledger_of_environment.now = self.yard.now
        work = EnvironmentWork(
            "acme", "inst-1", self.environment, self.provider, self.yard.cluster, self.ledger_of_environment,
            self.yard.now, "op_2", self.yard.account,
        )  # fmt: skip
        return replace(work, **changes)

    def prepare(self) -> Outcome:
        outcome = self.source.prepare(self.environment_work())
        self.environment = replace(self.environment, phase="Available", outputs=dict(outcome.facts))
        return outcome

    def bind(self, *options: PlacementOption) -> None:
        self.claim = replace(self.claim, placement=placed(*options))

    def again(self) -> None:
        """Begin the next attempt, as placing a claim again does."""
        self.claim = replace(self.claim, attempt=self.claim.attempt + 1)
        self.ledger.cluster = self.claim

    def launch(self) -> Outcome:
        return self.until_done(lambda: self.source.launch(self.node_work()))

    def terminate(self) -> Outcome:
        return self.until_done(lambda: self.source.terminate(self.node_work()))

    def clear(self) -> Outcome:
        return self.until_done(lambda: self.source.clear(self.environment_work()))

    def until_done(self, step: Any) -> Outcome:
        for _ in range(40):
            outcome: Outcome = step()
            self.outcomes.append(outcome)
            if outcome.done:
                return outcome
            self.yard.later(outcome.wait_seconds)
        raise AssertionError(f"it does not end: {outcome}")

    def later(self, seconds: int) -> None:
        self.yard.now += timedelta(seconds=seconds)

    def instances(self) -> list[dict[str, Any]]:
        """Living instances, straight from AWS."""
        reservations = self.calls.describe_instances()["Reservations"]
        return [
            i for r in reservations for i in r["Instances"] if i["State"]["Name"] not in ("terminated", "shutting-down")
        ]

    def templates(self) -> list[dict[str, Any]]:
        templates: list[dict[str, Any]] = self.calls.describe_launch_templates()["LaunchTemplates"]
        return templates


@pytest.fixture
def limits() -> dict[str, int]:
    """Number of machines of a type, or of ``type/zone``, that there can be. A test may fill it."""
    return {}


@pytest.fixture
def hand(yard: Any, limits: dict[str, int], remembered: Any) -> Iterator[Hand]:
    """A source whose cluster has network, security and identity, and a claim that is placed on m6i.large."""

    def with_parts() -> Any:
        for phase in ("network", "security", "identity"):
            yard.ensure(phase)
        return yard

    yard = remembered("place", with_parts).copy()
    ledger = type(yard.ledger)
    config = Ec2NodesConfig("vantage", "https://api.example.test", 60)
    claim = NodeClaim(
        CLAIM, "workers-1", MOMENT, MOMENT, cluster_id=yard.cluster.id, placement=placed(option("m6i.large"))
    )
    environment = NodeEnvironment(ENVIRONMENT, yard.cluster.id, PROVIDER, "aws", MOMENT, MOMENT)
    with instant_fleets(limits):
        yield Hand(
            yard,
            Ec2Nodes(config, boto3.Session, offers),
            provider(),
            claim,
            environment,
            ledger(claim, "launch", yard.now),
            ledger(replace(claim, id=ENVIRONMENT), "environment", yard.now),
        )


@pytest.fixture
def build() -> Any:
    """``provider``, ``option``, ``placed`` and ``offers``, for tests to make others."""
    return SimpleNamespace(provider=provider, option=option, placed=placed, offers=offers)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The parameters of each CreateFleet call."""
    requests: list[dict[str, Any]] = []
    real = Calls.call

    def call(calls: Calls, service: str, operation: str, **parameters: Any) -> Any:
        if operation == "create_fleet":
            requests.append(parameters)
        return real(calls, service, operation, **parameters)

    monkeypatch.setattr(Calls, "call", call)
    return requests


class Answers:
    """Answers CreateFleet in place of AWS, while answers are ``left``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: list[Any] = []
        self.sent: list[dict[str, Any]] = []
        self.lost = False
        real = Calls.call

        def call(calls: Calls, service: str, operation: str, **parameters: Any) -> Any:
            if operation != "create_fleet":
                return real(calls, service, operation, **parameters)
            self.sent.append(parameters)
            if self.left:
                answer = self.left.pop(0)
                if isinstance(answer, Exception):
                    raise answer
                return answer
            answer = real(calls, service, operation, **parameters)
            if self.lost:
                self.lost = False
                raise VendorTimeout("no answer in time")
            return answer

        monkeypatch.setattr(Calls, "call", call)

    def errors(self, *codes: tuple[str, str]) -> None:
        """Answer with no machines and these errors: (type, code)."""
        self.errors_with_messages(*((kind, code, code) for kind, code in codes))

    def errors_with_messages(self, *errors: tuple[str, str, str]) -> None:
        """Answer with no machines and these errors: (type, code, message)."""
        listed = [
            {
                "ErrorCode": code,
                "ErrorMessage": message,
                "LaunchTemplateAndOverrides": {"Overrides": {"InstanceType": kind}},
            }
            for kind, code, message in errors
        ]
        self.left.append({"FleetId": "fleet-1", "Instances": [], "Errors": listed})


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    return Answers(monkeypatch)
