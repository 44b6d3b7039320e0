"""A control plane that takes pods: a pod that fits on its member brings no machine, by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from local.aws.accounts import ACME_ACCOUNT
from local.testing.example import body_without_nodes
from tests.harness.stories.pools import PODS, administrator, pod

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(600)
SECONDS = 120


def test_a_pod_that_fits_on_the_member_brings_no_machine(
    served: Served, soaking: bool, remove: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    if not soaking:
        pytest.skip("it makes a cluster of its own: the soak tells it")
    body = body_without_nodes()
    body = {**body, "name": "roomy", "settings": {**body["settings"], "control_plane_workloads": True}}
    request = tmp_path / "roomy.json"
    request.write_text(json.dumps(body), encoding="utf-8")

    def stockyard(*arguments: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "stockyard_client", *arguments, "-o", "json"],
            env={**os.environ, **served.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    stockyard("cluster", "create", "-f", str(request), "--wait")
    cluster = stockyard("cluster", "get", "roomy")
    kube = administrator(served, cluster, tmp_path)
    machines = running(served, cluster)
    kube.call("POST", PODS, pod("small-1", {}, "500m"))
    until(lambda: node_of(kube, "small-1"))
    assert node_of(kube, "small-1").startswith("ip-")
    # A t3.xlarge has 4 cores: what does not fit beside it waits for a machine of the group.
    kube.call("POST", PODS, pod("large-1", {}, "3900m"))
    until(lambda: node_of(kube, "large-1"))
    assert node_of(kube, "large-1").startswith("workers-")
    assert len(running(served, cluster)) == len(machines) + 1
    # Nobody needs the machine when only the small pod is left: disruption names the member as what stays.
    kube.call("DELETE", f"{PODS}/large-1")
    until(lambda: rows(stockyard))
    (member,) = [row for row in rows(stockyard) if row["name"] == node_of(kube, "small-1")]
    assert (member["leaves"], member["why"]) == (False, "it is a member of the control plane")
    assert remove(cluster["id"])["status"] == "succeeded"


def rows(stockyard: Callable[..., Any]) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = stockyard("disruption", "preview", "roomy")["nodes"]
    return listed


def node_of(kube: Any, name: str) -> str:
    return str(kube.call("GET", f"{PODS}/{name}")["spec"].get("nodeName") or "")


def running(served: Served, cluster: dict[str, Any]) -> list[str]:
    marks = [
        {"Name": "tag:vantage-cluster", "Values": [cluster["client_id"]]},
        {"Name": "instance-state-name", "Values": ["running"]},
    ]
    reservations = served.aws("ec2", ACME_ACCOUNT).describe_instances(Filters=marks)["Reservations"]
    return [instance["InstanceId"] for group in reservations for instance in group["Instances"]]


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.5)
