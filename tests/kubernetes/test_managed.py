"""A real control plane behind the endpoint of a cluster of EKS: its nodes and its readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from local.aws.token_webhook import policy_group
from local.kubernetes.cluster import InitFailed, Kubelet
from local.kubernetes.real.build import missing
from local.kubernetes.real.client import Client
from local.kubernetes.real.managed import RealManagedCluster
from tests.kubernetes.rigs import until

NODE, TAINT = "ip-10-0-0-4.ec2.internal", {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}


def review(body: Mapping[str, Any]) -> dict[str, Any]:
    """Whoever has a token is a viewer of that name."""
    user = {"username": body["spec"]["token"], "groups": [policy_group("AmazonEKSViewPolicy")]}
    return {"apiVersion": body["apiVersion"], "kind": "TokenReview", "status": {"authenticated": True, "user": user}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealManagedCluster]:
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("managed")
    cluster = RealManagedCluster("demo", "v1.36.0", folder / "demo", folder / "log", review, {})
    cluster.start()
    yield cluster
    cluster.remove()


def described(cluster: RealManagedCluster) -> Any:
    return Client.of_kubeconfig(cluster.plane.kubeconfig).call("GET", f"/api/v1/nodes/{NODE}")


def test_a_machine_is_a_node_until_its_instance_is_gone(cluster: RealManagedCluster) -> None:
    kubelet = Kubelet("aws:///us-east-1a/i-1", 4, 16384, address="10.0.0.4", gpus=4)
    cluster.admit(NODE, kubelet, {"a": "b"}, [TAINT])
    until(lambda: {"Ready": "True"}.items() <= _conditions(described(cluster)).items())
    node = described(cluster)
    assert (node["metadata"]["labels"]["a"], node["status"]["allocatable"]["nvidia.com/gpu"]) == ("b", "4")
    assert TAINT in node["spec"]["taints"]
    with pytest.raises(InitFailed, match="another instance"):
        cluster.admit(NODE, Kubelet("aws:///us-east-1a/i-2", 4, 16384), {}, [])
    cluster.change(NODE, {"c": "d"}, [], ["a"])
    labels = described(cluster)["metadata"]["labels"]
    assert ("a" in labels, labels["c"]) == (False, "d")
    cluster.forget(NODE, "aws:///us-east-1a/i-2")
    assert described(cluster)["spec"]["providerID"] == "aws:///us-east-1a/i-1"
    cluster.forget(NODE, "aws:///us-east-1a/i-1")
    assert cluster._node(NODE) is None


def _conditions(node: Any) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in node["status"].get("conditions") or ()}


def test_the_webhook_says_who_asks_and_its_group_what_they_may(cluster: RealManagedCluster) -> None:
    ask = ("auth", "can-i", "--quiet")
    until(lambda: cluster.plane.kubectl(*ask, "list", "pods", token="ann", check=False).returncode == 0)
    assert cluster.plane.kubectl("auth", "whoami", token="ann").stdout.count("ann")
    assert cluster.plane.kubectl(*ask, "create", "pods", token="ann", check=False).returncode == 1
