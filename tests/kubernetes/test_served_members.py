"""A real control plane on EC2 whose members are replaced, grow and are restored, the first one too: its API answers
with its objects still there, and the real cloud controller, which each member runs, still initializes new nodes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from local.aws.accounts import ACME_ACCOUNT, REGION
from local.kubernetes.real import build
from local.kubernetes.real.client import Client
from local.kubernetes.real.cloud import WITH_DRIVER
from local.kubernetes.real.control_plane import program
from local.kubernetes.real.kubelet import UNINITIALIZED
from stockyard.domain.values import ids
from stockyard.providers.clouds.aws import tags
from tests.harness.stories.pools import administrator, story_body
from tests.kubernetes.members.plane import Plane, cluster_names
from tests.kubernetes.members.volumes import ZONE, Driver
from tests.kubernetes.test_served import files_of, good, programs_of, succeeded

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(900)
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/kube-system/pods"
OLD, NEW = build.minors()

OWN_MARK = "ebs.csi.aws.com/cluster"
"""The tag that the driver gives each volume of its own accord."""
VOLUMES: Sequence[dict[str, Any]] = [
    {"Action": ["ec2:AttachVolume", "ec2:DetachVolume"]},
    {"Action": ["ec2:CreateVolume"], "Condition": {"StringEquals": {f"aws:RequestTag/{OWN_MARK}": "true"}}},
    {"Action": ["ec2:CreateTags"], "Condition": {"StringEquals": {"ec2:CreateAction": "CreateVolume"}}},
    {"Action": ["ec2:DeleteVolume"], "Condition": {"StringEquals": {f"aws:ResourceTag/{OWN_MARK}": "true"}}},
]
"""What AWS's policy for the driver comes to: volumes with its own tag."""


def give_pods_a_role(cloud: Served, account: str, statements: Sequence[dict[str, Any]]) -> None:
    """A role for the pods of a service account of the one cluster on EKS, by the pod identities of EKS."""
    iam, eks = cloud.aws("iam", ACME_ACCOUNT), cloud.aws("eks", ACME_ACCOUNT)
    principal = {"Service": "pods.eks.amazonaws.com"}
    trust = {"Effect": "Allow", "Principal": principal, "Action": ["sts:AssumeRole", "sts:TagSession"]}
    arn = iam.create_role(RoleName=account, AssumeRolePolicyDocument=policy([trust]))["Role"]["Arn"]
    allowed = [{"Effect": "Allow", "Resource": "*", **statement} for statement in statements]
    iam.put_role_policy(RoleName=account, PolicyName="own", PolicyDocument=policy(allowed))
    (name,) = eks.list_clusters()["clusters"]
    eks.create_pod_identity_association(clusterName=name, namespace="kube-system", serviceAccount=account, roleArn=arn)


