"""Nodes that a group makes by itself become claims: the first ones, and those that replace machines that died.

The source is the real one of node groups, with an account in memory; the cluster's agent is played by the test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from moto import mock_aws

from stockyard.domain.node_groups import Group
from stockyard.domain.offers import InstanceOffer, RegionOffers
from stockyard.domain.pool_records import Pool
from stockyard.domain.records import CloudAccount, Cluster, Fact, MachineHold, NodeClaim, Quota
from stockyard.lifecycle.pool import living
from stockyard.operations.listing import every
from stockyard.operations.machines.observe import observe
from stockyard.operations.machines.unclaimed import UNCLAIMED
from stockyard.operations.node_claims import lost_machines
from stockyard.operations.pools import pools
from stockyard.operations.pools.adoption import missing_claims
from stockyard.ports import Create, Put
from stockyard.providers.clusters.eks import groups as eks_groups
from stockyard.providers.clusters.eks.settings import EksNodeGroup
from stockyard.providers.nodes.eks.provider import EksNodes, EksNodesConfig
from tests.harness.direct_aws import direct_aws
from tests.harness.node_groups import NodeGroups, scarce_groups
from tests.harness.ports import with_ports
from tests.unit.operations.pools.conftest import Yard, make_yard

ROLE = "arn:aws:iam::222222222222:role/stockyard"
OFFERS = RegionOffers(
    "us-east-1", "2026", {"m6i.xlarge": InstanceOffer("m6i.xlarge", 4, 16384, "x86_64", 4, 15, 0.192)}
)
GROUP = "eks.amazonaws.com/nodegroup"


class Driver:
    """What the driver of such clusters says of nodes."""

    def group_of_node(self, cluster: Cluster, node: Mapping[str, Any]) -> tuple[str, str] | None:
        group = node["labels"].get(GROUP)
        return (group, node["provider_id"].rpartition("/")[2]) if group else None


@dataclass
class Story:
    """A cluster whose groups make machines that join at once."""

    yard: Yard
    groups: NodeGroups
    sequence: int = 0
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    """What the agent has labelled nodes with, by name."""
    done: list[str] = field(default_factory=list)

    def pool(self, name: str = "workers", least: int = 0, most: int = 4, size: int = 0) -> str:
        group = EksNodeGroup(
            name=name, role="system", instance_type="m6i.xlarge", count=max(size, least), min_size=least, max_size=most
        ).model_dump(mode="json")
        services, cluster = self.yard.nodes.services, self.yard.current()
        provider = eks_groups.provider(cluster).name
        services.store.commit(*pools.creation(services, self._draft(cluster, group, provider), "user:ann"))
        return self.groups.group(name, "m6i.xlarge", least, most, size)

    def _draft(self, cluster: Cluster, group: Group, provider: str) -> Pool:
        return pools.draft(self.yard.nodes.services, cluster.id, eks_groups.pool_of_group(group, provider), "user:ann")

    def nodes(self) -> list[dict[str, Any]]:
        """The cluster's nodes: one for each machine."""
        listed = self.groups.ec2.describe_instances(Filters=[{"Name": "instance-state-name", "Values": ["running"]}])
        return [
            self.node(machine["InstanceId"], machine["PrivateDnsName"], machine["Placement"]["AvailabilityZone"])
            for reservation in listed["Reservations"]
            for machine in reservation["Instances"]
        ]

    def node(self, machine: str, name: str, zone: str = "us-east-1a", pool: str = "workers") -> dict[str, Any]:
        labels = {GROUP: pool, **self.labels.get(name, {})}
        return {
            "name": name, "uid": f"uid-{machine}", "provider_id": f"aws:///{zone}/{machine}", "ready": "True",
            "taints": [], "labels": labels, "allocatable": {"cpu": "4"}, "claim": labels.get("stockyard.dev/claim"),
        }  # fmt: skip

    def post(self, nodes: Sequence[dict[str, Any]] | None = None) -> int:
        """The agent posts, does what it is told, and is told how soon to come again."""
        self.sequence += 1
        services = self.yard.nodes.services
        observation = {
            "sequence": self.sequence, "observed_at": services.now(), "agent_version": "1", "kubernetes_version": "v1",
            "nodes": self.nodes() if nodes is None else list(nodes), "ca_hash": "sha256:" + "0" * 64,
            "results": [{"id": command, "status": "done", "message": "", "data": {}} for command in self.done],
        }  # fmt: skip
        reply = observe(services, self.yard.nodes.registry.in_hand, b"key", self.yard.current(), observation)
        self.done = [command.id for command in reply.commands]
        for command in reply.commands:
            assert command.kind != "bootstrap_token", "nobody joins these machines but their cloud"
            if command.kind == "label":
                self.labels.setdefault(command.arguments["node"], {}).update(command.arguments["labels"])
        return reply.interval_seconds

    def settle(self) -> None:
        """Posts, passes, scheduling and workflows until nothing changes any more."""
        for _ in range(4):
            self.post()
            self.yard.look()
            self.yard.nodes.schedule()
            self.yard.nodes.relay()
        self.post()

    def claims(self, name: str = "workers") -> list[NodeClaim]:
        return living(self.yard.claims(name))

    def unclaimed(self) -> str:
        fact = self.yard.nodes.services.store.get(Fact, f"{self.yard.cluster.id}/{UNCLAIMED}")
        return fact.value if fact is not None else "{}"


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Iterator[Story]:
    for name, value in (("ACCESS_KEY_ID", "AKIAEXAMPLE"), ("SECRET_ACCESS_KEY", "x"), ("DEFAULT_REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws(), direct_aws(), scarce_groups(set()):
        keys = boto3.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="me")["Credentials"]
        tenant = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], "us-east-1")
        yard = make_yard()
        current = yard.current()
        yard.cluster = yard.put(driver="eks", settings={**current.settings, "region_name": "us-east-1"})
        source = EksNodes(EksNodesConfig("vantage"), boto3.Session, {"us-east-1": OFFERS}.get)
        yard.nodes.services = with_ports(
            yard.nodes.services,
            node_sources={"eks": source},
            cluster_drivers={"eks": Driver()},
        )
        story = Story(yard, NodeGroups(tenant, yard.cluster))
        yard.nodes.meanwhile = story.post
        account = str(yard.cluster.cloud_account_id)
        services = yard.nodes.services
        if services.store.get(CloudAccount, account) is None:
            attributes = {"role_arn": ROLE}
            services.store.commit(
                Create(CloudAccount(account, "aws", "a", "", attributes, "ext", "verified", "", "t", "t"))
            )
        document = eks_groups.provider(yard.cluster)
        yard.nodes.provider(document.name, kind="eks", block=document.block)
        yield story


