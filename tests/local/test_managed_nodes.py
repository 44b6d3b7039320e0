"""Clusters of EKS in the local cloud: an API that takes their tokens, and nodes that come and go with instances."""

from __future__ import annotations

import json
import logging
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.core.base_backend import BackendDict
from moto.ec2.models import ec2_backends
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
from moto.sts.models import sts_backends

from local.aws.corrections.compute.capacity_reservations import capacity_reservations
from local.aws.corrections.eks.access import PODS
from local.aws.corrections.eks.eks import eks_service
from local.aws.corrections.eks.tables import POLICY_ARN
from local.aws.corrections.eks.things import played_control_planes
from local.aws.presigned import presigned_requests
from local.fault_plan import MachinePlan
from local.kubernetes.cluster import HOPS
from local.kubernetes.clusters import Clusters
from local.kubernetes.managed import GPU, ManagedClusters, pod_keys
from local.machines.instances import TAG, Machines
from stockyard.errors import CredentialsRevoked, PermissionDenied
from stockyard.providers.clouds.aws.cluster_tokens import presign
from stockyard.providers.kubernetes.client import KubernetesApi
from tests.harness.worlds.eks_setting import KEYS, REGION, ZONES, Setting, Time

ACCOUNT = "123456789012"
PLUGIN = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "nvidia-device-plugin-daemonset", "namespace": "kube-system"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "p", "image": "nvcr.io/nvidia/k8s-device-plugin:v0.19.3"}]},
        },
    },
}


