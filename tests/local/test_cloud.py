"""The local cloud as a whole: the ``env`` file, a cluster's life, events of the tenant, and a clean end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from local.aws.accounts import ACME_ACCOUNT, OWN_ACCOUNT, REGION
from local.cloud import ROOT, LocalCloud
from local.home import StartError
from local.kubernetes.simulated import SimulatedCluster
from local.kubernetes.store import Key
from local.machines.programs import MACHINE_CONFIG, cloud_init_files
from local.opentofu.real.build import TOFU
from local.testing.example import body_without_nodes
from local.warden import started_at
from stockyard.errors import PermissionDenied
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.runs.names import project_name
from stockyard.providers.clouds.aws.runs.runner import CodeBuildRunner
from stockyard.providers.clouds.aws.sessions import Sessions
from tests.harness.runs.accounts import account, runner_account
from tests.harness.runs.worlds import start, zipped

EXAMPLE = body_without_nodes()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """Serve a cloud whose home is given as somebody types it, from where the person stands: machines are started
    elsewhere."""
    home = Path(os.path.relpath(tmp_path_factory.mktemp("local")))
    with LocalCloud(home=home, schedules=False) as local_cloud:
        yield local_cloud


def wait_until(look: Callable[[], Any], seconds: float = 90) -> Any:
    """Repeats ``look`` until its result is true, and returns the result."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while time.monotonic() < end:
        if value := look():
            return value
        pause.wait(0.1)
    raise AssertionError("the condition did not become true in time")


def ended_operation(cloud: LocalCloud, operation: str) -> dict[str, Any]:
    def look() -> Any:
        operation_view = cloud.call("GET", f"/v1/operations/{operation}")
        return operation_view if operation_view["status"] != "running" else None

    operation_at_end: dict[str, Any] = wait_until(look)
    return operation_at_end


def leftovers_in_the_tenants_account(cloud: LocalCloud) -> list[str]:
    ec2, iam, elb = (cloud.aws.client(name, cloud.environment) for name in ("ec2", "iam", "elbv2"))
    our_tags = [{"Name": "tag-key", "Values": ["stockyard:resource"]}]
    names = [vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]]
    names += [
        gateway["InternetGatewayId"] for gateway in ec2.describe_internet_gateways(Filters=our_tags)["InternetGateways"]
    ]
    names += [address["AllocationId"] for address in ec2.describe_addresses()["Addresses"]]
    names += [interface["NetworkInterfaceId"] for interface in ec2.describe_network_interfaces()["NetworkInterfaces"]]
    names += [g["NatGatewayId"] for g in ec2.describe_nat_gateways()["NatGateways"] if g["State"] != "deleted"]
    names += [
        instance["InstanceId"]
        for group in ec2.describe_instances()["Reservations"]
        for instance in group["Instances"]
        if instance["State"]["Name"] != "terminated"
    ]
    names += [role["RoleName"] for role in iam.list_roles()["Roles"] if role["RoleName"].endswith("-role")]
    names += [profile["InstanceProfileName"] for profile in iam.list_instance_profiles()["InstanceProfiles"]]
    names += [balancer["LoadBalancerName"] for balancer in elb.describe_load_balancers()["LoadBalancers"]]
    return names + [target_group["TargetGroupName"] for target_group in elb.describe_target_groups()["TargetGroups"]]


def test_the_environment_file_is_private_and_its_values_work(cloud: LocalCloud) -> None:
    path = cloud.home / "env"
    assert path.stat().st_mode & 0o777 == 0o600
    values = dict(line.split("=", 1) for line in path.read_text().splitlines())
    assert set(values) == {
        *("STOCKYARD_URL", "STOCKYARD_TOKEN", "STOCKYARD_TOKEN_VIEWER", "STOCKYARD_TOKEN_OTHER"),
        *(
            "STOCKYARD_TOKEN_OPERATOR",
            "STOCKYARD_TOKEN_PLATFORM",
            "STOCKYARD_TOKEN_ID",
            "AWS_ENDPOINT_URL",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
        ),
        *("AWS_DEFAULT_REGION", "CUDO_URL", "CUDO_PROJECT_ID", "CUDO_API_KEY"),
        *("VAULT_ADDRESS", "VAULT_ROLE_ID", "VAULT_SECRET_ID", "NO_PROXY"),
        *("BCM_ENDPOINT", "BCM_FINGERPRINT", "BCM_CLIENT_CERTIFICATE", "BCM_CLIENT_KEY"),
    }
    assert cloud.aws.client("sts", values).get_caller_identity()["Account"] == ACME_ACCOUNT
    pairs = cloud.aws.client("ec2", values).describe_key_pairs()["KeyPairs"]
    assert [pair["KeyName"] for pair in pairs] == ["my-key"]
    attributes = {"project_id": values["CUDO_PROJECT_ID"], "api_key": values["CUDO_API_KEY"]}
    second = {"provider": "cudo", "name": "gpus", "attributes": {**attributes, "data_center_id": "us-dallas-1"}}
    number = cloud.call("POST", "/v1/cloud-accounts", second)["id"]
    assert cloud.call("POST", f"/v1/cloud-accounts/{number}/verify")["verification"] == "verified"
    assert cloud.cudo.cudo.outside == []
    account = cloud.call("GET", "/v1/cloud-accounts/1")
    assert account["verification"] == "verified"
    assert cloud.call("GET", "/v1/cloud-accounts", token=values["STOCKYARD_TOKEN_OTHER"])["items"] == []
    for name in ("VIEWER", "OPERATOR"):
        with pytest.raises(StartError, match=": 403 "):
            cloud.call("DELETE", "/v1/cloud-accounts/1", token=values[f"STOCKYARD_TOKEN_{name}"])
    content = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
    pack = {"layer": "addon", "name": "a", "tag": "1", "manifests": [{"name": "a", "content": content}]}
    document = {"name": "site", "version": "1.0.0", "cloud": "any", "packs": [pack]}
    plan = cloud.call("POST", "/v1/cluster-profiles?dry_run=true", document, values["STOCKYARD_TOKEN_OPERATOR"])
    assert "site 1.0.0" in json.dumps(plan)
    with pytest.raises(StartError, match=": 401 "):
        cloud.call("GET", "/v1/cloud-accounts", token=values["STOCKYARD_TOKEN_ID"])


