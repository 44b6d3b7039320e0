"""A fault plan is read with clear errors, and the local cloud follows it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from local import fault_plan
from local.cloud import ROOT, LocalCloud
from local.fault_plan import FaultPlan, PlanError
from local.testing.example import body_without_nodes

EXAMPLE = body_without_nodes()


def test_a_plan_may_be_empty() -> None:
    assert fault_plan.FaultPlan() == FaultPlan.model_validate({})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "is not JSON: line 1, column 2"),
        ("[]", "the plan: must be an object"),
        ('{"throtled": {}}', "throtled: unknown field"),
        ('{"throttled": {"CreateVpc": 1}}', "throttled.CreateVpc"),
        ('{"capacity": {"t3.large": -1}}', "capacity.t3.large"),
        ('{"machines": {"silent": "many"}}', "machines.silent"),
        ('{"machines": {"boot_seconds": [2, 1]}}', "the shortest comes first"),
        ('{"blocks": [{"id": "block", "instance_type": "p5.48xlarge", "zone": "us-east-1a"}]}', "blocks.0.id"),
        ('{"managed": 0}', "managed"),
        ('{"account": {"linked_roles": ["ecs.amazonaws.com"]}}', "account.linked_roles.0"),
        ('{"account": {"template": 99}}', "account.template"),
        ('{"insights": [{"name": "a", "status": "BAD"}]}', "insights.0.status"),
        ('{"cudo": {"failing": {"create_vm": 1}}}', "cudo.failing.create_vm"),
        ('{"cudo": {"free_vcpus": {"intel-broadwell/us-dallas-1": -1}}}', "cudo.free_vcpus"),
    ],
)
def test_the_error_of_a_bad_plan_names_the_part(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(PlanError, match=named):
        fault_plan.read(path)
    with pytest.raises(PlanError, match="cannot be read: no such file"):
        fault_plan.read(tmp_path / "missing.json")


def test_zones_are_followed_while_the_plan_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_plan, "LOOK_SECONDS", 0.001)
    path, calls = tmp_path / "plan.json", list[list[str]]()
    heard, stop = threading.Event(), threading.Event()

    def take_away(zones: Any) -> None:
        calls.append(list(zones))
        heard.set()

    follower = threading.Thread(target=fault_plan.follow_zones, args=(path, take_away, stop))
    follower.start()
    try:
        for text in ('{"zones_down": ["us-east-1b"]}', "{", "{}"):
            heard.clear()
            path.write_text(text)
            assert heard.wait(0.05 if text == "{" else 10) is (text != "{"), "what cannot be read changes nothing"
    finally:
        stop.set()
        follower.join(10)
    assert calls == [["us-east-1b"], []]


def wait_for_end(cloud: LocalCloud, operation: str) -> dict[str, Any]:
    """Waits until the operation has ended, and returns it."""
    pause = threading.Event()
    for _ in range(1200):
        document: dict[str, Any] = cloud.call("GET", f"/v1/operations/{operation}")
        if document["status"] != "running":
            return document
        pause.wait(0.1)
    raise AssertionError("it did not end in time")


def test_the_cluster_of_the_example_plan_fails_for_want_of_capacity(tmp_path: Path) -> None:
    """Calls that are throttled are tried again, the reason is told, and its deletion leaves nothing."""
    plan = fault_plan.read(ROOT / "examples" / "faults.json")
    assert (dict(plan.throttled), dict(plan.capacity)) == ({"ec2:CreateVpc": 3, "iam:CreateRole": 3}, {"t3.xlarge": 0})
    with LocalCloud(home=tmp_path, schedules=False, plan=plan) as cloud:
        cluster = cloud.call("POST", "/v1/clusters", EXAMPLE)
        operation = wait_for_end(cloud, cluster["operation_id"])
        assert operation["status"] == "failed"
        error = operation["error"]
        assert (error["error_type"], error["phase"]) == ("ClusterCouldNotBeDeployed", "control_plane")
        assert "capacity" in error["cause"]
        assert "instance type" in error["hint"]
        states = {phase["name"]: phase["state"] for phase in operation["phases"]}
        assert (states["network"], states["identity"], states["control_plane"]) == ("succeeded", "succeeded", "failed")
        deletion = cloud.call("DELETE", f"/v1/clusters/{cluster['id']}")
        assert wait_for_end(cloud, deletion["id"])["status"] == "succeeded"
        ec2 = cloud.aws.client("ec2", cloud.environment)
        assert [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]] == []