def policy(statements: Sequence[dict[str, Any]]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def is_made(driver: Driver, zone: str) -> bool:
    """Whether the driver makes a volume, which it deletes again."""
    try:
        driver.controller("DeleteVolume", volumeId=driver.new_volume(zone))
    except AssertionError:
        return False
    return True


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    for reason in (build.missing(), build.missing_previous(), build.missing_cloud()):
        if reason:
            pytest.skip(reason)
    from local.testing.serving import serve

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(WITH_DRIVER, "1")
        served = serve(tmp_path_factory.mktemp("members") / "home", "--kubernetes", "--no-limits")
    yield served
    assert served.stop() == 0
    assert not (served.home / "planes").exists()


@pytest.fixture(scope="module")
def on_eks(cloud: Served) -> dict[str, Any]:
    """A cluster on EKS that is being made, with the one node of the group that every such cluster has."""
    (account,) = (item for item in good(cloud, "GET", "cloud-accounts")["items"] if item["provider"] == "aws")
    body = {
        "name": "on-eks",
        "description": "d",
        "cloud_account_id": account["id"],
        "cluster_type": "k8s",
        "driver": "eks",
    }
    return dict(good(cloud, "POST", "clusters", {**body, "settings": {"region_name": REGION}}))


@pytest.fixture(scope="module")
def plane(cloud: Served, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Plane:
    """The cluster on EC2. That on EKS comes up meanwhile."""
    request.getfixturevalue("on_eks")
    body = story_body(kubernetes_version=OLD)
    # Nodes come for claims: those of a group would be rolled by a schedule, which keeps real time.
    body["settings"]["autoscaler_node_groups"][1] |= {"min_size": 0, "max_size": 0}
    cluster = good(cloud, "POST", "clusters", body)
    succeeded(cloud, cluster["operation_id"])
    kube = administrator(cloud, cluster, tmp_path_factory.mktemp("administrator"))
    kube.call("POST", MAPS, {"metadata": {"name": "kept"}, "data": {"from": "the first machine"}})
    return Plane(cloud, cluster, kube)


@pytest.mark.usefixtures("plane")
def test_the_driver_serves_a_node_of_a_managed_group_as_its_role_allows(cloud: Served, on_eks: dict[str, Any]) -> None:
    """Somebody installs it, as its own manifests say. With the node's role its controller may make nothing."""
    if reason := build.missing_driver():
        pytest.skip(reason)
    succeeded(cloud, on_eks["operation_id"])
    (folder,) = (cloud.home / "managed").iterdir()
    driver = Driver(cloud, f"../managed/{folder.name}", cloud.aws("ec2", ACME_ACCOUNT))
    kubeconfig = folder / "super-admin.conf"
    kubectl = [str(program("kubectl")), "--kubeconfig", str(kubeconfig)]
    subprocess.run([*kubectl, "apply", "-k", str(build.driver_manifests())], check=True, capture_output=True)
    kube = Client.of_kubeconfig(kubeconfig)
    (node,) = kube.call("GET", "/api/v1/nodes")["items"]
    machine, zone = node["spec"]["providerID"].rpartition("/")[2], node["metadata"]["labels"][ZONE]
    with pytest.raises(AssertionError, match=r"-node-role/i-\w+ is not authorized to perform: ec2:CreateVolume"):
        driver.new_volume(zone)
    give_pods_a_role(cloud, "ebs-csi-controller-sa", VOLUMES)
    for pod in kube.call("GET", f"{PODS}?labelSelector=app%3Debs-csi-controller")["items"]:
        kube.call("DELETE", f"{PODS}/{pod['metadata']['name']}")
    cloud.wait("pods with the role", lambda: is_made(driver, zone), 60)
    driver.serves({machine: zone}, {OWN_MARK: "true"})
    good(cloud, "DELETE", f"clusters/{on_eks['id']}")


def is_kept(plane: Plane) -> bool:
    return bool(plane.kube.call("GET", f"{MAPS}/kept")["data"] == {"from": "the first machine"})


def test_an_upgrade_leaves_a_controller_that_initializes_nodes(plane: Plane) -> None:
    assert plane.kube.call("GET", "/version")["minor"] == OLD.split(".")[1]
    plane.take_volumes()
    before = plane.machines()
    plane.change({"kubernetes_version": NEW})
    plane.cloud.wait("the end of every machine of before", lambda: not before & plane.machines(), 60)
    assert plane.kube.call("GET", "/version")["minor"] == NEW.split(".")[1]
    assert is_kept(plane)
    plane.node_comes()


def test_a_repave_leaves_a_controller_that_initializes_nodes(plane: Plane) -> None:
    before = plane.machines()
    operation = good(plane.cloud, "POST", f"{plane.path}/repave")
    succeeded(plane.cloud, operation["id"])
    plane.cloud.wait("the end of every machine of before", lambda: not before & plane.machines(), 60)
    assert is_kept(plane)
    plane.node_comes()


def test_a_member_without_the_tag_of_its_cluster_has_a_controller_that_ends(plane: Plane) -> None:
    """The controller looks for the cluster's name on its own machine at the start."""
    (member,) = plane.members()
    carried = cluster_names(member)
    plane.ec2.delete_tags(Resources=[member["InstanceId"]], Tags=[{"Key": tag["Key"]} for tag in carried])
    (pod,) = plane.controllers()
    plane.kube.call("DELETE", f"/api/v1/namespaces/kube-system/pods/{pod['metadata']['name']}")
    fault = "AWS cloud failed to find ClusterID"
    plane.cloud.wait("the end of the controller", lambda: fault in plane.log_of(pod["spec"]["nodeName"]), 60)
    claim = plane.claim()
    node = plane.cloud.wait("the node", lambda: plane.node(claim), 120)
    assert UNINITIALIZED in node["spec"]["taints"]
    plane.ec2.create_tags(Resources=[member["InstanceId"]], Tags=carried)
    plane.available(claim)
    good(plane.cloud, "DELETE", f"node-claims/{claim}")


def test_nodes_that_are_launched_together_take_volumes(plane: Plane) -> None:
    if reason := build.missing_driver():
        pytest.skip(reason)
    spec = {"region": REGION, "cloudAccount": plane.cluster["cloud_account_id"], "instanceTypes": ["t3.large"]}
    good(plane.cloud, "POST", "node-providers", {"name": "launched", "kind": "ec2", "spec": spec})
    good(plane.cloud, "POST", f"{plane.path}/pools", {"name": "pair", "quantity": 2, "provider": "launched"})
    plane.cloud.wait("two claims", lambda: len(plane.claims_of("pair")) == 2, 90)
    claims = [claim["id"] for claim in plane.claims_of("pair")]
    for claim in claims:
        plane.available(claim)
    machines = plane.instances_of(claims)
    (owner,) = {tags.mapping(machine["Tags"])[tags.RESOURCE] for machine in machines}
    assert owner.startswith(f"{ids.LAUNCH_GROUP}_"), "one launch has made both"
    plane.take_volumes(machines)
    good(plane.cloud, "DELETE", f"{plane.path}/pools/pair")
    plane.cloud.wait("the end of both", lambda: not plane.claims_of("pair"), 90)


def test_a_restored_control_plane_has_a_controller_that_initializes_nodes(plane: Plane) -> None:
    plane.change({"settings": {"etcd_backup": {"interval_hours": 24, "keep": 2}}})
    snapshots = f"{plane.path}/snapshots"
    plane.cloud.wait("a snapshot", lambda: good(plane.cloud, "GET", snapshots)["items"], 90)
    plane.kube.call("POST", MAPS, {"metadata": {"name": "younger"}})
    plane.ec2.terminate_instances(InstanceIds=[member["InstanceId"] for member in plane.members()])
    operation = good(plane.cloud, "POST", f"{plane.path}/restore", {"snapshot": "latest"})
    succeeded(plane.cloud, operation["id"])
    assert is_kept(plane)
    assert "younger" not in json.dumps(plane.kube.call("GET", MAPS)["items"]), "it is younger than the snapshot"
    plane.node_comes()


def test_a_control_plane_of_three_has_a_controller_on_each_member(plane: Plane) -> None:
    plane.change({"settings": {"control_plane_size": 3}})
    plane.cloud.wait("a controller on each member", lambda: len(plane.controllers()) == 3, 60)
    assert len(plane.members()) == 3
    for pod in plane.controllers():
        plane.cloud.wait("its start", lambda node=pod["spec"]["nodeName"]: "leaderelection" in plane.log_of(node), 60)
    plane.node_comes()
    good(plane.cloud, "DELETE", plane.path)
    plane.cloud.wait("the end of its programs", lambda: not programs_of(plane.cloud), 120)
    plane.cloud.wait("the end of its files", lambda: not files_of(plane.cloud), 60)
