"""A cluster on EKS with node groups, whose machines join by themselves, and the cluster's agent, played in one process.

The source of nodes is the real one, with an account in memory; nodes are what the account has of machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.aws.corrections.pace import paced
from stockyard.domain.nodes.offers import InstanceOffer, RegionOffers
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import CloudAccount, Cluster, Fact, NodeClaim
from stockyard.lifecycle.pools.pool import living
from stockyard.operations.fleet.pools import pools
from stockyard.operations.machines.observe import observe
from stockyard.operations.machines.unclaimed import UNCLAIMED
from stockyard.ports import ClusterDriver, Create
from stockyard.providers.clouds.aws import regions
from stockyard.providers.clusters.eks import groups as eks_groups
from stockyard.providers.clusters.eks.settings import EksNodeGroup
from stockyard.providers.nodes.eks.provider import EksNodes, EksNodesConfig
from tests.harness.worlds.direct_aws import direct_aws
from tests.harness.worlds.node_groups import NodeGroups, scarce_groups
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.fleet.pools.conftest import Yard, make_yard

ROLE = "arn:aws:iam::222222222222:role/stockyard"
OFFERS = RegionOffers(
    "us-east-1", "2026", {"m6i.xlarge": InstanceOffer("m6i.xlarge", 4, 16384, "x86_64", 4, 15, 0.192)}, {"gp3": 0.0}
)
GROUP = "eks.amazonaws.com/nodegroup"
ENVIRONMENT = {"ACCESS_KEY_ID": "AKIAEXAMPLE", "SECRET_ACCESS_KEY": "x", "DEFAULT_REGION": "us-east-1"}


class Driver(ClusterDriver):
    """Facts of nodes that the driver of such clusters knows."""

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
    facts_of: Callable[[str], Mapping[str, Any]] = lambda _: {}
    """What else is told of a node, by its name."""
    away: set[str] = field(default_factory=set)
    """Machines whose Node object somebody has deleted: their kubelets run and do not join again."""
    reports: Mapping[str, Any] | None = None
    """How far the reports of pods are."""
    drained: set[str] = field(default_factory=set)
    """Nodes that were to be drained."""

    def pool(
        self, name: str = "workers", least: int = 0, most: int = 4, size: int = 0, group_least: int | None = None
    ) -> str:
        """Make a pool with its group, which has the pool's least size unless ``group_least`` says another. The name of
        the auto scaling group."""
        group = EksNodeGroup(
            name=name, role="system", instance_type="m6i.xlarge", count=max(size, least), min_size=least, max_size=most
        ).model_dump(mode="json")
        services, cluster = self.yard.nodes.services, self.yard.current()
        provider = eks_groups.provider(cluster).name
        services.store.commit(*pools.creation(services, self._draft(cluster, group, provider), "user:ann"))
        least = least if group_least is None else group_least
        return self.groups.group(name, "m6i.xlarge", least, most, size)

    def _draft(self, cluster: Cluster, group: Group, provider: str) -> Pool:
        return pools.draft(self.yard.nodes.services, cluster.id, eks_groups.pool_of_group(group, provider), "user:ann")

    def nodes(self) -> list[dict[str, Any]]:
        """The cluster's nodes: one for each machine that has joined."""
        listed = self.groups.ec2.describe_instances(Filters=[{"Name": "instance-state-name", "Values": ["running"]}])
        return [
            self.node(machine["InstanceId"], machine["PrivateDnsName"], machine["Placement"]["AvailabilityZone"])
            for reservation in listed["Reservations"]
            for machine in reservation["Instances"]
            if machine["InstanceId"] not in self.away
        ]

    def node(self, machine: str, name: str, zone: str = "us-east-1a", pool: str = "workers") -> dict[str, Any]:
        labels = {GROUP: pool, **self.labels.get(name, {})}
        return {
            "name": name, "uid": f"uid-{machine}", "provider_id": f"aws:///{zone}/{machine}", "ready": "True",
            "taints": [], "labels": labels, "allocatable": {"cpu": "4"}, "claim": labels.get("stockyard.dev/claim"),
            **self.facts_of(name),
        }  # fmt: skip

    def post(self, nodes: Sequence[dict[str, Any]] | None = None) -> int:
        """The agent posts, does what it is told, and is told how soon to come again."""
        self.sequence += 1
        services = self.yard.nodes.services
        observation = {
            "sequence": self.sequence, "observed_at": services.now(), "agent_version": "1", "kubernetes_version": "v1",
            "nodes": self.nodes() if nodes is None else list(nodes), "ca_hash": "sha256:" + "0" * 64,
            "results": [{"id": command, "status": "done", "message": "", "data": {}} for command in self.done],
            "pods": self.reports,
        }  # fmt: skip
        reply = observe(services, self.yard.nodes.registry.in_hand, b"key", self.yard.current(), observation)
        self.done = [command.id for command in reply.commands]
        for command in reply.commands:
            assert command.kind != "bootstrap_token", "nobody joins these machines but their cloud"
            if command.kind == "label":
                self.labels.setdefault(command.arguments["node"], {}).update(command.arguments["labels"])
            elif command.kind == "drain":
                self.drained.add(command.arguments["node"])
        return reply.interval_seconds

    def come(self) -> None:
        """The agent posts, whenever it is to come again."""
        self.post()

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


@contextmanager
def node_group_story(full: set[str] | None = None) -> Iterator[Story]:
    """A ready cluster without a group yet. No machine is to be had of the types in ``full``."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in ENVIRONMENT.items():
            patched.setenv(f"AWS_{name}", value)
        patched.delenv("AWS_ENDPOINT_URL", raising=False)
        yard = make_yard()
        clock = yard.world.clock
        now = lambda: clock.now().timestamp()  # noqa: E731
        with mock_aws(), direct_aws(), scarce_groups(full or set()), paced(lambda _kind: 0.0, now):
            yield _story(yard)


def _session(**parameters: Any) -> Any:
    """A session that shares what botocore reads from its files with all others."""
    return boto3.Session(botocore_session=regions.session(), **parameters)


def _story(yard: Yard) -> Story:
    keys = _session().client("sts").assume_role(RoleArn=ROLE, RoleSessionName="me")["Credentials"]
    tenant = _session(
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
        region_name="us-east-1",
    )
    current = yard.current()
    yard.cluster = yard.put(driver="eks", settings={**current.settings, "region_name": "us-east-1"})
    source = EksNodes(EksNodesConfig("vantage"), _session, {"us-east-1": OFFERS}.get)
    ports: dict[str, Any] = {"node_sources": {"eks": source}, "cluster_drivers": {"eks": Driver()}}  # type: ignore[abstract]
    yard.nodes.services = with_ports(yard.nodes.services, **ports)
    story = Story(yard, NodeGroups(tenant, yard.cluster))
    yard.nodes.meanwhile = story.come
    services, number = yard.nodes.services, str(yard.cluster.cloud_account_id)
    if services.store.get(CloudAccount, number) is None:
        attributes = {"role_arn": ROLE}
        account = CloudAccount(number, "aws", "a", "", attributes, "ext", "verified", "", "t", "t")
        services.store.commit(Create(account))
    document = eks_groups.provider(yard.cluster)
    yard.nodes.provider(document.name, kind="eks", block=document.block)
    return story
