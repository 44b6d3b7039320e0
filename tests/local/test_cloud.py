"""The local cloud as a whole: what is in ``env``, a cluster's life, events of the tenant, and that nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local.aws import ACME_ACCOUNT, OWN_ACCOUNT, REGION
from local.cloud import ROOT, LocalCloud, StartError
from local.kube_store import Key
from local.machine_programs import MACHINE_CONFIG, cloud_init_files

EXAMPLE = json.loads((ROOT / "examples" / "aws-cluster.json").read_text())


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    with LocalCloud(home=tmp_path_factory.mktemp("local"), schedules=False) as found:
        yield found


def until(look: Callable[[], Any], seconds: float = 90) -> Any:
    """What ``look`` returns as soon as it is true."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while time.monotonic() < end:
        if found := look():
            return found
        pause.wait(0.1)
    raise AssertionError("it did not come about in time")


def ended(cloud: LocalCloud, operation: str) -> dict[str, Any]:
    def look() -> Any:
        found = cloud.call("GET", f"/v1/operations/{operation}")
        return found if found["status"] != "running" else None

    found: dict[str, Any] = until(look)
    return found


def left_in_the_tenants_account(cloud: LocalCloud) -> list[str]:
    ec2, iam, elb = (cloud.aws.client(name, cloud.environment) for name in ("ec2", "iam", "elbv2"))
    ours = [{"Name": "tag-key", "Values": ["stockyard:resource"]}]
    found = [vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]]
    found += [one["InternetGatewayId"] for one in ec2.describe_internet_gateways(Filters=ours)["InternetGateways"]]
    found += [one["AllocationId"] for one in ec2.describe_addresses()["Addresses"]]
    found += [one["NetworkInterfaceId"] for one in ec2.describe_network_interfaces()["NetworkInterfaces"]]
    found += [g["NatGatewayId"] for g in ec2.describe_nat_gateways()["NatGateways"] if g["State"] != "deleted"]
    found += [
        instance["InstanceId"]
        for group in ec2.describe_instances()["Reservations"]
        for instance in group["Instances"]
        if instance["State"]["Name"] != "terminated"
    ]
    found += [role["RoleName"] for role in iam.list_roles()["Roles"] if role["RoleName"].startswith("vantage-")]
    found += [profile["InstanceProfileName"] for profile in iam.list_instance_profiles()["InstanceProfiles"]]
    found += [one["LoadBalancerName"] for one in elb.describe_load_balancers()["LoadBalancers"]]
    return found + [one["TargetGroupName"] for one in elb.describe_target_groups()["TargetGroups"]]


def test_the_environment_file_is_private_and_its_values_work(cloud: LocalCloud) -> None:
    path = cloud.home / "env"
    assert path.stat().st_mode & 0o777 == 0o600
    values = dict(line.split("=", 1) for line in path.read_text().splitlines())
    assert set(values) == {
        *("STOCKYARD_URL", "STOCKYARD_TOKEN", "STOCKYARD_TOKEN_VIEWER", "STOCKYARD_TOKEN_OTHER"),
        *(
            "STOCKYARD_TOKEN_PLATFORM",
            "STOCKYARD_CLUSTER_TOKEN",
            "AWS_ENDPOINT_URL",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
        ),
        "AWS_DEFAULT_REGION",
    }
    assert cloud.aws.client("sts", values).get_caller_identity()["Account"] == ACME_ACCOUNT
    pairs = cloud.aws.client("ec2", values).describe_key_pairs()["KeyPairs"]
    assert [pair["KeyName"] for pair in pairs] == ["my-key"]
    account = cloud.call("GET", "/v1/cloud-accounts/1")
    assert account["verification"] == "verified"
    assert cloud.call("GET", "/v1/cloud-accounts", token=values["STOCKYARD_TOKEN_OTHER"])["items"] == []
    with pytest.raises(StartError, match=": 403 "):
        cloud.call("DELETE", "/v1/cloud-accounts/1", token=values["STOCKYARD_TOKEN_VIEWER"])
    with pytest.raises(StartError, match=": 401 "):
        cloud.call("GET", "/v1/cloud-accounts", token=values["STOCKYARD_CLUSTER_TOKEN"])