def test_a_cluster_is_created_and_deleted_without_leftovers(cloud: LocalCloud) -> None:
    cluster = cloud.call("POST", "/v1/clusters", {**EXAMPLE, "name": "life"})
    operation = ended_operation(cloud, cluster["operation_id"])
    assert (operation["status"], operation["error"]) == ("succeeded", None)
    assert cloud.call("GET", f"/v1/clusters/{cluster['id']}")["status"] == "ready"
    ec2 = cloud.aws.client("ec2", cloud.environment)
    names = [{"Name": "tag:Name", "Values": [f"vantage-{cluster['client_id']}-control-plane"]}]
    (reservation,) = ec2.describe_instances(Filters=names)["Reservations"]
    machine = reservation["Instances"][0]["InstanceId"]
    user_data = ec2.describe_instance_attribute(InstanceId=machine, Attribute="userData")["UserData"]["Value"]
    assert json.loads(cloud_init_files(user_data)[MACHINE_CONFIG])["creator"] == "local-user"
    assert cluster["client_id"] in {client for client, _ in cloud.vdeployer.deployed}
    assert leftovers_in_the_tenants_account(cloud)

    (agent,) = wait_until(lambda: cloud.clusters.processes)
    check_life_of_a_node(cloud, cluster["client_id"])
    deletion = cloud.call("DELETE", f"/v1/clusters/{cluster['id']}")
    assert (
        ended_operation(cloud, deletion["operation_id"] if "operation_id" in deletion else deletion["id"])["status"]
        == "succeeded"
    )
    with pytest.raises(StartError, match=": 404 "):
        cloud.call("GET", f"/v1/clusters/{cluster['id']}")
    assert leftovers_in_the_tenants_account(cloud) == []
    wait_until(lambda: cloud.clusters.processes == [])
    with pytest.raises(ProcessLookupError):
        os.kill(agent, 0)


def check_life_of_a_node(cloud: LocalCloud, client_id: str) -> None:
    """A claim's instance joins by its own program, is not ready while stopped, and its node is deleted by the agent."""
    (balancer,) = cloud.aws.client("elbv2", cloud.environment).describe_load_balancers()["LoadBalancers"]
    simulated = cloud.clusters.at(f"{balancer['DNSName']}:6443")
    assert isinstance(simulated, SimulatedCluster)
    nodes = simulated.api

    def node() -> Any:
        with nodes.locked_store() as store:
            return store.objects.get(Key("", "nodes", "", "joins"))

    def is_ready(status: str) -> Callable[[], bool]:
        return lambda: node()["status"]["conditions"][0]["status"] == status

    block = {"cloudAccount": 1, "instanceTypes": ["t3.medium"]}
    cloud.call("POST", "/v1/node-providers", {"name": "aws", "kind": "ec2", "spec": block})
    wish = {"name": "joins", "cluster": "life", "provider": "aws"}
    claim = cloud.call("POST", "/v1/node-claims", wish)
    assert ended_operation(cloud, claim["operation_id"])["status"] == "succeeded"
    machine = cloud.call("GET", f"/v1/node-claims/{claim['id']}")["machine_id"]
    assert node()["spec"]["providerID"].endswith(f"/{machine}")
    assert node()["metadata"]["labels"]["stockyard.dev/claim"] == claim["id"]
    assert node()["status"]["capacity"] == {"cpu": "2", "memory": "4096Mi", "pods": "17"}
    ec2 = cloud.aws.client("ec2", cloud.environment)
    ec2.stop_instances(InstanceIds=[machine])
    wait_until(is_ready("Unknown"))
    ec2.start_instances(InstanceIds=[machine])
    wait_until(is_ready("True"))
    deletion = cloud.call("DELETE", f"/v1/node-claims/{claim['id']}")
    assert ended_operation(cloud, deletion["id"])["status"] == "succeeded"
    assert node() is None


