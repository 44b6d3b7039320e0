"""Costs of nodes: in Stockyard's account for each month and each life, for clusters with spot nodes, for the sweep, for
metrics and followers; and in the tenant's account.

Counts come from the product: sweeps and posts from its intervals, bytes from its codec, metrics from its table of
phases. What a sweep and a node's life take is measured by ``benchmarks.costs`` (``account_sweeps``, ``node_life``), and
written down below. Prices are in ``benchmarks.rates``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from benchmarks import rates
from stacks.functions import FUNCTIONS, SCHEDULES
from stacks.workflows import document
from stockyard.adapters.dynamodb import codec
from stockyard.domain.clusters.control_plane import DISK_GIB as MEMBER_DISK_GIB
from stockyard.domain.nodes.records import NodeClaim, Placement
from stockyard.domain.records import Resource
from stockyard.domain.values.conditions import Condition
from stockyard.lifecycle import sweeping
from stockyard.lifecycle.nodes.node_phases import CREATE_NODE, DELETE_NODE
from stockyard.lifecycle.phases import ANY, PROCEDURES
from stockyard.operations.machines.observe import INTERRUPTIBLE_SECONDS
from stockyard.providers.clouds.aws.catalog.reserved import DISK_GIB
from stockyard.providers.clusters.ec2.configuration import ETCD_VOLUME_GIB

MINUTES = rates.HOURS * 60
NOW = "2026-11-29T00:00:00.000Z"

SWEEP_SECONDS = 1.5
"""Of the sweep of one account, which lists some twenty kinds of things in a region, eight at a time
(``benchmarks.costs.account_sweeps``)."""
CLAIM_READS_OF_SCOPE = 1
"""How often the sweep of a scope reads the claims of its tenant."""
CLAIM_READS_OF_TURN = 2
"""And the turn of a tenant: once for its claims, once for what is alive beside its secrets."""
READS_OF_CLUSTER, READS_OF_TENANT = 4, 12
"""Of a turn: each cluster with its operation and snapshots; lists of the tenant that are short."""
TURN_SECONDS = 0.46
"""Of the turn of a tenant in which nothing is to be done, with one cluster (``benchmarks.costs.account_sweeps``)."""
LINES_OF_NODE = 2
"""Lines of the ledger of a node on EC2: its machine and its launch template."""
LINES_OF_CLUSTER = 25

LOOKS: Mapping[str, int] = {"register": 2, "drain": 2, "terminate": 2}
"""Looks at each phase of a life on EC2, one at every other phase, where nothing is looked at in vain: the agent's word
that a node is there, or is drained, ends a wait, and a machine that is ended is gone a minute later."""
LIFE_TRANSITIONS = 16.2
"""Of one life, as ``python -m benchmarks.costs.node_life`` measured it on 2026-11-30, and so are the figures below."""
LIFE_CALLS: Mapping[str, tuple[float, float]] = {
    "node_claims": (1.5, 0.33),
    "scheduler": (1.0, 0.15),
    "node_phases": (5.4, 4.75),
    "machines": (1.4, 0.25),
    "relay": (9.9, 0.56),
}
"""Invocations of one life, and their seconds together."""
LIFE_WRITE_UNITS, LIFE_READ_UNITS = 295, 121
LIFE_BESIDE = 0.00014
"""USD of what others do because a node comes and goes: posts of the cluster's agent, and the passes over pools and
disruption that follow."""
LIFE_GOAL = 0.0008
"""USD that a life may cost."""
LIFE_EVENTS = 16
LIFE_LOG_KB = 1.0
"""Of one call."""
CONFIG_ITEMS_OF_LIFE = 10
"""Items that AWS Config records for a machine, its disk and its interface that come and go, where it is on."""

EKS_DISK_GIB = 100
"""Of each machine of a manifest that names no size."""


def function_seconds(name: str, seconds: float) -> float:
    """USD of one run of a function."""
    memory = next(spec.memory for spec in FUNCTIONS if spec.name == name) / 1024
    return rates.LAMBDA_REQUEST + seconds * memory * rates.LAMBDA_ARM_GB_SECOND


@cache
def claim_bytes() -> int:
    """Size of the record of a node that is there, as the table keeps it: with labels, conditions and a placement."""
    conditions = tuple(
        Condition(name, "True", name, f"Node group-web-x1y2z has {name}.", NOW)
        for name in ("Scheduled", "Provisioned", "Joined", "NotDrifted")
    )
    options = ({"type": "ec2.m6i.large", "capacity_type": "on-demand", "zones": ["us-east-1a"], "usd_hour": 0.096},)
    placement = Placement("npr_" + "0" * 26, "ec2.m6i.large", "on-demand", ("us-east-1a",), 0.1, NOW, 0.1)
    labels = {f"node.kubernetes.io/label-{number}": "some-value-of-it" for number in range(12)}
    claim = NodeClaim(
        id="ncl_" + "0" * 26,
        name="group-web-x1y2z",
        created_at=NOW,
        updated_at=NOW,
        cluster_id="clu_" + "0" * 26,
        pool="group-web",
        requirements=tuple({"key": key, "operator": "In", "values": ["a", "b"]} for key in ("type", "zone", "arch")),
        resources={"cpu": "2", "memory": "8Gi", "pods": "110"},
        conditions=conditions,
        placement=placement,
        machine_id="i-0123456789abcdef0",
        node_name="ip-10-0-0-1.ec2.internal",
        node_labels=labels,
        labels={"stockyard.dev/pool": "group-web"},
    )
    return _bytes(codec.to_item("acme", claim)) + len(json.dumps(options))


@cache
def line_bytes() -> int:
    """Size of a line of the ledger."""
    line_values = ("us-east-1", 1, NOW, "i-0123456789abcdef0", NOW)
    line = Resource(
        f"ncl_{'0' * 26}/machine/instance/1", "clu_1", "machine", "instance", "1", "t" * 32, "made", *line_values
    )
    return _bytes(codec.to_item("acme", line))


def _bytes(item: Mapping[str, Any]) -> int:
    return sum(len(name) + codec._size(value) for name, value in item.items())


def read_units(bytes_read: float) -> float:
    """Read units of a query: 4 KB each, whatever the items are."""
    return bytes_read / 4096


def sweeps(seconds: float) -> float:
    """Sweeps a month where one comes each so many seconds."""
    return rates.HOURS * 3600 / seconds


def sweep_seconds(*, quiet: bool) -> float:
    """Seconds between two sweeps of a scope."""
    return sweeping.QUIET_SECONDS if quiet else SCHEDULES["reaper"][0] * 60


def account_sweep(nodes: int, clusters: int, *, quiet: bool) -> dict[str, float]:
    """USD a month of the sweep of one account, of a tenant with so many nodes and clusters."""
    runs = sweeps(sweep_seconds(quiet=quiet))
    claims = CLAIM_READS_OF_SCOPE * nodes * claim_bytes()
    lines = (nodes * LINES_OF_NODE + clusters * LINES_OF_CLUSTER) * line_bytes()
    return {
        "functions": runs * function_seconds("reaper", SWEEP_SECONDS),
        "table": runs * (read_units(claims + lines) + 10) * rates.DYNAMODB_READ,
        "logs": runs * LIFE_LOG_KB / 1e6 * (rates.LOGS_GB + rates.LOGS_STORED_GB),
    }


def turns(tenants: int, clusters: int) -> float:
    """USD a month of the turns of so many tenants, each with so many clusters, which every run of the sweep reads, and
    a few reads of each tenant besides."""
    runs = sweeps(sweep_seconds(quiet=False))
    units = tenants * (clusters * READS_OF_CLUSTER + READS_OF_TENANT)
    return runs * (units * rates.DYNAMODB_READ + tenants * function_seconds("reaper", TURN_SECONDS))


def node_month(*, quiet: bool) -> dict[str, float]:
    """USD a month of a node that is there: the turn of its tenant reads its claim. Its agent is the cluster's."""
    runs = sweeps(sweep_seconds(quiet=quiet))
    return {"table": runs * CLAIM_READS_OF_TURN * read_units(claim_bytes()) * rates.DYNAMODB_READ}


