"""A tenant with a large cluster for ``benchmarks/pool_pass.py``: its records, and what its agent posts.

Nodes are almost full, as the pods that wait would otherwise be on them.
"""

from __future__ import annotations

import gzip
import json
import random
from base64 import b64encode, urlsafe_b64encode
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.catalog import OFFLINE_REGION, Ec2PriceList
from stockyard.domain.nodes.node_types import CPU, NodeType
from stockyard.domain.nodes.records import PlacementOption
from stockyard.domain.pools.records import DYNAMIC, POOL_LABEL, Pool, cluster_claim, pool_id
from stockyard.domain.records import (
    Cluster,
    Name,
    NodeClaim,
    NodeEnvironment,
    NodeProvider,
    Placement,
    Quota,
    Record,
)
from stockyard.domain.values import ids, times
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.requirements import ARCH, CAPACITY_TYPE, IN, NODE_POOL, NODE_TYPE, ZONE
from stockyard.lifecycle.pools.pool import decide
from stockyard.operations.node_claims.work import environment_id
from stockyard.providers.nodes.ec2 import catalogue

TENANT, PROVIDER, CLIENT = "acme", "ec2", "demo-0123456789ab"
ZONES = tuple(f"{OFFLINE_REGION}{letter}" for letter in "abc")
CATEGORY = "karpenter.k8s.aws/instance-category"
POOLS: Mapping[str, str] = {"general": "m", "compute": "c", "memory": "r", "batch": "cmr", "web": "mr"}
"""Pools, and the categories of instance types that each may have."""
NODE_FAMILIES = ("m6i", "c6i", "r6i", "m5", "m6a")
WAYS = 20
"""Ways to launch that the placement of a claim keeps."""
NAMED_TYPES = 60
GIB = 2**30 * 1000


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the load."""

    nodes: int = 1_000
    running: int = 50_000
    running_groups: int = 300
    pending: int = 1_000
    pending_groups: int = 40


@dataclass(frozen=True, slots=True)
class Load:
    """``records`` are what the table holds before, ``post`` and ``woken`` the events of both functions in turn."""

    records: Sequence[Record]
    post: Mapping[str, Any]
    woken: Mapping[str, Any]
    body_bytes: int


def load(sizes: Sizes, seed: int) -> Load:
    """Everything that one run needs; the same for the same seed."""
    chance, moment = random.Random(seed), datetime.now(UTC)
    now = times.to_text(moment)

    def new_id(kind: str) -> str:
        return ids.make(kind, moment, chance.randbytes(10))

    cluster = Cluster(
        id=new_id(ids.CLUSTER),
        name="demo",
        description="",
        cluster_type="k8s",
        provider="aws",
        cloud_account_id=1,
        client_id=CLIENT,
        status="ready",
        settings={"region_name": OFFLINE_REGION},
        created_at=now,
        updated_at=now,
        driver="ec2",
    )
    block = {"cloudAccount": 1, "region": OFFLINE_REGION, "instanceTypes": ["c*", "m*", "r*"]}
    provider = NodeProvider(new_id(ids.NODE_PROVIDER), PROVIDER, "ec2", {"ec2": block}, now, now)
    groups = running_groups(sizes.running_groups, chance)
    nodes = full_nodes(sizes, groups, node_kinds(provider), chance)
    claims = [claim(new_id, cluster, provider, number, node, now) for number, node in enumerate(nodes)]
    records: list[Record] = [cluster, provider, environment(cluster, provider, now)]
    records += [Quota("nodes_per_group", 2 * sizes.nodes, now)]
    for name in POOLS:
        # As an earlier pass has left it.
        records.append(
            decide(pool(cluster, name, now), cluster, [each for each in claims if each.pool == name], now).pool
        )
    records += claims
    records += [cluster_claim(cluster.id, each.pool, each.id, now) for each in claims]
    records += [Name(f"node-claim/{each.name}", each.id) for each in claims]
    running = {each.node_name: dict(node.pods) for each, node in zip(claims, nodes, strict=True)}
    document = report(running, groups, pending_groups(sizes, chance), now)
    body = gzip.compress(json.dumps(document, separators=(",", ":")).encode(), 6)
    woken = {"detail-type": "PendingPods", "detail": {"tenant": TENANT, "subject": cluster.id}}
    return Load(records, posted(cluster.id, body), woken, len(body))


# --- nodes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FullNode:
    """A node and its pods by group."""

    node_type: NodeType
    pool: str
    zone: str
    pods: Counter[str]


def node_kinds(provider: NodeProvider) -> Sequence[NodeType]:
    """The types of the nodes that are there."""
    offers = Ec2PriceList(MemoryRegistry().platform()).region(OFFLINE_REGION)
    types = catalogue.node_types(provider, offers) if offers is not None else ()
    names = {f"{PROVIDER}.{family}.{size}" for family in NODE_FAMILIES for size in ("xlarge", "2xlarge", "4xlarge")}
    return [node_type for node_type in types if node_type.name in names]


def full_nodes(
    sizes: Sizes, groups: Mapping[str, Any], kinds: Sequence[NodeType], chance: random.Random
) -> Sequence[FullNode]:
    """Nodes with equally many pods, of sizes that fill them: what is left has no room for a pod that waits."""
    daemons = [name for name, template in groups.items() if template["daemon_set"]]
    by_size: defaultdict[int, list[str]] = defaultdict(list)
    for name, template in groups.items():
        if not template["daemon_set"]:
            by_size[cpu_of(template)].append(name)
    cpu_sizes = sorted(by_size)
    nodes = []
    for number in range(sizes.nodes):
        node_type = chance.choice(kinds)
        room = node_type.allocatable[CPU] - sum(cpu_of(groups[name]) for name in daemons)
        pods = Counter(daemons)
        for pods_left in range(sizes.running // sizes.nodes - len(daemons), 0, -1):
            index = bisect(cpu_sizes, room // pods_left)
            size = chance.choice(cpu_sizes[max(0, index - 1) : index + 1] if pods_left > 1 else cpu_sizes[:1])
            pods[chance.choice(by_size[size])] += 1
            room -= size
        pool_names = [name for name, letters in POOLS.items() if node_type.bare[0] in letters]
        nodes.append(FullNode(node_type, chance.choice(pool_names), ZONES[number % len(ZONES)], pods))
    return nodes


def claim(new_id: Any, cluster: Cluster, provider: NodeProvider, number: int, node: FullNode, now: str) -> NodeClaim:
    """The claim of a node that has joined, as the phases leave it."""
    name = f"{node.pool}-{number:05}"
    price = node.node_type.offerings[0].usd_hour
    ways = tuple(
        PlacementOption(f"{PROVIDER}.m6i.{way}xlarge", "on-demand", (node.zone,), (price or 0) + way, way)
        for way in range(WAYS)
    )
    kinds = ("Scheduled", "Launched", "Registered", "Initialized", "Ready")
    conditions = tuple(Condition(kind, "True", kind, f"{kind} since the start.", now) for kind in kinds)
    named = [node.node_type.name, *(f"{PROVIDER}.m6i.{number}xlarge" for number in range(NAMED_TYPES - 1))]
    wishes = {
        CATEGORY: sorted(POOLS[node.pool]),
        NODE_TYPE: named,
        ZONE: sorted(ZONES),
        CAPACITY_TYPE: ["on-demand"],
    }
    labels = {key: values[0] for key, values in node.node_type.properties.items() if values and values != ("*",)}
    return NodeClaim(
        id=new_id(ids.NODE_CLAIM),
        name=name,
        created_at=now,
        updated_at=now,
        cluster_ref=cluster.id,
        cluster_id=cluster.id,
        provider_ref=PROVIDER,
        requirements=tuple({"key": key, "operator": IN, "values": values} for key, values in wishes.items()),
        resources={"cpu": "7", "memory": "20Gi", "pods": "50"},
        properties={POOL_LABEL: node.pool, NODE_POOL: node.pool},
        labels={POOL_LABEL: node.pool},
        pool=node.pool,
        pool_generation=1,
        type_ref=node.node_type.name,
        environment_ref=environment_id(cluster.id, provider.id),
        phase="Available",
        conditions=conditions,
        placement=Placement(
            provider.id, node.node_type.name, "on-demand", (node.zone,), price or 0, now, price, options=ways
        ),
        machine_id=f"i-{number:017x}",
        node_name=name,
        node_labels={**labels, ZONE: node.zone, POOL_LABEL: node.pool},
        operation_id=new_id(ids.OPERATION),
        created_by="user:ann",
        sequence=8,
        version=9,
    )


def pool(cluster: Cluster, name: str, now: str) -> Pool:
    """A dynamic pool of some categories, without a limit that stops it."""
    return Pool(
        id=pool_id(cluster.id, name),
        cluster_id=cluster.id,
        name=name,
        created_at=now,
        updated_at=now,
        kind=DYNAMIC,
        provider_ref=PROVIDER,
        requirements=(
            {"key": CATEGORY, "operator": IN, "values": sorted(POOLS[name])},
            {"key": CAPACITY_TYPE, "operator": IN, "values": ["on-demand"]},
            {"key": ARCH, "operator": IN, "values": ["amd64", "arm64"]},
        ),
        limits={"usd_hour": "5000"} if name == "general" else {},
        weight=1 if name == "general" else 0,
        created_by="user:ann",
    )


def environment(cluster: Cluster, provider: NodeProvider, now: str) -> NodeEnvironment:
    """The subnets that the provider has found for the cluster."""
    outputs = {
        "subnets": ",".join(f"subnet-{zone}={zone}" for zone in ZONES),
        "images": "",
        "security_groups": "sg-1",
        "instance_profile": "nodes",
        "root_device": "/dev/sda1",
        "provider_generation": str(provider.generation),
    }
    name = environment_id(cluster.id, provider.id)
    return NodeEnvironment(name, cluster.id, provider.id, provider.name, now, now, phase="Available", outputs=outputs)


# --- pods ---------------------------------------------------------------------------------------------------------


def template(app: str, cpu: int, memory: int, *, daemon_set: str = "", **spec: Any) -> dict[str, Any]:
    """Equal pods as an agent describes them; cpu in thousandths, memory in Mi."""
    containers = [{"name": "app", "resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}}}]
    labels = {"app": app, "team": f"team-{len(app) % 7}", "pod-template-hash": "5d4f8c7b9"}
    return {
        "namespace": "default",
        "labels": labels,
        "spec": {"containers": containers, **spec},
        "daemon_set": daemon_set,
    }


def cpu_of(each: Mapping[str, Any]) -> int:
    """Thousandths of a core that the pods of a template ask for."""
    text: str = each["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(text.removesuffix("m"))


def spread(app: str, key: str) -> dict[str, Any]:
    """The part of a pod's specification that spreads the pods of an application evenly."""
    selector = {"matchLabels": {"app": app}}
    rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [rule]}