def test_an_event_of_the_tenants_account_creates_a_cluster(cloud: LocalCloud) -> None:
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

    cluster = wait_until(look)[0]
    assert ended_operation(cloud, cluster["operation_id"])["status"] == "succeeded"


def processes_below(parent: int) -> dict[int, str]:
    """Processes that a process and its children have started, with the command lines, from ``ps``."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    fields = [line.split(None, 2) for line in listed.stdout.splitlines()]
    rows = [(int(pid), int(owner), command) for pid, owner, command in fields]
    below: dict[int, str] = {}
    owners = {parent}
    while owners:
        children = {pid: command for pid, owner, command in rows if owner in owners}
        below |= children
        owners = set(children)
    return below


def test_a_home_has_one_local_cloud(cloud: LocalCloud) -> None:
    with pytest.raises(StartError, match=r"runs in .* already"):
        LocalCloud(home=cloud.home, schedules=False).__enter__()
    assert (cloud.home / "env").exists(), "the one that runs keeps its file"


def test_an_impossible_home_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot be used: not a directory"):
        LocalCloud(home=tmp_path / "file" / "home", schedules=False).__enter__()


@contextmanager
def running(home: Path, command: str) -> Iterator[subprocess.Popen[str]]:
    """The local cloud in a process of its own."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "layers" / "common" / "python")))
    process = subprocess.Popen(
        [sys.executable, "-m", "local", command, "--home", str(home)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: (home / "env").exists() or process.poll() is not None)
        yield process
    finally:
        process.kill()
        process.communicate()


def alive(children: Iterable[int]) -> list[int]:
    """The processes that still run."""
    return [child for child in children if started_at(child) is not None]


def test_a_kill_ends_every_process_the_next_start_removes_files_and_an_interrupt_ends_it(tmp_path: Path) -> None:
    def agents() -> list[str]:
        return [command for command in processes_below(process.pid).values() if "stockyard_agent" in command]

    with running(tmp_path, "run") as process:
        wait_until(agents)
        children = processes_below(process.pid)
        assert len(children) > 3
        process.kill()
        wait_until(lambda: alive(children) == [], seconds=10)
    assert (tmp_path / "env").exists()
    assert list((tmp_path / "machines").iterdir())
    (tmp_path / "env").unlink()
    check_sigint_ends_every_process(tmp_path)


def check_sigint_ends_every_process(home: Path) -> None:
    """A start that finds nothing of the one before, and is ended by Ctrl-C."""
    with running(home, "serve") as process:
        assert list((home / "machines").glob("*")) == []
        children = processes_below(process.pid)
        assert children
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert {path.name for path in home.iterdir() if path.suffix != ".jsonl"} == {"lock", "logs"}
    assert alive(children) == []


def test_build_of_the_tenants_account_has_opentofu_and_the_rights_of_the_templates(
    cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = cloud.aws.keys(OWN_ACCOUNT)
    for name, value in {**keys, "AWS_ENDPOINT_URL": cloud.aws.url, "AWS_DEFAULT_REGION": REGION}.items():
        monkeypatch.setenv(name, value)
    view = cloud.call("POST", "/v1/cloud-accounts/1/verify")
    assert view["verification_message"].endswith(" Programs of node providers can run in us-east-1.")
    own = account("1", ACME_ACCOUNT, view["attributes"]["role_arn"].rpartition("/")[2])
    here = runner_account("acme", replace(own, external_id=view["external_id"]), REGION)
    sessions = Sessions(boto3.Session)
    runner = CodeBuildRunner(sessions, "vantage")
    program = zipped("import os, subprocess; subprocess.run([os.environ['STOCKYARD_TOFU'], 'version'], check=True)")
    build = runner.start(here, start("run_local", program=program))
    assert runner.start(here, start("run_local", program=program)) == build
    wait_until(lambda: runner.state(here, build).phase == "ended")
    lines = "\n".join(runner.log(here, build))
    assert "run make tofu" in lines if TOFU.missing() else f"OpenTofu v{TOFU.release}" in lines
    waiting = runner.start(here, start("run_local_2", "wait"))
    if not TOFU.missing():
        assert wait_until(lambda: runner.state(here, waiting).phase == "running")
    runner.stop(here, waiting)
    assert runner.state(here, waiting).reason
    # a session that is not narrowed may not start a build by another role either
    calls = Calls(sessions.of(here.account, "op_1", "acme"), REGION)
    project = {"projectName": project_name(here.account, "vantage")}
    with pytest.raises(PermissionDenied, match="codebuild:StartBuild"):
        calls.call("codebuild", "start_build", **project, serviceRoleOverride="arn:aws:iam::222222222222:role/other")
