"""A spot machine that is taken back, in the local cloud: from its own metadata to the end of its claim."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.fault_plan import FaultPlan
from local.home import StartError
from local.kubernetes.simulated import SimulatedCluster
from local.kubernetes.store import Key
from tests.local.test_cloud import EXAMPLE, ended_operation, wait_until

WARNING = 40.0
"""Seconds, of real time: what waits in workflows is shorter here, agents are not."""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    plan = FaultPlan.model_validate(
        {"machines": {"interrupted": 1, "maintained": 1, "interrupted_after": 6, "warning_seconds": WARNING}}
    )
    home: Path = tmp_path_factory.mktemp("local")
    with LocalCloud(home=home, schedules=False, plan=plan) as local_cloud:
        yield local_cloud


def test_a_warning_leads_to_a_drained_node_and_an_ended_claim(cloud: LocalCloud, record_property: Any) -> None:
    cluster = cloud.call("POST", "/v1/clusters", {**EXAMPLE, "name": "spots"})
    assert ended_operation(cloud, cluster["operation_id"])["status"] == "succeeded"
    (balancer,) = cloud.aws.client("elbv2", cloud.environment).describe_load_balancers()["LoadBalancers"]
    simulated = cloud.clusters.at(f"{balancer['DNSName']}:6443")
    assert isinstance(simulated, SimulatedCluster)
    nodes = simulated.api
    block = {"cloudAccount": 1, "instanceTypes": ["t3.medium"], "capacityTypes": ["spot"]}
    cloud.call("POST", "/v1/node-providers", {"name": "aws", "kind": "ec2", "spec": block})
    spot = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
    pool = {"name": "fixed", "quantity": 1, "provider": "aws", "requirements": [spot]}
    cloud.call("POST", f"/v1/clusters/{cluster['id']}/pools", pool)

    def claims_of_pool() -> Any:
        claims = cloud.call("GET", f"/v1/node-claims?cluster={cluster['id']}&page_size=100")["items"]
        return sorted(claims, key=lambda claim: str(claim["created_at"]))

    claim = wait_until(claims_of_pool)[0]
    path = f"/v1/node-claims/{claim['id']}"

    def interrupted() -> Any:
        shown_claim = cloud.call("GET", path)
        return shown_claim if shown_claim["ends_at"] else None

    def is_gone() -> bool:
        try:
            cloud.call("GET", path)
        except StartError as error:
            return ": 404 " in str(error)
        return False

    started = time.monotonic()
    warned = wait_until(interrupted)
    ends_at = datetime.fromisoformat(warned["ends_at"])
    told_seconds = WARNING - (ends_at - datetime.now(UTC)).total_seconds()
    assert told_seconds < 5, "the warning is on the claim within seconds"
    assert (warned["deleting"], warned["reason"]) == (True, "SpotInterruption")
    machine = warned["machine_id"]
    replacement = wait_until(lambda: claims_of_pool()[1:])[0]
    asked_seconds = WARNING - (ends_at - datetime.fromisoformat(replacement["created_at"])).total_seconds()
    assert asked_seconds < 5, "the next node is asked for within seconds"
    wait_until(is_gone)
    assert datetime.now(UTC) < ends_at, "the claim has ended before the machine's cloud would end it"
    with nodes.locked_store() as store:
        assert Key("", "nodes", "", claim["name"]) not in store.objects
    ec2 = cloud.aws.client("ec2", cloud.environment)
    (reservation,) = ec2.describe_instances(InstanceIds=[machine])["Reservations"]
    assert reservation["Instances"][0]["State"]["Name"] in ("shutting-down", "terminated")
    events = cloud.call("GET", f"/v1/events?subject={claim['id']}&page_size=100")["items"]
    reasons = [event["reason"] for event in events]
    assert reasons.count("SpotInterruption") == 1
    order = ["SpotInterruption", "DeletionRequested", "Draining", "Drained", "Deleted"]
    assert reasons[reasons.index("SpotInterruption") :] == order
    actions = [record["action"] for record in cloud.call("GET", f"/v1/audit?subject={claim['id']}")["items"]]
    assert actions.count("ReportInterruption") == 1
    figure = {
        "told_seconds": round(told_seconds, 1),
        "replacement_asked_seconds": round(asked_seconds, 1),
        "ended_seconds": round(time.monotonic() - started, 1),
    }
    record_property("figure:interruption", figure)


def test_scheduled_maintenance_leads_to_another_node(cloud: LocalCloud) -> None:
    """The machine is on demand, in the cluster of the test before."""
    (cluster,) = cloud.call("GET", "/v1/clusters")["items"]
    block = {"cloudAccount": 1, "instanceTypes": ["t3.medium"]}
    cloud.call("POST", "/v1/node-providers", {"name": "lasting", "kind": "ec2", "spec": block})
    pool = {"name": "lasting", "quantity": 1, "provider": "lasting"}
    cloud.call("POST", f"/v1/clusters/{cluster['id']}/pools", pool)

    def claims_of_pool() -> Any:
        claims = cloud.call("GET", f"/v1/node-claims?cluster={cluster['id']}&page_size=100")["items"]
        return sorted(
            (c for c in claims if c["name"].startswith("lasting")), key=lambda claim: str(claim["created_at"])
        )

    def warned() -> Any:
        conditions = cloud.call("GET", f"/v1/node-claims/{claim['id']}")["conditions"]
        return next((part for part in conditions if part["type"] == "Interrupted"), None)

    claim = wait_until(claims_of_pool)[0]
    condition = wait_until(warned, 240)  # its machine has to come up before, beside whatever else runs
    assert (condition["status"], condition["reason"]) == ("True", "ScheduledMaintenance")
    wait_until(lambda: claims_of_pool()[1:])