def apart(app: str, key: str = "kubernetes.io/hostname", kind: str = "podAntiAffinity") -> dict[str, Any]:
    """The part of a pod's specification that keeps the pods of an application apart, or together."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def running_groups(count: int, chance: random.Random) -> dict[str, Any]:
    """Templates of what runs by their ids; three are DaemonSets, one in ten is spread or keeps apart by zones."""
    groups: dict[str, Any] = {}
    for number in range(count):
        app = f"app-{number}"
        rule: dict[str, Any] = {}
        if number % 20 == 7:
            rule = spread(app, ZONE)
        elif number % 20 == 17:
            rule = spread(app, "kubernetes.io/hostname")
            rule["topologySpreadConstraints"][0]["whenUnsatisfiable"] = "ScheduleAnyway"
        daemon_set = f"kube-system/{app}" if number < 3 else ""
        cpu = 50 if daemon_set else chance.choice((50, 100, 100, 150, 200, 250, 500))
        memory = chance.choice((64, 128, 192, 256))
        groups[f"{number:016x}"] = template(app, cpu, memory, daemon_set=daemon_set, **rule)
    return groups


def pending_groups(sizes: Sizes, chance: random.Random) -> Mapping[str, tuple[dict[str, Any], int]]:
    """Templates of what waits, and how many of each. A fifth is spread over zones, a tenth each over hosts, apart on
    hosts and together in a zone; a tenth asks for memory-optimized nodes; others have no rules."""
    each = sizes.pending // sizes.pending_groups
    groups: dict[str, tuple[dict[str, Any], int]] = {}
    for number in range(sizes.pending_groups):
        app = f"new-{number}"
        rules: Sequence[dict[str, Any]] = (
            spread(app, ZONE),
            spread(app, "kubernetes.io/hostname"),
            apart(app),
            apart(app, ZONE, "podAffinity"),
            spread(app, ZONE),
            {"nodeSelector": {CATEGORY: "r"}},
        )
        rule = rules[number % 10] if number % 10 < len(rules) else {}
        cpu = chance.choice((500, 750, 1000, 1500, 2000, 4000))
        count = each + (1 if number < sizes.pending % sizes.pending_groups else 0)
        groups[f"{number + (1 << 32):016x}"] = (template(app, cpu, cpu * chance.choice((1, 2, 4)), **rule), count)
    return groups


def report(
    running: Mapping[str, Mapping[str, int]],
    groups: Mapping[str, Any],
    pending: Mapping[str, tuple[dict[str, Any], int]],
    now: str,
) -> dict[str, Any]:
    """All that an agent says of the pods of its cluster."""
    waiting = {
        group: {"count": count, "names": [f"default/{each['labels']['app']}-{n}" for n in range(3)]}
        for group, (each, count) in pending.items()
    }
    return {
        "sequence": 1,
        "observed_at": now,
        "agent_version": "1",
        "groups": {**groups, **{group: each for group, (each, _) in pending.items()}},
        "pending": waiting,
        "running": running,
        "daemon_sets": {each["daemon_set"]: group for group, each in groups.items() if each["daemon_set"]},
    }


def posted(cluster_id: str, body: bytes) -> dict[str, Any]:
    """The gateway's event of the agent's post."""
    claims = {"sub": "service", "organization": [TENANT], "azp": CLIENT}
    payload = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    path = f"/v1/clusters/{cluster_id}/pending-pods"
    return {
        "version": "2.0",
        "routeKey": "POST /v1/clusters/{id}/pending-pods",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"authorization": f"Bearer x.{payload}.x", "content-type": "application/gzip"},
        "requestContext": {
            "http": {"method": "POST", "path": path},
            "requestId": "r",
            "authorizer": {"jwt": {"claims": {}}},
        },
        "body": b64encode(body).decode(),
        "isBase64Encoded": True,
    }