class World(Setting):
    """The account with its machines switched on."""

    clients: list[KubernetesApi]
    log: Path
    """What machines say."""
    played: Machines

    def api(self, role: str) -> KubernetesApi:
        """The cluster's API for a session of a role."""
        session = self.client("sts").assume_role(RoleArn=role, RoleSessionName="ann", DurationSeconds=900)
        cluster, keys = self.look(), session["Credentials"]
        api = KubernetesApi(
            cluster["endpoint"],
            cluster["certificateAuthority"]["data"],
            lambda: presign(keys, "demo", REGION, datetime.now(UTC)),
        )
        self.clients.append(api)
        return api

    def nodes(self, api: KubernetesApi) -> list[Any]:
        return list(api.list("v1", "Node"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    make: Any = boto3.client
    with ExitStack() as stack:
        BackendDict.reset()
        stack.callback(BackendDict.reset)
        for correction in (capacity_reservations, eks_service, presigned_requests):
            stack.enter_context(correction())
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        stack.callback(server.stop)
        url = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        clusters = Clusters(tmp_path / "agents.log")
        stack.callback(clusters.close)
        clusters.start()
        managed = ManagedClusters(clusters, tmp_path / "managed", tmp_path / "agents.log", url)
        stack.enter_context(played_control_planes(managed))
        plan = MachinePlan(boot_seconds=(0, 0))
        machines = Machines((ACCOUNT,), tmp_path / "machines.log", tmp_path / "machines", clusters, plan, managed)
        stack.callback(machines.close)
        machines.start()
        world = World(lambda service: make(service, endpoint_url=url, **KEYS), Time())
        world.clients, world.log, world.played = [], tmp_path / "machines.log", machines
        yield world
        for client in world.clients:
            client.close()


def until(holds: Callable[[], Any], seconds: float = 15.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := holds():
            return value
        time.sleep(0.05)
    raise AssertionError("it does not happen")


def configured(world: World, role: str, spec: dict[str, Any] | None = None) -> Any:
    """A machine outside of node groups: its user data is a NodeConfig, its profile has the role of that name."""
    cluster = world.look()
    cluster_fields = {
        "name": "demo",
        "apiServerEndpoint": cluster["endpoint"],
        "certificateAuthority": cluster["certificateAuthority"]["data"],
        "cidr": cluster["kubernetesNetworkConfig"]["serviceIpv4Cidr"],
    }
    kubelet = {"flags": ["--register-with-taints=team=a:NoSchedule,boot=:NoExecute", "--node-labels=a=b"]}
    document = {"kind": "NodeConfig", "spec": spec or {"cluster": cluster_fields, "kubelet": kubelet}}
    part = f"--x\nContent-Type: application/node.eks.aws\n\n{json.dumps(document)}\n--x--\n"
    data = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="x"\n\n{part}'
    world.iam.create_instance_profile(InstanceProfileName="p")
    world.iam.add_role_to_instance_profile(InstanceProfileName="p", RoleName=role)
    (machine,) = world.ec2.run_instances(
        ImageId="ami-0123456789abcdef0",
        InstanceType="m6i.large",
        MinCount=1,
        MaxCount=1,
        SubnetId=world.subnets[0],
        UserData=data,
        IamInstanceProfile={"Name": "p"},
        TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": TAG, "Value": "ncl_1"}]}],
    )["Instances"]
    return machine


def admitted(world: World, policy: str) -> str:
    """A role with an access policy of the whole cluster."""
    role = world.role(policy, "ec2.amazonaws.com")
    world.eks.create_access_entry(clusterName="demo", principalArn=role)
    world.eks.associate_access_policy(
        clusterName="demo", principalArn=role, policyArn=POLICY_ARN + policy, accessScope={"type": "cluster"}
    )
    return role


def test_a_machine_of_a_group_has_metadata_that_go_two_hops(world: World) -> None:
    """The machine's role is the group's: EKS makes the profile."""
    world.cluster()
    until(lambda: world.look()["status"] == "ACTIVE")
    world.group(scalingConfig={"minSize": 0, "maxSize": 1, "desiredSize": 1})
    (machine,) = until(world.machines)
    (node,) = until(lambda: list(world.played._machines.values()))
    environment = until(node.program.kubelet.programs)
    assert environment[HOPS] == "2"

    def ask(path: str, **headers: str) -> str:
        method = "PUT" if path == "api/token" else "GET"
        url = f"{environment['AWS_EC2_METADATA_SERVICE_ENDPOINT']}/latest/{path}"
        with urllib.request.urlopen(urllib.request.Request(url, method=method, headers=headers), timeout=5) as answer:  # noqa: S310
            return str(answer.read().decode())

    token = ask("api/token", **{"X-aws-ec2-metadata-token-ttl-seconds": "60"})
    headers = {"X-aws-ec2-metadata-token": token}
    assert ask("meta-data/instance-id", **headers) == machine["InstanceId"]
    role = ask("meta-data/iam/security-credentials/", **headers)
    assert world.look_at_group()["nodeRole"].endswith(f"/{role}")
    assert json.loads(ask(f"meta-data/iam/security-credentials/{role}", **headers))["AccessKeyId"]


def test_pods_have_the_role_of_their_service_account(world: World) -> None:
    world.cluster()
    until(lambda: world.look()["status"] == "ACTIVE")
    role = world.role("volumes", PODS)
    assert pod_keys(ACCOUNT, REGION, "demo", "kube-system", "driver") == {}
    world.eks.create_pod_identity_association(
        clusterName="demo", namespace="kube-system", serviceAccount="driver", roleArn=role
    )
    assert pod_keys(ACCOUNT, REGION, "demo", "kube-system", "another") == {}
    keys = pod_keys(ACCOUNT, REGION, "demo", "kube-system", "driver")
    session = sts_backends[ACCOUNT]["aws"].get_assumed_role_from_access_key(keys["AWS_ACCESS_KEY_ID"])
    assert session is not None
    assert session.role_arn == role


def test_machines_of_a_group_are_nodes_while_they_live(world: World) -> None:
    world.cluster()
    until(lambda: world.look()["status"] == "ACTIVE")
    taint = {"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}
    sizes = {"minSize": 0, "maxSize": 2, "desiredSize": 1}
    world.group("gpu", instanceTypes=["g6.12xlarge"], labels={"a": "b"}, taints=[taint], scalingConfig=sizes)
    api = world.api(admitted(world, "AmazonEKSClusterAdminPolicy"))
    (node,) = until(lambda: world.nodes(api))
    (machine,) = world.machines("gpu")
    zone = machine["Placement"]["AvailabilityZone"]
    assert node["metadata"]["name"] == machine["PrivateDnsName"]
    assert node["spec"]["providerID"] == f"aws:///{zone}/{machine['InstanceId']}"
    assert node["spec"]["taints"] == [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}]
    expected = {
        "a": "b",
        "eks.amazonaws.com/nodegroup": "gpu",
        "eks.amazonaws.com/capacityType": "ON_DEMAND",
        "node.kubernetes.io/instance-type": "g6.12xlarge",
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": REGION,
        "kubernetes.io/arch": "amd64",
    }
    assert expected.items() <= node["metadata"]["labels"].items()
    assert GPU not in node["status"]["allocatable"]
    api.apply(PLUGIN)
    until(lambda: world.nodes(api)[0]["status"]["allocatable"].get(GPU) == "4")
    world.eks.update_nodegroup_config(
        clusterName="demo",
        nodegroupName="gpu",
        labels={"addOrUpdateLabels": {"c": "d"}, "removeLabels": ["a"]},
        taints={"removeTaints": [taint]},
    )
    changed = until(lambda: next((node for node in world.nodes(api) if "c" in node["metadata"]["labels"]), None))
    assert ("a" in changed["metadata"]["labels"], changed["spec"]["taints"]) == (False, [])
    ec2_backends[ACCOUNT][REGION].terminate_instances([machine["InstanceId"]])
    provider = node["spec"]["providerID"]
    until(lambda: [node["spec"]["providerID"] != provider for node in world.nodes(api)] == [True])
    world.eks.delete_nodegroup(clusterName="demo", nodegroupName="gpu")
    until(lambda: not world.nodes(api))


def test_a_machine_with_a_node_config_is_a_node_while_it_lives(world: World) -> None:
    world.cluster()
    until(lambda: world.look()["status"] == "ACTIVE")
    world.eks.create_access_entry(clusterName="demo", principalArn=world.node_role, type="EC2_LINUX")
    machine = configured(world, "node")
    api = world.api(admitted(world, "AmazonEKSClusterAdminPolicy"))
    (node,) = until(lambda: world.nodes(api))
    assert node["metadata"]["name"] == machine["PrivateDnsName"]
    assert node["spec"]["providerID"] == f"aws:///{ZONES[0]}/{machine['InstanceId']}"
    assert node["spec"]["taints"] == [
        {"key": "team", "value": "a", "effect": "NoSchedule"},
        {"key": "boot", "value": "", "effect": "NoExecute"},
    ]
    labels = node["metadata"]["labels"]
    expected = {"a": "b", "node.kubernetes.io/instance-type": "m6i.large", "topology.kubernetes.io/zone": ZONES[0]}
    assert expected.items() <= labels.items()
    assert [key for key in labels if key.startswith(("eks.amazonaws.com/", "stockyard.dev/"))] == []
    world.ec2.terminate_instances(InstanceIds=[machine["InstanceId"]])
    until(lambda: not world.nodes(api))


def test_a_machine_whose_role_has_no_entry_of_nodes_does_not_join_and_says_so(world: World) -> None:
    world.cluster()
    until(lambda: world.look()["status"] == "ACTIVE")
    api = world.api(admitted(world, "AmazonEKSClusterAdminPolicy"))
    machine = configured(world, "node")
    refusal = f"{machine['InstanceId']}: kubelet: Unauthorized: demo admits nodes by access entries of EC2_LINUX, "
    until(lambda: world.log.exists() and world.log.read_text(encoding="utf-8"))
    assert world.log.read_text(encoding="utf-8") == f"{refusal}there is none of {world.node_role}\n"
    world.eks.create_access_entry(clusterName="demo", principalArn=world.node_role)
    until(lambda: "STANDARD" in world.log.read_text(encoding="utf-8"))
    assert world.nodes(api) == []
    world.eks.delete_access_entry(clusterName="demo", principalArn=world.node_role)
    world.eks.create_access_entry(clusterName="demo", principalArn=world.node_role, type="EC2_LINUX")
    until(lambda: world.nodes(api))


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("cidr", "", "nodeadm: spec.cluster of the NodeConfig has no cidr"),
        ("apiServerEndpoint", "https://other.example", "https://other.example does not answer for demo"),
        ("certificateAuthority", "Y2E=", "is not of the authority of the NodeConfig"),
        ("name", "other", "kubelet: other has no API"),
    ],
)
def test_a_machine_that_is_told_another_cluster_does_not_join(
    world: World, field: str, value: str, reason: str
) -> None:
    world.cluster()
    until(lambda: world.look()["status"] == "ACTIVE")
    world.eks.create_access_entry(clusterName="demo", principalArn=world.node_role, type="EC2_LINUX")
    cluster = world.look()
    cluster_fields = {
        "name": "demo",
        "apiServerEndpoint": cluster["endpoint"],
        "certificateAuthority": cluster["certificateAuthority"]["data"],
        "cidr": "172.20.0.0/16",
    }
    configured(world, "node", {"cluster": {**cluster_fields, field: value}})
    until(lambda: world.log.exists() and reason in world.log.read_text(encoding="utf-8"))
    assert world.nodes(world.api(admitted(world, "AmazonEKSClusterAdminPolicy"))) == []


def test_a_role_may_do_what_its_access_policy_says(world: World) -> None:
    world.cluster()
    until(lambda: world.look()["status"] == "ACTIVE")
    viewer, admin = (admitted(world, f"AmazonEKS{name}Policy") for name in ("View", "ClusterAdmin"))
    space = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    world.api(admin).apply(space)
    looking = world.api(viewer)
    assert looking.get("v1", "ConfigMap", "a", "default") is not None
    with pytest.raises(PermissionDenied):
        looking.apply({**space, "data": {"b": "c"}})
    world.eks.delete_access_entry(clusterName="demo", principalArn=viewer)
    with pytest.raises(CredentialsRevoked):
        looking.get("v1", "ConfigMap", "a", "default")


def test_a_role_with_a_path_is_admitted_by_its_entry(world: World) -> None:
    world.cluster()
    until(lambda: world.look()["status"] == "ACTIVE")
    policy = '{"Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]}'
    made_role = world.iam.create_role(RoleName="reader", Path="/people/", AssumeRolePolicyDocument=policy)["Role"][
        "Arn"
    ]
    world.eks.create_access_entry(clusterName="demo", principalArn=made_role)
    world.eks.associate_access_policy(
        clusterName="demo",
        principalArn=made_role,
        policyArn=f"{POLICY_ARN}AmazonEKSViewPolicy",
        accessScope={"type": "cluster"},
    )
    assert list(world.api(made_role).list("v1", "Pod", "default")) == []


def test_the_api_ends_with_the_cluster(world: World) -> None:
    world.cluster()
    until(lambda: world.look()["status"] == "ACTIVE")
    api = world.api(admitted(world, "AmazonEKSClusterAdminPolicy"))
    assert world.nodes(api) == []
    world.eks.delete_cluster(name="demo")
    until(lambda: world.eks.list_clusters()["clusters"] == [])

    def refused() -> bool:
        try:
            world.nodes(api)
        except Exception:
            return True
        return False

    until(refused)
