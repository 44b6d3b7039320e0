"""Cost of a default stage when idle, and of one cluster in addition: a table for people, then one JSON line of figures.

Counts of resources are read off the synthesized template and its memory sizes and schedules, so a new alarm or a
faster schedule shows. What a run does (reads, writes, seconds) is assumed, and written down below.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.stockyard_agent.pod_reports import REFRESH_SECONDS
from benchmarks import node_cost, rates, site_cost
from stacks.functions import FUNCTIONS, SCHEDULES
from stacks.names import Names
from stacks.synth import synthesize
from stockyard.domain.clusters.control_plane import DISK_GIB
from stockyard.lifecycle.pools.pool import SETTLED_SECONDS
from stockyard.operations.clusters.access.secret_refresh import REFRESH_SECONDS as SECRET_REFRESH_SECONDS
from stockyard.operations.machines.observe import ATTENTIVE_SECONDS, REWRITE_SECONDS
from stockyard.providers.clusters.ec2.configuration import ETCD_VOLUME_GIB
from stockyard.providers.clusters.ec2.network.network_configuration import zone_count
from stockyard.settings import Choices

STAGE = "dev"
GOAL = 5.0
"""USD a month that an idle stage may cost."""

FLEET_CLUSTERS, FLEET_NODES, FLEET_TENANTS = 100, 1000, (1, 100)
FLEET_GOAL, MOVING_GOAL = 20.0, 60.0
"""USD a month that a stage may cost with so many clusters and nodes while nothing changes, at list prices; and where
all nodes are replaced once a day, of one tenant."""

MINUTES = rates.HOURS * 60


@dataclass(frozen=True, slots=True)
class Run:
    """The work of one run of a scheduled function while nothing happens."""

    seconds: float
    reads: int
    writes: int
    log_kb: float = 1.0


RUNS: Mapping[str, Run] = {
    # A query of each empty shard of the index.
    "relay": Run(seconds=0.1, reads=8, writes=0),
    "scheduler": Run(seconds=0.1, reads=4, writes=0, log_kb=2.0),
    "autoscaler": Run(seconds=0.1, reads=1, writes=0),
    "disruptor": Run(seconds=0.1, reads=1, writes=0),
    # Queries of the indexes; two accounts in four regions are looked at, which is waiting for the clouds.
    "reaper": Run(seconds=4.0, reads=12, writes=1, log_kb=2.0),
    # Queries of the index, and the sheets of two regions. One run in 96 asks for price lists of some hundred types,
    # which takes 120 seconds, and writes them in 800 pieces of 1 KB.
    "catalog": Run(seconds=1.5, reads=14, writes=9),
}
OWN_SECRETS = 3
"""The realm's admin client, which the operator makes, the page key and the key of machines' tokens."""
SECRET_READS = MINUTES / SCHEDULES["reaper"][0]
"""The sweep asks Keycloak for clients without an owner; a value is kept for five minutes."""
STORED_GB = 0.2
"""Table, backup and assets of a stage with a handful of clusters."""

IDLE_METRICS = 1
"""Claims waiting, at each pass of the schedule. A metric is paid for in the hours in which it has values."""

CLUSTER_TRANSITIONS = 120
CLUSTER_INVOCATIONS = 90
CLUSTER_SECONDS = 1.5
CLUSTER_WRITES = 400
CLUSTER_READS = 400
CLUSTER_KMS_CALLS = 20
CLUSTER_METRIC_HOURS = 25
"""Creating, keeping for a month and deleting one cluster: its phases, polls, ledger lines, kubeconfig and CA;
seconds of its phases, each within an hour. Its two secrets are sealed once, and opened when somebody asks for them."""

CLOUDFRONT = {
    "domain": "api.example.com",
    "region": rates.REGION,
    "cloudfront": {
        "certificate_arn": f"arn:aws:acm:{rates.REGION}:111111111111:certificate/0a1b",
        "origin_key_hashes": ["0" * 64],
    },
}
"""The settings of a stage with CloudFront in front of the API."""
QUIET_REQUESTS = (
    rates.HOURS * 3600 / Choices().agent_idle_seconds
    + rates.HOURS * 3600 / REFRESH_SECONDS
    + ATTENTIVE_SECONDS / Choices().agent_quiet_seconds
)
"""A month's requests of a cluster's agent that has nothing to do: what it observes, its reports of pods that do not
change, and the hour after the cluster was made."""
NODE_CHANGES = 50 * 6
"""A month's reports of nodes alone: each that comes and goes changes some six times, and every change is told at once,
also while nobody waits."""
NODE_CHANGE_READS, NODE_CHANGE_WRITES = 7, 4
"""Of one of them: the report and its parts are read and written, and a look at the nodes is noted."""
AGENT_SECONDS, AGENT_READS, AGENT_LOG_KB = 0.05, 5, 0.6
AGENT_WRITES = Choices().agent_idle_seconds / REWRITE_SECONDS
"""Of one of them: whose client it is, what was told last and what is in hand are read; what is new is written."""
POOL_PASSES = rates.HOURS * 3600 / SETTLED_SECONDS
PASS_SECONDS, PASS_READS, PASS_WRITES = 0.05, 9, 2
"""Of one of the passes over a pool that has its nodes, an invocation of its own: that it begins and how it ends is
written."""
SECRET_SECONDS, SECRET_READS, SECRET_WRITES = 0.4, 5, 0
"""Of one request of an agent that keeps a Secret with a kubeconfig: it waits for a session in the tenant's account. A
test counts the reads and writes."""
ACCESS_LOG_KB = 0.6
"""Of one request in CloudFront's access log."""


