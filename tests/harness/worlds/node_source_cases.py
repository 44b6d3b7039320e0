"""Every node source of the registry with a cloud in memory, as the contract of node sources needs it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import boto3
import httpx
from moto import mock_aws

from local.aws.corrections.compute.compute import instant_fleets
from local.testing.memory_store import MemoryRegistry, MemoryStore
from stockyard.domain.nodes.node_types import ANY
from stockyard.domain.nodes.offers import InstanceOffer, RegionOffers
from stockyard.domain.records import CloudAccount, Cluster, NodeProvider
from stockyard.domain.values.ids import client_id
from stockyard.operations.runs import StoreRuns
from stockyard.ports import Create
from stockyard.ports.nodes import NodeSource
from stockyard.providers import registry
from stockyard.providers.clouds.aws.cloud import AwsCloud
from stockyard.providers.clouds.bcm.cloud import HeadNodes
from stockyard.providers.clouds.cudo.cloud import CudoCloud
from stockyard.providers.clouds.kubernetes.cloud import KubernetesHosts
from stockyard.providers.clusters.ec2.provider import Ec2ClusterDriver, Ec2Config
from stockyard.providers.descriptors import SourceTools
from stockyard.providers.nodes.bcm.configuration import BcmNodesConfig
from stockyard.providers.nodes.bcm.provider import BcmNodes
from stockyard.providers.nodes.config_maps.provider import ConfigMapNodes
from stockyard.providers.nodes.cudo.configuration import CudoNodesConfig
from stockyard.providers.nodes.cudo.provider import CudoNodes
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from stockyard.providers.nodes.eks.provider import EksNodes, EksNodesConfig
from stockyard.providers.nodes.kubevirt.provider import KubeVirtNodes
from stockyard.providers.nodes.metal3.provider import Metal3Nodes
from stockyard.providers.nodes.terraform.provider import TerraformConfig, TerraformNodes
from tests.harness.bare_metal.yard import CONFIG, BareMetalYard, FullYard, block
from tests.harness.bcm.yard import ENDPOINT, NAME, HeadYard
from tests.harness.kubevirt.host import CONFIG as KUBEVIRT_CONFIG
from tests.harness.kubevirt.host import IMAGE, VirtualMachineHost
from tests.harness.kubevirt.host import block as kubevirt_block
from tests.harness.runs.memory_runner import MemoryRunner
from tests.harness.runs.played_tofu import PlainSeals, PlayedTofu
from tests.harness.worlds.cudo_yard import DALLAS, CudoYard
from tests.harness.worlds.direct_aws import direct_aws
from tests.harness.worlds.kubernetes_host import NAMESPACE, NUMBER, SITE, KubernetesHost
from tests.harness.worlds.memory import FixedClock, MemorySecrets
from tests.harness.worlds.node_groups import FullTypes, NodeGroups, scarce_groups
from tests.harness.worlds.ports import memory_services
from tests.harness.worlds.stage import Stage

CLUSTER, CLAIM, PROVIDER, ENVIRONMENT = (f"{kind}_01KDVJXQ80000000000000000A" for kind in ("clu", "ncl", "npr", "nev"))
MOMENT = "2026-01-31T12:00:00.000Z"
FIRST, SECOND = "m6i.large", "m5.large"
"""Two types that each source offers, the cheaper one first."""
HOSTS = ("node001", "node002")
"""The hosts of these types, where machines are there anyway."""
ROLE = "arn:aws:iam::222222222222:role/stockyard"
AWS_ACCOUNT = CloudAccount("1", "aws", "a", "", {"role_arn": ROLE}, "ext", "verified", "", "t", "t")


@dataclass
class Case:
    """A source, the document of a provider, and how its machines are counted and run out."""

    source: NodeSource
    spec: dict[str, Any]
    zone: str
    machines: Callable[[], list[str]]
    full: set[str] = field(default_factory=set)
    """Types of which there is none."""
    cluster_driver: Ec2ClusterDriver | None = None
    cloud: AwsCloud | CudoCloud | HeadNodes | KubernetesHosts | None = None
    clock: FixedClock = field(default_factory=FixedClock)
    types: tuple[str, str] = (FIRST, SECOND)
    """Two types that the source offers, the cheaper one first."""
    account: CloudAccount = AWS_ACCOUNT
    driver: str = ""
    """Of the cluster, where it is not the first one of its cloud."""
    pool: str = ""
    """The claim's, where its machine comes out of the pool's group."""

    of_template: bool = False
    """Whether a template makes the machines: it has one way to make one, and only its state knows what it has made."""

    @property
    def grouped(self) -> bool:
        """Whether the machines come out of a group, which has one type and switches none of them off."""
        return self.source.takes_from_groups


def described(kind: str, store: MemoryStore, stack: ExitStack) -> Case:
    """A source that needs nothing but its registry line: its provider declares types and has no account.

    What runs out is played by the source's ``refuses``, as the simulated source has it.
    """
    full: set[str] = set()
    source: Any = registry.node_sources()[kind](
        SourceTools(Stage(), MemorySecrets, lambda _tenant: store, lambda _region: None)
    )
    source.refuses = lambda _provider, name, _zone: name in full
    block = {"nodeTypes": [{"name": name, "resources": {"cpu": 2, "memory": "8Gi"}} for name in (FIRST, SECOND)]}
    provider = NodeProvider(PROVIDER, "yard", kind, {kind: block}, MOMENT, MOMENT)

    def machines() -> list[str]:
        return [thing.vendor_id for thing in source.tagged(provider, "inst", "acme")]

    return Case(source, provider.spec, "global", machines, full)


def simulated(store: MemoryStore, stack: ExitStack) -> Case:
    """As ``described``, and it takes its time."""
    case = described("simulated", store, stack)
    case.spec["simulated"] |= {"launchSeconds": 5, "joinSeconds": 5}
    return case


def ec2(store: MemoryStore, stack: ExitStack) -> Case:
    full: set[str] = set()
    stack.enter_context(mock_aws())
    stack.enter_context(direct_aws())
    stack.enter_context(instant_fleets(FullTypes(full)))
    keys = boto3.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="me")["Credentials"]
    tenant = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], "us-east-1")
    client = tenant.client("ec2")
    client.create_key_pair(KeyName="my-key")
    rows = [InstanceOffer(FIRST, 2, 8192, "x86_64", 3, 10, 0.09), InstanceOffer(SECOND, 2, 8192, "x86_64", 3, 10, 0.1)]
    offers = RegionOffers("us-east-1", "2026", {row.name: row for row in rows}, {"gp3": 0.0})
    url = "https://api.example.test"

    def machines() -> list[str]:
        listed = client.describe_instances()["Reservations"]
        return [i["InstanceId"] for r in listed for i in r["Instances"] if i["State"]["Name"] != "terminated"]

    nodes = Ec2Nodes(Ec2NodesConfig("vantage", url, 60), boto3.Session, {"us-east-1": offers}.get)
    clusters = Ec2ClusterDriver(Ec2Config("vantage", url, "https://id.example.test", 60), boto3.Session)
    block = {"cloudAccount": 1, "region": "us-east-1", "capacityTypes": ["on-demand"], "instanceTypes": ["*"]}
    return Case(nodes, {"ec2": block}, ANY, machines, full, clusters, AwsCloud(Stage(), boto3.Session))


def cudo(store: MemoryStore, stack: ExitStack) -> Case:
    """A project with the network and the group of the cluster, where two machine types are sold."""
    full: set[str] = set()
    yard = CudoYard("epyc", "intel")
    types = (yard.type_name("epyc"), yard.type_name("intel"))

    def machines() -> list[str]:
        yard.run_out(name.rpartition("-")[0] for name in full)
        return yard.machines()

    def answered(request: httpx.Request) -> httpx.Response:
        yard.run_out(name.rpartition("-")[0] for name in full)
        return yard.cudo.answer(request)

    access = yard.access(httpx.MockTransport(answered))
    nodes = CudoNodes(CudoNodesConfig("vantage", "https://api.example.test"), access)
    source = nodes.with_sheet(CudoCloud(access).offers(yard.account, "acme", MOMENT))
    yard.cluster_network(client_id("acme", CLUSTER, "c"))
    return Case(
        source,
        yard.spec(),
        DALLAS,
        machines,
        full,
        cloud=CudoCloud(access),
        clock=yard.clock,
        types=types,
        account=yard.account,
    )


def config_map(store: MemoryStore, stack: ExitStack, *, via: str | None = None) -> Case:
    """A Kubernetes host with the rights of its template alone; ``via``: it is reached through that site."""
    full: set[str] = set()
    host = KubernetesHost()
    if via is not None:
        host.account = replace(host.account, attributes={"via": via, "namespaces": [NAMESPACE]}, secrets=())
    source = ConfigMapNodes(host.access(), lambda _tenant: store, offered=True)
    source.refuses = lambda _provider, name, _zone: name in full
    types = [{"name": name, "resources": {"cpu": 2, "memory": "8Gi"}} for name in (FIRST, SECOND)]
    block = {"clusterRef": {"cluster": NUMBER, "namespace": NAMESPACE}, "launchSeconds": 5, "nodeTypes": types}

    def machines() -> list[str]:
        return [document["metadata"]["name"] for document in host.objects("configmaps").values()]

    spec = {"configMap": block}
    return Case(source, spec, "global", machines, full, cloud=host.cloud(), clock=host.clock, account=host.account)


def metal3(store: MemoryStore, stack: ExitStack, *, via: str | None = None) -> Case:
    """Two hosts of bare metal of each type, lent by a Kubernetes host, with the rights of its template alone."""
    yard = BareMetalYard({f"{name}-{number}": {"kind": name} for name in (FIRST, SECOND) for number in (1, 2)})
    if via is not None:
        attributes = {"via": via, "namespaces": [NAMESPACE], "features": list(yard.features)}
        yard.account = replace(yard.account, attributes=attributes, secrets=())
    full = FullYard(yard)
    source = Metal3Nodes(CONFIG, yard.access(), lambda _tenant: store)
    spec = {"metal3": block(FIRST, SECOND)}
    return Case(
        source, spec, "global", yard.hosts_of_claims, full, cloud=yard.cloud(), clock=yard.clock, account=yard.account
    )


def bcm(store: MemoryStore, stack: ExitStack, *, via: str | None = None) -> Case:
    """A head node with one marked host of each type; ``via``: it is reached through that site."""
    full: set[str] = set()
    yard = HeadYard(names=(HOSTS[0], HOSTS[1]))
    if via is not None:
        yard.through_site()
    types = [
        {"name": name, "nodes": [host], "resources": {"cpu": 2, "memory": "8Gi"}, "cost": cost}
        for cost, (name, host) in enumerate(zip((FIRST, SECOND), HOSTS, strict=True), 1)
    ]

    yard.lacking = lambda: {host for name, host in zip((FIRST, SECOND), HOSTS, strict=True) if name in full}
    spec = {"bcm": {"secretRef": {"name": NAME}, "endpoint": ENDPOINT, "nodeTypes": types}}
    source = BcmNodes(BcmNodesConfig("https://api.example.test"), yard.access())
    with_sheet = source.with_sheet(yard.cloud().offers(yard.account, "acme", MOMENT))
    return Case(
        with_sheet, spec, "global", yard.in_use, full, cloud=yard.cloud(), clock=yard.clock, account=yard.account
    )


def kubevirt(store: MemoryStore, stack: ExitStack, *, via: str | None = None) -> Case:
    """A host with KubeVirt, with the rights of its template alone; quotas that are used up refuse a type."""
    full: set[str] = set()
    host = VirtualMachineHost()
    host.full = full
    if via is not None:
        attributes = {"via": via, "namespaces": [NAMESPACE], "features": list(host.features)}
        host.account = replace(host.account, attributes=attributes, secrets=())
    source = KubeVirtNodes(KUBEVIRT_CONFIG, host.access(), lambda _tenant: store)
    types = [{"name": name, "resources": {"cpu": 2, "memory": "8Gi"}, "properties": IMAGE} for name in (FIRST, SECOND)]
    spec = {"kubeVirt": kubevirt_block(*types)}
    return Case(source, spec, "global", host.machines, full, cloud=host.cloud(), clock=host.clock, account=host.account)


def eks(store: MemoryStore, stack: ExitStack) -> Case:
    """A cluster on EKS with one node group."""
    full: set[str] = set()
    stack.enter_context(mock_aws())
    stack.enter_context(direct_aws())
    stack.enter_context(scarce_groups(full))
    keys = boto3.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="me")["Credentials"]
    tenant = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], "us-east-1")
    groups = NodeGroups(tenant, cluster_of("aws", 1, "eks"))
    groups.group("workers", FIRST)
    rows = [InstanceOffer(FIRST, 2, 8192, "x86_64", 3, 10, 0.09), InstanceOffer(SECOND, 2, 8192, "x86_64", 3, 10, 0.1)]
    offers = RegionOffers("us-east-1", "2026", {row.name: row for row in rows}, {"gp3": 0.0})
    nodes = EksNodes(EksNodesConfig("vantage"), boto3.Session, {"us-east-1": offers}.get)
    block = {"cloudAccount": 1, "region": "us-east-1"}
    cloud = AwsCloud(Stage(), boto3.Session)
    return Case(nodes, {"eks": block}, ANY, groups.machines, full, cloud=cloud, driver="eks", pool="workers")


def terraform(store: MemoryStore, stack: ExitStack) -> Case:
    """Templates whose runs are played in memory."""
    clock = FixedClock()
    store.commit(Create(AWS_ACCOUNT))
    services = replace(memory_services(MemoryRegistry(), clock), store=store)
    seals, tofu = PlainSeals(), PlayedTofu(lambda: services)
    runner = MemoryRunner(tofu, clock, queue_seconds=20)
    source = TerraformNodes(
        TerraformConfig("https://api.example", "us-east-1"),
        runner,
        lambda _: StoreRuns(services, seals),
        lambda _: store,
    )
    block = {
        "runner": {"cloudAccount": 1},
        "nodeTemplate": {"inline": "# played", "timeout": "10m"},
        "nodeTypes": [{"name": name, "resources": {"cpu": 2, "memory": "8Gi"}} for name in (FIRST, SECOND)],
    }

    def machines() -> list[str]:
        return [f"{CLAIM}/node" for _ in tofu.machines]

    return Case(source, {"terraform": block}, "global", machines, clock=clock, of_template=True)


def cluster_of(cloud: str, account: int, driver: str = "") -> Cluster:
    """The cluster that the claim is for."""
    return Cluster(
        CLUSTER, "c", "d", "k8s", cloud, account, client_id("acme", CLUSTER, "c"), "ready", {"key_pair": "my-key"},
        MOMENT, MOMENT, operation_id="op_0", driver=driver,
    )  # fmt: skip


WITH_NEEDS: dict[str, Callable[[MemoryStore, ExitStack], Case]] = {
    "bcm": bcm,
    "configMap": config_map,
    "cudo": cudo,
    "ec2": ec2,
    "eks": eks,
    "kubeVirt": kubevirt,
    "metal3": metal3,
    "simulated": simulated,
    "terraform": terraform,
}
OTHER_WAYS = {
    "bcm through a site": partial(bcm, via=SITE),
    "configMap through a site": partial(config_map, via=SITE),
    "metal3 through a site": partial(metal3, via=SITE),
    "kubeVirt through a site": partial(kubevirt, via=SITE),
}
"""Sources that stand in ``SOURCES`` already, by another way to what they work in."""
SOURCES = {kind: WITH_NEEDS.get(kind, partial(described, kind)) for kind in registry.node_sources()} | OTHER_WAYS
"""Every source in the registry; those that need a cloud to be tried are made by a function of their own."""