def test_a_cluster_comes_up_and_goes_without_a_trace(cloud: LocalCloud) -> None:
    cluster = cloud.call("POST", "/v1/clusters", {**EXAMPLE, "name": "life"})
    operation = ended(cloud, cluster["operation_id"])
    assert (operation["status"], operation["error"]) == ("succeeded", None)
    assert cloud.call("GET", f"/v1/clusters/{cluster['id']}")["status"] == "ready"
    ec2 = cloud.aws.client("ec2", cloud.environment)
    names = [{"Name": "tag:Name", "Values": [f"vantage-{cluster['client_id']}-control-plane"]}]
    (reservation,) = ec2.describe_instances(Filters=names)["Reservations"]
    machine = reservation["Instances"][0]["InstanceId"]
    given = ec2.describe_instance_attribute(InstanceId=machine, Attribute="userData")["UserData"]["Value"]
    assert json.loads(cloud_init_files(given)[MACHINE_CONFIG])["creator"] == "local-user"
    assert cluster["client_id"] in {client for client, _ in cloud.vdeployer.deployed}
    assert left_in_the_tenants_account(cloud)

    (agent,) = until(lambda: cloud.clusters.processes)
    a_machine_joins_and_goes(cloud, cluster["client_id"])
    gone = cloud.call("DELETE", f"/v1/clusters/{cluster['id']}")
    assert ended(cloud, gone["operation_id"] if "operation_id" in gone else gone["id"])["status"] == "succeeded"
    with pytest.raises(StartError, match=": 404 "):
        cloud.call("GET", f"/v1/clusters/{cluster['id']}")
    assert left_in_the_tenants_account(cloud) == []
    until(lambda: cloud.clusters.processes == [])
    with pytest.raises(ProcessLookupError):
        os.kill(agent, 0)


def a_machine_joins_and_goes(cloud: LocalCloud, client_id: str) -> None:
    """A claim's instance joins by its own program; off it is silent; given back, its node is deleted by the agent."""
    (balancer,) = cloud.aws.client("elbv2", cloud.environment).describe_load_balancers()["LoadBalancers"]
    nodes = cloud.clusters.at(f"{balancer['DNSName']}:6443").api

    def node() -> Any:
        with nodes.held() as store:
            return store.objects.get(Key("", "nodes", "", "joins"))

    def is_ready(status: str) -> Callable[[], bool]:
        return lambda: node()["status"]["conditions"][0]["status"] == status

    block = {"cloudAccount": 1, "instanceTypes": ["t3.medium"]}
    cloud.call("POST", "/v1/node-providers", {"name": "aws", "kind": "ec2", "spec": block})
    wish = {"name": "joins", "cluster": "life", "provider": "aws"}
    claim = cloud.call("POST", "/v1/node-claims", wish)
    assert ended(cloud, claim["operation_id"])["status"] == "succeeded"
    machine = cloud.call("GET", f"/v1/node-claims/{claim['id']}")["machine_id"]
    assert node()["spec"]["providerID"].endswith(f"/{machine}")
    assert node()["metadata"]["labels"]["stockyard.dev/claim"] == claim["id"]
    assert node()["status"]["capacity"] == {"cpu": "2", "memory": "4096Mi", "pods": "110"}
    ec2 = cloud.aws.client("ec2", cloud.environment)
    ec2.stop_instances(InstanceIds=[machine])
    until(is_ready("Unknown"))
    ec2.start_instances(InstanceIds=[machine])
    until(is_ready("True"))
    gone = cloud.call("DELETE", f"/v1/node-claims/{claim['id']}")
    assert ended(cloud, gone["id"])["status"] == "succeeded"
    assert node() is None


def test_an_event_of_the_tenants_account_asks_for_a_cluster(cloud: LocalCloud) -> None:
    events = cloud.aws.client("events", cloud.environment)
    entry = {
        "EventBusName": f"arn:aws:events:{REGION}:{OWN_ACCOUNT}:event-bus/stockyard-dev",
        "Source": "stockyard.request",
        "DetailType": "CreateCluster",
        "Detail": json.dumps({"body": {**EXAMPLE, "name": "evented"}}),
    }
    assert events.put_events(Entries=[entry])["FailedEntryCount"] == 0

    def look() -> Any:
        return [item for item in cloud.call("GET", "/v1/clusters")["items"] if item["name"] == "evented"]

    cluster = until(look)[0]
    assert ended(cloud, cluster["operation_id"])["status"] == "succeeded"


def processes_below(parent: int) -> list[int]:
    """Children of a process, by the process table of Linux; elsewhere by ``ps``."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return [pid for pid, owner in pairs if owner == parent]


def test_a_home_has_one_local_cloud(cloud: LocalCloud) -> None:
    with pytest.raises(StartError, match=r"runs in .* already"):
        LocalCloud(home=cloud.home, schedules=False).__enter__()
    assert (cloud.home / "env").exists(), "the one that runs keeps its file"


def test_a_home_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot be used: Not a directory"):
        LocalCloud(home=tmp_path / "file" / "home", schedules=False).__enter__()


def test_sigint_ends_everything(tmp_path: Path) -> None:
    path = os.pathsep.join(map(str, (ROOT, ROOT / "layers" / "common" / "python")))
    process = subprocess.Popen(
        [sys.executable, "-m", "local", "serve", "--home", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: (tmp_path / "env").exists() or process.poll() is not None)
        children = processes_below(process.pid)
        assert children
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()
    assert not (tmp_path / "env").exists()
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
