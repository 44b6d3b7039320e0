"""A cluster on EKS by HTTP on the local cloud: its system node, a GPU's node that a pod brings, nodes outside of node
groups, a capacity block that has not begun, and no trace of it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from local.aws.accounts import ACME_ACCOUNT, REGION
from stockyard.providers.kubernetes.client import KubernetesApi
from tests.harness.blocks import BLOCK

if TYPE_CHECKING:
    from local.testing.serving import Served

GPU = "nvidia.com/gpu"
OUTSIDE = "outside-groups"
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
PROVIDER: dict[str, Any] = {
    "name": OUTSIDE,
    "kind": "ec2",
    "spec": {"region": REGION, "instanceTypes": ["t3.medium", "m6i.large"]},
}
POOL: dict[str, Any] = {
    "name": "burst",
    "kind": "dynamic",
    "provider": OUTSIDE,
    "requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m6i"]},
    ],
    "labels": {"work": "burst"},
    "taints": [TAINT],
    "termination_grace_period": "30s",
}
CLAIM: dict[str, Any] = {
    "name": "by-hand",
    "provider": OUTSIDE,
    "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["t3.medium"]}],
    "properties": {"work": "by-hand"},
    "taints": [TAINT],
}


def pod(name: str, selector: dict[str, str], taint: str, resources: dict[str, Any]) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": resources}
    spec = {"nodeSelector": selector, "tolerations": [{"key": taint, "operator": "Exists"}], "containers": [container]}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**spec, "terminationGracePeriodSeconds": 1}}


def leftovers(served: Served) -> dict[str, list[str]]:
    """Resources of EKS, and others that it needs, as the tenant sees them."""
    eks, efs, ec2 = (served.aws(service, ACME_ACCOUNT) for service in ("eks", "efs", "ec2"))
    groups = served.aws("autoscaling", ACME_ACCOUNT).describe_auto_scaling_groups()["AutoScalingGroups"]
    tag = [{"Name": "tag-key", "Values": ["eks:cluster-name"]}, {"Name": "instance-state-name", "Values": ["running"]}]
    profiles = served.aws("iam", ACME_ACCOUNT).list_instance_profiles()["InstanceProfiles"]
    return {
        "clusters": eks.list_clusters()["clusters"],
        "file systems": [system["FileSystemId"] for system in efs.describe_file_systems()["FileSystems"]],
        "groups": [group["AutoScalingGroupName"] for group in groups],
        "profiles": [profile["InstanceProfileName"] for profile in profiles],
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
    reserved = {
        "name": "reserved",
        "role": "gpu",
        "instance_type": BLOCK.instance_type,
        "count": 0,
        "max_size": BLOCK.count,
        "zones": [BLOCK.zone],
        "accelerator_type": "H100",
        "capacity_reservation_id": BLOCK.id,
    }
    (account,) = (item for item in served.call("GET", "/v1/cloud-accounts").body["items"] if item["provider"] == "aws")
    body = {
        "name": "on-eks",
        "description": "d",
        "cloud_account_id": account["id"],
        "cluster_type": "k8s",
        "driver": "eks",
        "settings": {"region_name": "us-east-1", "node_groups": [group, reserved]},
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
    endpoint = yaml.safe_load(answer.body["kubeconfig"])["clusters"][0]["cluster"]

    def token() -> str:
        return str(served.call("POST", f"{path}/token").body["status"]["token"])

    assert b"CERTIFICATE" in base64.b64decode(endpoint["certificate-authority-data"])
    api = KubernetesApi(endpoint["server"], endpoint["certificate-authority-data"], token)
    yield api
    api.close()


def nodes(api: KubernetesApi, group: str) -> list[Any]:
    return list(api.list("v1", "Node", labels=f"eks.amazonaws.com/nodegroup=on-eks-{group}"))


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


def running(api: KubernetesApi, name: str) -> Any:
    pod = api.get("v1", "Pod", name, "default")
    return pod if pod and (pod.get("status") or {}).get("phase") == "Running" else None


def test_a_pod_that_asks_for_a_gpu_brings_a_node(served: Served, api: KubernetesApi) -> None:
    api.apply(pod("worker", {"modelplane.ai/pool": "gpu"}, GPU, {"limits": {GPU: "1"}}))
    worker = served.wait("the pod", lambda: running(api, "worker"), 120)
    (node,) = nodes(api, "gpu")
    assert worker["spec"]["nodeName"] == node["metadata"]["name"]
    assert node["status"]["allocatable"][GPU] == "4"
    assert {"key": GPU, "value": "true", "effect": "NoSchedule"} in node["spec"]["taints"]
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "g6.12xlarge"


def outside_nodes(api: KubernetesApi) -> list[Any]:
    """The nodes of no node group."""
    return [node for node in api.list("v1", "Node") if "eks.amazonaws.com/nodegroup" not in node["metadata"]["labels"]]


def good(served: Served, method: str, path: str, body: Any = None) -> Any:
    answer = served.call(method, f"/v1/{path}", body)
    assert answer.status in (200, 201, 202), answer.text
    return answer.body


@pytest.fixture(scope="module")
def outside(served: Served, cluster: dict[str, Any], api: KubernetesApi) -> Iterator[dict[str, dict[str, Any]]]:
    """The nodes of a claim of a person and of a pool that a pod has scaled up, by what they are for."""
    spec = {**PROVIDER["spec"], "cloudAccount": cluster["cloud_account_id"]}
    good(served, "POST", "node-providers", {**PROVIDER, "spec": spec})
    good(served, "POST", f"clusters/{cluster['id']}/pools", POOL)
    created = good(served, "POST", "node-claims", {**CLAIM, "cluster": cluster["id"]})
    api.apply(pod("burst", POOL["labels"], "team", {"requests": {"cpu": "1"}}))
    served.wait("the pod of the pool", lambda: running(api, "burst"), 120)
    assert served.operation(created["operation_id"])["status"] == "succeeded"
    outside = {node["metadata"]["labels"]["work"]: node for node in outside_nodes(api)}

    def available() -> bool:
        claim = claims(served, cluster).get(outside["burst"]["metadata"]["name"])
        return claim is not None and claim["phase"] == "Available"

    served.wait("the pool's claim", available, 60)
    yield outside
    good(served, "DELETE", f"node-providers/{OUTSIDE}")


def test_machines_outside_of_node_groups_become_nodes(
    served: Served, cluster: dict[str, Any], outside: dict[str, dict[str, Any]]
) -> None:
    assert {work: node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for work, node in outside.items()} == {
        "by-hand": "t3.medium",
        "burst": "m6i.large",
    }
    of_nodes = claims(served, cluster)
    for node in outside.values():
        claim = of_nodes[node["metadata"]["name"]]
        assert claim["phase"] == "Available"
        assert node["metadata"]["labels"]["stockyard.dev/claim"] == claim["id"]
        assert TAINT in node["spec"]["taints"]
        assert node["spec"]["providerID"].endswith(f"/{claim['machine_id']}")
    assert outside["burst"]["metadata"]["labels"]["stockyard.dev/pool"] == "burst"


def test_they_leave_with_their_claim_and_their_pool(
    served: Served, cluster: dict[str, Any], api: KubernetesApi, outside: dict[str, dict[str, Any]]
) -> None:
    claim = claims(served, cluster)[outside["by-hand"]["metadata"]["name"]]
    deletion = good(served, "DELETE", f"node-claims/{claim['id']}")
    good(served, "DELETE", f"clusters/{cluster['id']}/pools/burst")
    assert served.operation(deletion["id"])["status"] == "succeeded"
    served.wait("the end of both", lambda: not outside_nodes(api), 120)


def test_nodes_of_a_capacity_block_wait_for_its_begin(
    served: Served, cluster: dict[str, Any], api: KubernetesApi
) -> None:
    api.apply(pod("reserved", {"modelplane.ai/pool": "reserved"}, GPU, {"limits": {GPU: "8"}}))

    def waiting() -> list[dict[str, Any]]:
        items = good(served, "GET", f"node-claims?cluster={cluster['id']}")["items"]
        return [item for item in items if item["reason"] == "CapacityBlockNotStarted"]

    (claim,) = served.wait("the claim", waiting, 60)
    ec2, scaling = (served.aws(service, ACME_ACCOUNT) for service in ("ec2", "autoscaling"))
    (block,) = ec2.describe_capacity_reservations(CapacityReservationIds=[BLOCK.id])["CapacityReservations"]
    assert claim["phase"] == "Pending"
    assert (
        f"{BLOCK.id} of {BLOCK.instance_type} in {BLOCK.zone} begins at {block['StartDate']:%Y-%m-%dT%H:%M:%S}"
        in (claim["message"])
    )
    filters = [{"Name": "instance-type", "Values": [BLOCK.instance_type]}]
    assert ec2.describe_instances(Filters=filters)["Reservations"] == []
    groups = scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    (size,) = (
        group["DesiredCapacity"] for group in groups if group["AutoScalingGroupName"].startswith("eks-on-eks-reserved-")
    )
    assert (size, nodes(api, "reserved")) == (0, [])
    api.delete("v1", "Pod", "reserved", "default")


def test_deletion_leaves_nothing(
    served: Served, cluster: dict[str, Any], remove: Callable[[str], dict[str, Any]], before: dict[str, list[str]]
) -> None:
    operation = remove(cluster["id"])
    assert operation["status"] == "succeeded", operation
    assert leftovers(served) == before