def test_first_nodes_of_a_cluster_become_claims_and_no_more_are_made(story: Story) -> None:
    group = story.pool(least=1, size=3)
    machines = story.groups.members(group)
    story.settle()
    claims = story.claims()
    assert sorted(claim.machine_id for claim in claims) == sorted(machines)
    assert {claim.phase for claim in claims} == {"Available"}
    assert story.groups.size(group) == 3
    for claim in claims:
        assert story.labels[claim.node_name]["stockyard.dev/claim"] == claim.id
        assert story.labels[claim.node_name]["stockyard.dev/pool"] == "workers"
    reasons = [story.yard.reasons(claim.id)[0] for claim in claims]
    assert sorted(reasons) == ["Accepted", "Adopted", "Adopted"], "one is the floor's"
    assert story.unclaimed() == "{}"


def test_nothing_is_written_while_nothing_changes(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.pool(least=1, size=2)
    story.settle()
    story.yard.nodes.clock.advance(4000)
    story.post()
    writes: list[Any] = []
    store = type(story.yard.nodes.services.store)
    monkeypatch.setattr(store, "commit", lambda _store, *batch: writes.extend(batch))
    assert story.post() == 300
    assert writes == []


def test_a_machine_that_the_group_replaced_is_lost_and_its_replacement_adopted(story: Story) -> None:
    group = story.pool(least=1, size=1)
    story.settle()
    (first,) = story.claims()
    story.groups.scaling.terminate_instance_in_auto_scaling_group(
        InstanceId=first.machine_id, ShouldDecrementDesiredCapacity=False
    )
    assert lost_machines.note(story.yard.nodes.services, first.id)
    story.settle()
    (second,) = story.claims()
    assert (second.id != first.id, [second.machine_id]) == (True, story.groups.members(group))
    holds = list(every(story.yard.nodes.services.store, MachineHold))
    assert [(hold.machine_id, hold.claim_id) for hold in holds] == [(second.machine_id, second.id)]


def test_claims_that_wait_take_machines_before_others_are_made(story: Story) -> None:
    story.pool(size=2)
    story.post()
    story.yard.look()
    assert len(story.claims()) == 2
    story.yard.look()
    assert len(story.claims()) == 2, "the agent has not come again yet"
    assert story.unclaimed() != "{}"


def test_adoption_stays_within_the_limit_of_the_pool(story: Story) -> None:
    story.pool(most=2, size=2)
    extra = [story.node(f"i-{number}", f"ip-{number}") for number in range(4)]
    story.post(extra)
    story.yard.look()
    assert len(story.claims()) == 2
    pool, claims = story.yard.now(), story.claims()
    assert missing_claims(pool, claims, 9) == 0
    assert missing_claims(pool, [], 1) == 1


def test_a_quota_that_is_used_up_is_said_by_the_pool(story: Story) -> None:
    story.pool(size=2)
    story.yard.nodes.services.store.commit(Put(Quota("nodeclaims", 0, story.yard.nodes.services.now())))
    story.post()
    story.yard.look()
    assert story.claims() == []
    status, reason, _ = story.yard.condition(story.yard.now())
    assert (status, reason) == ("False", "QuotaExceeded")


def test_node_of_another_name_or_machine_does_not_pass_for_a_claims(story: Story) -> None:
    """Whoever may label nodes, or make some, must not take a claim's place."""
    story.pool(size=1)
    story.post()
    story.yard.look()
    story.yard.nodes.schedule()
    (claim,) = story.claims()

    def impostors() -> None:
        current = story.yard.nodes.now(claim)
        if not current.machine_id:
            story.post([])
            return
        labelled = story.node(current.machine_id, "ip-10-9-9-9")
        labelled["claim"] = claim.id
        story.post([labelled, story.node("i-0000000000000bad0", current.host_name)])

    story.yard.nodes.meanwhile = impostors
    bound = story.yard.nodes.now(claim)
    payload = {"tenant": "acme", "claim_id": claim.id, "operation_id": bound.operation_id, "attempt": bound.attempt}
    assert story.yard.nodes.run("provision_node", payload, most=30).startswith("still at register")
    story.yard.nodes.meanwhile = story.post
    assert story.yard.nodes.run("provision_node", payload) == "available"