def transitions(kind: str) -> int:
    """Transitions of an execution that makes a node, or gives one back, as its document has them."""
    procedure = PROCEDURES[kind, ANY]
    states = document(procedure)["States"]
    count = 1  # the last state
    if procedure.together:
        # The look at which a phase is done begins the next one.
        later = sum(LOOKS.get(phase.name, 1) - 1 for phase in procedure.phases if not phase.before_workflow)
        return count + 2 * (1 + later) + later
    for phase in (phase.name for phase in procedure.phases if phase.name in states):
        looks = LOOKS.get(phase, 1)
        count += 2 * looks + (looks - 1)
    return count


def node_life() -> dict[str, float]:
    """USD of one node that comes and goes, beside its months."""
    calls = sum(count for count, _ in LIFE_CALLS.values())
    return {
        "workflow": LIFE_TRANSITIONS * rates.STEP_FUNCTIONS_TRANSITION,
        "functions": sum(count * function_seconds(name, total / count) for name, (count, total) in LIFE_CALLS.items()),
        "table": LIFE_WRITE_UNITS * rates.DYNAMODB_WRITE + LIFE_READ_UNITS * rates.DYNAMODB_READ,
        "events": LIFE_EVENTS * rates.EVENT,
        "logs": calls * LIFE_LOG_KB / 1e6 * (rates.LOGS_GB + rates.LOGS_STORED_GB),
    }


