"""A cluster on EKS by HTTP on the local cloud: its system node, a GPU's node that a pod brings, and no trace of it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from local.aws.server import ACME_ACCOUNT
from stockyard.providers.kubernetes.client import KubernetesApi

if TYPE_CHECKING:
    from tests.harness.serving import Served

GPU = "nvidia.com/gpu"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "worker", "namespace": "default"},
    "spec": {
        "tolerations": [{"key": GPU, "operator": "Exists"}],
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {GPU: "1"}}}],
    },
}


def leftovers(served: Served) -> dict[str, list[str]]:
    """What the tenant sees of EKS and what it needs."""
    eks, efs, ec2 = (served.aws(service, ACME_ACCOUNT) for service in ("eks", "efs", "ec2"))
    groups = served.aws("autoscaling", ACME_ACCOUNT).describe_auto_scaling_groups()["AutoScalingGroups"]
    tag = [{"Name": "tag-key", "Values": ["eks:cluster-name"]}, {"Name": "instance-state-name", "Values": ["running"]}]
    return {
        "clusters": eks.list_clusters()["clusters"],
        "file systems": [system["FileSystemId"] for system in efs.describe_file_systems()["FileSystems"]],
        "groups": [group["AutoScalingGroupName"] for group in groups],
        "machines": [r["ReservationId"] for r in ec2.describe_instances(Filters=tag)["Reservations"]],
        "templates": [t["LaunchTemplateName"] for t in ec2.describe_launch_templates()["LaunchTemplates"]],
    }


@pytest.fixture(scope="module")
def before(served: Served) -> dict[str, list[str]]:
    return leftovers(served)


@pytest.fixture(scope="module")
def cluster(served: Served, before: dict[str, list[str]]) -> dict[str, Any]:
    group = {
        "name": "gpu",
        "role": "gpu",
        "instance_type": "g6.12xlarge",
        "count": 0,
        "zones": ["us-east-1a"],
        "accelerator_type": "L4",
    }
    (account,) = (item for item in served.call("GET", "/v1/cloud-accounts").body["items"] if item["provider"] == "aws")
    body = {
        "name": "on-eks",
        "description": "d",
        "cloud_account_id": account["id"],
        "cluster_type": "k8s",
        "driver": "eks",
        "settings": {"region_name": "us-east-1", "node_groups": [group]},
    }
    answer = served.call("POST", "/v1/clusters", body)
    assert answer.status == 202, answer.text
    operation = served.operation(answer.body["operation_id"])
    assert operation["status"] == "succeeded", operation
    return dict(answer.body)


@pytest.fixture(scope="module")
def api(served: Served, cluster: dict[str, Any]) -> Iterator[KubernetesApi]:
    """The cluster's API for the tenant's administrator, by what the product gives out."""
    path = f"/v1/clusters/{cluster['id']}"
    answer = served.call("GET", f"{path}/kubeconfig")
    assert answer.status == 200, answer.text
    place = yaml.safe_load(answer.body["kubeconfig"])["clusters"][0]["cluster"]

    def token() -> str:
        return str(served.call("POST", f"{path}/token").body["status"]["token"])

    assert b"CERTIFICATE" in base64.b64decode(place["certificate-authority-data"])
    api = KubernetesApi(place["server"], place["certificate-authority-data"], token)
    yield api
    api.close()


def nodes(api: KubernetesApi, group: str) -> list[Any]:
    return list(api.list("v1", "Node", labels=f"eks.amazonaws.com/nodegroup={group}"))


def claims(served: Served, cluster: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The cluster's claims by the node that each has."""
    items = served.call("GET", f"/v1/node-claims?cluster={cluster['id']}").body["items"]
    return {item["node_name"]: item for item in items if item["node_name"]}


def test_the_system_node_is_a_claim(served: Served, cluster: dict[str, Any], api: KubernetesApi) -> None:
    (node,) = served.wait("the system node", lambda: nodes(api, "system"), 60)
    name = node["metadata"]["name"]
    claim = served.wait("its claim", lambda: claims(served, cluster).get(name), 60)
    assert node["spec"]["providerID"].endswith(claim["machine_id"])
    assert nodes(api, "gpu") == []


def test_a_pod_that_asks_for_a_gpu_brings_a_node(served: Served, api: KubernetesApi) -> None:
    api.apply(POD)

    def running() -> Any:
        pod = api.get("v1", "Pod", "worker", "default")
        return pod if pod and (pod.get("status") or {}).get("phase") == "Running" else None

    pod = served.wait("the pod", running, 120)
    (node,) = nodes(api, "gpu")
    assert pod["spec"]["nodeName"] == node["metadata"]["name"]
    assert node["status"]["allocatable"][GPU] == "4"
    assert {"key": GPU, "value": "true", "effect": "NoSchedule"} in node["spec"]["taints"]
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "g6.12xlarge"


def test_deletion_leaves_nothing(
    served: Served, cluster: dict[str, Any], remove: Callable[[str], dict[str, Any]], before: dict[str, list[str]]
) -> None:
    operation = remove(cluster["id"])
    assert operation["status"] == "succeeded", operation
    assert leftovers(served) == before