def counts(template: Mapping[str, Any]) -> Counter[str]:
    """Number of resources of each type in the template."""
    return Counter(resource["Type"] for resource in template["Resources"].values())


def alarm_metrics(template: Mapping[str, Any]) -> int:
    """Number of metrics that the alarms look at: each is paid for, also when one alarm looks at several."""
    alarms = (each for each in template["Resources"].values() if each["Type"] == "AWS::CloudWatch::Alarm")
    queries = (alarm.get("Properties", {}).get("Metrics", ()) for alarm in alarms)
    return sum(max(1, sum("MetricStat" in query for query in alarm)) for alarm in queries)


def traced(template: Mapping[str, Any]) -> set[str]:
    """Names of the functions whose runs are traced."""
    resources = template["Resources"].values()
    functions = (resource["Properties"] for resource in resources if resource["Type"] == "AWS::Lambda::Function")
    return {
        function["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]
        for function in functions
        if function.get("TracingConfig", {}).get("Mode") == "Active"
    }


def idle(template: Mapping[str, Any]) -> dict[str, float]:
    """USD a month of an unused stage, by item, without any free tier."""
    number = counts(template)
    memory = {spec.name: spec.memory / 1024 for spec in FUNCTIONS}
    runs = {name: MINUTES / minutes for name, (minutes, _) in SCHEDULES.items()}
    invocations = sum(runs.values())
    seconds = sum(runs[name] * RUNS[name].seconds * memory[name] for name in runs)
    logged = sum(runs[name] * RUNS[name].log_kb for name in runs) / 1e6
    return {
        "functions": invocations * rates.LAMBDA_REQUEST + seconds * rates.LAMBDA_ARM_GB_SECOND,
        "table": sum(
            runs[name] * (RUNS[name].reads * rates.DYNAMODB_READ + RUNS[name].writes * rates.DYNAMODB_WRITE)
            for name in runs
        )
        + STORED_GB * (rates.DYNAMODB_STORAGE_GB + rates.DYNAMODB_BACKUP_GB),
        "secrets": OWN_SECRETS * rates.SECRET + SECRET_READS * rates.SECRET_CALL,
        "key of secrets": rates.KMS_KEY,
        "alarms": alarm_metrics(template) * rates.ALARM,
        "dashboard": number["AWS::CloudWatch::Dashboard"] * rates.DASHBOARD,
        "metrics": IDLE_METRICS * rates.METRIC,
        "logs": logged * (rates.LOGS_GB + rates.LOGS_STORED_GB),
        "traces": sum(runs[name] for name in runs if name in traced(template)) * rates.TRACE,
        "assets": STORED_GB * rates.ASSET_STORED_GB,
    }


def idle_with_free_tier(template: Mapping[str, Any]) -> dict[str, float]:
    """As :func:`idle`, less the parts of the free tier that never end; an account that shares them pays more."""
    items = idle(template)
    number = counts(template)
    items["alarms"] = max(0, alarm_metrics(template) - rates.FREE_ALARMS) * rates.ALARM
    items["dashboard"] = max(0, number["AWS::CloudWatch::Dashboard"] - rates.FREE_DASHBOARDS) * rates.DASHBOARD
    items["metrics"] = max(0, IDLE_METRICS - rates.FREE_METRICS) * rates.METRIC
    full = rates.FREE_LAMBDA_GB_SECONDS * rates.LAMBDA_ARM_GB_SECOND + rates.FREE_LAMBDA_REQUESTS * rates.LAMBDA_REQUEST
    items["functions"] = max(0.0, items["functions"] - full)
    items["traces"] = max(0.0, items["traces"] - rates.FREE_TRACES * rates.TRACE)
    return items


def cluster() -> dict[str, float]:
    """USD that one cluster adds in Stockyard's own account in the month in which it is made and deleted."""
    memory = next(spec.memory for spec in FUNCTIONS if spec.name == "cluster_phases") / 1024
    return {
        "functions": CLUSTER_INVOCATIONS
        * (rates.LAMBDA_REQUEST + CLUSTER_SECONDS * memory * rates.LAMBDA_ARM_GB_SECOND),
        "workflow": CLUSTER_TRANSITIONS * rates.STEP_FUNCTIONS_TRANSITION,
        "table": CLUSTER_WRITES * 2 * rates.DYNAMODB_WRITE + CLUSTER_READS * rates.DYNAMODB_READ,
        "key of secrets": CLUSTER_KMS_CALLS * rates.KMS_CALL,
        "metrics": CLUSTER_METRIC_HOURS * rates.METRIC / rates.HOURS,
        "events": 40 * rates.EVENT,
        **agent(),
        "pool": pool(),
    }


def pool() -> float:
    """USD a month of the passes over a cluster's pool that has its nodes."""
    memory = next(spec.memory for spec in FUNCTIONS if spec.name == "autoscaler") / 1024
    duration = PASS_SECONDS * memory * rates.LAMBDA_ARM_GB_SECOND
    duration += rates.LAMBDA_REQUEST
    return POOL_PASSES * (duration + PASS_READS * rates.DYNAMODB_READ + PASS_WRITES * 2 * rates.DYNAMODB_WRITE)


def agent(requests: float = QUIET_REQUESTS) -> dict[str, float]:
    """USD a month of the posts of a cluster's agent: of a quiet cluster, or so many."""
    memory = next(spec.memory for spec in FUNCTIONS if spec.name == "machines") / 1024
    duration = AGENT_SECONDS * memory * rates.LAMBDA_ARM_GB_SECOND
    return {
        "agent: gateway": requests * rates.HTTP_API_REQUEST,
        "agent: functions": requests * (rates.LAMBDA_REQUEST + duration),
        "agent: table": requests * (AGENT_READS * rates.DYNAMODB_READ + AGENT_WRITES * rates.DYNAMODB_WRITE),
        "agent: logs": requests * AGENT_LOG_KB / 1e6 * (rates.LOGS_GB + rates.LOGS_STORED_GB),
        "agent: nodes that change": NODE_CHANGES
        * (
            rates.HTTP_API_REQUEST
            + rates.LAMBDA_REQUEST
            + duration
            + NODE_CHANGE_READS * rates.DYNAMODB_READ
            + NODE_CHANGE_WRITES * 2 * rates.DYNAMODB_WRITE
        ),
    }


def kept_secret() -> dict[str, float]:
    """USD a month of one Secret with a kubeconfig that an agent keeps fresh. Where nobody asks for one there is no such
    request, and an agent's posts read and write the same."""
    requests = rates.HOURS * 3600 / SECRET_REFRESH_SECONDS
    return {
        "gateway": requests * rates.HTTP_API_REQUEST,
        "functions": requests * node_cost.function_seconds("clusters", SECRET_SECONDS),
        "table": requests * (SECRET_READS * rates.DYNAMODB_READ + SECRET_WRITES * rates.DYNAMODB_WRITE),
        "logs": requests * AGENT_LOG_KB / 1e6 * (rates.LOGS_GB + rates.LOGS_STORED_GB),
        "traces": requests * rates.TRACE,
    }


def quiet_cluster() -> dict[str, float]:
    """USD a month of a cluster in which nothing changes, its agent and the passes over its pool."""
    items = agent()
    del items["agent: nodes that change"]
    return {**items, "pool": pool()}


def spot_cluster(*, tells: bool = True) -> dict[str, float]:
    """USD a month of the agent of a cluster with spot nodes. Machines on EC2 tell the cluster that they end, by which
    the agent comes; of others it comes often enough to hear of their end in time."""
    return agent(QUIET_REQUESTS + (0.0 if tells else node_cost.posts_of_spot()))


def fleet(template: Mapping[str, Any], tenants: int) -> dict[str, float]:
    """USD a month of a stage with ``FLEET_CLUSTERS`` and ``FLEET_NODES`` on demand in which nothing changes: each of
    the ``tenants`` has an equal part of them, in an account of its own."""
    clusters, nodes = FLEET_CLUSTERS // tenants, FLEET_NODES // tenants
    return {
        "idle stage": sum(idle(template).values()),
        "clusters": FLEET_CLUSTERS * sum(quiet_cluster().values()),
        "nodes": FLEET_NODES * sum(node_cost.node_month(quiet=True).values()),
        "turns of the sweep": node_cost.turns(tenants, clusters),
        "sweep of accounts": tenants * sum(node_cost.account_sweep(nodes, clusters, quiet=True).values()),
        "expiry of certificates": rates.METRIC,
    }


def moving(template: Mapping[str, Any], tenants: int) -> dict[str, float]:
    """As :func:`fleet`, where all nodes are replaced once a day."""
    cluster_usd, stage = sum(quiet_cluster().values()), sum(idle(template).values())
    return node_cost.moving_fleet(stage, cluster_usd, tenants, FLEET_CLUSTERS, FLEET_NODES)


def cloudfront(template: Mapping[str, Any]) -> dict[str, float]:
    """USD a month that CloudFront and its web ACL add to an unused stage; ``template`` is the edge stack's."""
    acls = [each["Properties"] for each in template["Resources"].values() if each["Type"] == "AWS::WAFv2::WebACL"]
    return {
        "web ACL": sum(rates.WAF_WEB_ACL + len(acl["Rules"]) * rates.WAF_RULE for acl in acls),
        "alarms": alarm_metrics(template) * rates.ALARM,
        "secret": rates.SECRET,
    }


def cloudfront_of_cluster() -> dict[str, float]:
    """USD a month that the requests of a quiet cluster's agent cost there, at list price."""
    return {
        "web ACL": QUIET_REQUESTS * rates.WAF_REQUEST,
        "requests": QUIET_REQUESTS * rates.CLOUDFRONT_REQUEST,
        "access log": QUIET_REQUESTS * ACCESS_LOG_KB / 1e6 * (rates.LOGS_GB + rates.LOGS_STORED_GB),
    }


def tenant() -> dict[str, float]:
    """USD a month in the tenant's account: one ``t3.medium`` control plane in a network of its own."""
    return {
        "control plane, t3.medium": rates.T3_MEDIUM_HOUR * rates.HOURS,
        "disks": (DISK_GIB + ETCD_VOLUME_GIB) * rates.GP3_GB,
        "daily snapshots, at most": ETCD_VOLUME_GIB * rates.EBS_SNAPSHOT_GB,
        "NAT gateway": rates.NAT_GATEWAY_HOUR * rates.HOURS,
        "network load balancer": rates.LOAD_BALANCER_HOUR * rates.HOURS,
        "public addresses": (zone_count({}) + 1) * rates.PUBLIC_IPV4_HOUR * rates.HOURS,
    }


def _table(title: str, items: Mapping[str, float]) -> list[str]:
    rows = [f"  {name:<28}{usd:>10.4f}" for name, usd in items.items()]
    return [title, *rows, f"  {'total':<28}{sum(items.values()):>10.4f}", ""]


def _tables_of_nodes(template: Mapping[str, Any]) -> list[str]:
    titles = {
        "One node, a month in a quiet tenant: Stockyard's account": node_cost.node_month(quiet=True),
        "One node, a month where something happens each hour": node_cost.node_month(quiet=False),
        "One node that comes and goes": node_cost.node_life(),
        "Metrics, where nodes come and go in each hour": node_cost.metrics_of_lives(),
        "One cluster with spot nodes, its agent": spot_cluster(),
        "One site where nothing is done": site_cost.idle_site(),
        "One Secret with a kubeconfig, where it is asked for": kept_secret(),
        "One cluster with spot nodes on EKS, its agent": spot_cluster(tells=False),
        "Sweep of an account of a quiet tenant, 10 nodes, 1 cluster": node_cost.account_sweep(10, 1, quiet=True),
        "Sweep of an account where something happens each hour": node_cost.account_sweep(10, 1, quiet=False),
        "One who waits, an hour": node_cost.follower_hour(),
        **{
            f"{FLEET_CLUSTERS} quiet clusters, {FLEET_NODES} nodes, {tenants} tenants with an account each": fleet(
                template, tenants
            )
            for tenants in FLEET_TENANTS
        },
        **{f"The same where each node lives a day, {n} tenants": moving(template, n) for n in FLEET_TENANTS},
        "A second and third member: the tenant's account": node_cost.tenant_members(),
        "One node beside its machine: the tenant's account": node_cost.tenant_node(),
    }
    return [line for title, items in titles.items() for line in _table(title, items)]


def main() -> int:
    """Prints table and figures. Returns 1 when the idle stage costs more than the goal, with the lasting free tier."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as edge_folder:
        out = synthesize(STAGE, Path(folder), bundled=False)
        template = json.loads((out / f"{Names(STAGE).service_stack}.template.json").read_text())
        out = synthesize(STAGE, Path(edge_folder), bundled=False, overrides=CLOUDFRONT)
        edge = json.loads((out / f"{Names(STAGE).edge_stack}.template.json").read_text())
    listed, paid = idle(template), idle_with_free_tier(template)
    lines = [f"USD a month, {rates.REGION}, rates of {rates.AS_OF} ({rates.SOURCE})", ""]
    lines += _table("Idle stage, list price", listed)
    lines += _table("Idle stage, with the free tier that never ends", paid)
    lines += _table("One cluster, made, kept a month, deleted: Stockyard's account", cluster())
    lines += _table("One cluster: the tenant's account", tenant())
    lines += _table("One cluster on EKS for inference, idle: the tenant's account", node_cost.tenant_on_eks())
    lines += _tables_of_nodes(template)
    lines += _table("With the setting cloudfront, on top of an idle stage", cloudfront(edge))
    lines += _table("With the setting cloudfront, on top of a cluster", cloudfront_of_cluster())
    over = site_cost.overlay_of_quiet_cluster(QUIET_REQUESTS)
    lines += _table("With an overlay, on top of a quiet cluster: Stockyard's account", over)
    lines += _table(
        "A quiet node of another network, three hubs: the tenant's account", site_cost.overlay_of_far_node()
    )
    sys.stdout.write("\n".join(lines) + "\n")
    figures = {
        "benchmark": "cost",
        "region": rates.REGION,
        "rates_as_of": rates.AS_OF,
        "idle_usd_month_list": round(sum(listed.values()), 4),
        "idle_usd_month": round(sum(paid.values()), 4),
        "goal_usd_month": GOAL,
        "node_usd_month": round(sum(node_cost.node_month(quiet=True).values()), 6),
        "node_life_usd": round(sum(node_cost.node_life().values()), 6),
        "spot_cluster_usd_month": round(sum(spot_cluster().values()), 4),
        "spot_eks_cluster_usd_month": round(sum(spot_cluster(tells=False).values()), 4),
        **{f"fleet_{tenants}_usd_month": round(sum(fleet(template, tenants).values()), 4) for tenants in FLEET_TENANTS},
        **{f"moving_{n}_usd_month": round(sum(moving(template, n).values()), 4) for n in FLEET_TENANTS},
        "fleet_goal_usd_month": FLEET_GOAL,
        "cluster_usd_month": round(sum(cluster().values()), 4),
        "idle_site_usd_month": round(sum(site_cost.idle_site().values()), 4),
        "idle_site_goal_usd_month": site_cost.SITE_GOAL,
        "kept_secret_usd_month": round(sum(kept_secret().values()), 4),
        "cloudfront_usd_month": round(sum(cloudfront(edge).values()), 4),
        "cloudfront_cluster_usd_month": round(sum(cloudfront_of_cluster().values()), 4),
        "cluster_tenant_usd_month": round(sum(tenant().values()), 4),
        "eks_cluster_tenant_usd_month": round(sum(node_cost.tenant_on_eks().values()), 4),
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    fleets = [sum(fleet(template, tenants).values()) for tenants in FLEET_TENANTS]
    is_within = sum(paid.values()) <= GOAL and max(fleets) <= FLEET_GOAL
    is_within = is_within and all(sum(moving(template, n).values()) <= MOVING_GOAL for n in FLEET_TENANTS)
    is_within = is_within and sum(site_cost.idle_site().values()) <= site_cost.SITE_GOAL
    return 0 if is_within else 1


if __name__ == "__main__":
    sys.exit(main())