def moving_fleet(idle: float, cluster: float, tenants: int, clusters: int, nodes: int) -> dict[str, float]:
    """USD a month of a stage whose nodes are all replaced once a day, spot or not: ``idle`` is the stage, ``cluster``
    one quiet cluster, and each of the ``tenants`` has an equal part in an account of its own. Hours in which a tenant
    has no node that comes or goes are quiet ones."""
    lives = nodes * rates.HOURS / 24
    busy: float = 1 - (23 / 24) ** (2 * nodes / tenants)

    def mixed(of: Callable[[bool], float]) -> float:
        return busy * of(False) + (1 - busy) * of(True)

    def sweep(quiet: bool) -> float:
        return sum(account_sweep(nodes // tenants, clusters // tenants, quiet=quiet).values())

    return {
        "idle stage": idle,
        "clusters": clusters * cluster,
        "lives of nodes": lives * sum(node_life().values()),
        "what lives make others do": lives * LIFE_BESIDE,
        "nodes": nodes * mixed(lambda quiet: sum(node_month(quiet=quiet).values())),
        "turns of the sweep": turns(tenants, clusters // tenants),
        "sweep of accounts": tenants * mixed(sweep),
        "metrics": sum(metrics_of_lives().values()) + rates.METRIC,
    }


def posts_of_spot() -> float:
    """Posts a month of the agent of a cluster with spot nodes that do not tell the cluster of their end."""
    return rates.HOURS * 3600 / INTERRUPTIBLE_SECONDS


def metrics_of_lives() -> dict[str, float]:
    """USD a month of metrics that have values in each hour, because nodes come and go in each: a series for each phase
    of nodes, and what claims and the relay measure."""
    procedures = [PROCEDURES[kind, ANY] for kind in (CREATE_NODE, DELETE_NODE)]
    phases = sum(len(procedure.phases) for procedure in procedures)
    return {"seconds of phases": phases * rates.METRIC, "time to bind, lag of the relay": 2 * rates.METRIC}


def follower_hour() -> dict[str, float]:
    """USD an hour of one ``--wait`` at an operation, and of one at a cluster: requests that last 20 seconds."""
    return {
        "at an operation": 180 * (function_seconds("records", 20) + rates.HTTP_API_REQUEST),
        "at a cluster": 180 * (function_seconds("clusters", 20) + rates.HTTP_API_REQUEST),
    }


def tenant_members() -> dict[str, float]:
    """USD a month of the second and third member of a control plane, in the tenant's account."""
    return {
        "2 machines, t3.medium": 2 * rates.T3_MEDIUM_HOUR * rates.HOURS,
        "their disks": 2 * (MEMBER_DISK_GIB + ETCD_VOLUME_GIB) * rates.GP3_GB,
        "a NAT gateway for each further zone": 2 * (rates.NAT_GATEWAY_HOUR + rates.PUBLIC_IPV4_HOUR) * rates.HOURS,
    }


def tenant_node() -> dict[str, float]:
    """USD in the tenant's account of a node, beside its machine."""
    return {
        f"disk of {DISK_GIB} GiB, a month": DISK_GIB * rates.GP3_GB,
        "NAT gateway, 10 GB of data beside images of ECR": 10 * rates.NAT_GATEWAY_GB,
        "traffic between zones, 10 GB": 2 * 10 * rates.ZONE_GB,
        "AWS Config, each life": CONFIG_ITEMS_OF_LIFE * rates.CONFIG_ITEM,
    }


def tenant_on_eks() -> dict[str, float]:
    """USD a month in the tenant's account: the cluster of ``examples/eks-inference.yaml`` as long as no pod asks for a
    GPU: its two machines of the group ``system`` with EKS, one NAT gateway and an empty file system."""
    return {
        "control plane": rates.EKS_HOUR * rates.HOURS,
        "NAT gateway": rates.NAT_GATEWAY_HOUR * rates.HOURS,
        "public address": rates.PUBLIC_IPV4_HOUR * rates.HOURS,
        "2 machines, m6i.xlarge": 2 * rates.M6I_XLARGE_HOUR * rates.HOURS,
        "their disks": 2 * EKS_DISK_GIB * rates.GP3_GB,
    }
