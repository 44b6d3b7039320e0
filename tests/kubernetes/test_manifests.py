"""The pinned manifests on a real API server, put together as a control plane does it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from local.kubernetes.cluster import Kubelet
from local.kubernetes.managed import GPU
from local.kubernetes.real.build import MANIFESTS, minors
from local.kubernetes.real.control_plane import KWOK
from stockyard.machines import manifests
from stockyard.providers.clouds.aws.catalog.type_labels import GPU_NAME
from tests.kubernetes.conftest import Cluster
from tests.kubernetes.rigs import until

MINOR = minors()[1]
CONTROLLERS = manifests.Controllers(MINOR, "acme-demo-0123456789ab", {"stockyard:installation": "inst-1"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the machine's files once all is fetched and checked."""
    return fetched(tmp_path_factory.mktemp("manifests"), manifests.files(CONTROLLERS, GPU_NAME))


def fetched(root: Path, files: Mapping[str, str]) -> Path:
    """The folder ``root`` with a machine's files, and what these name of other projects."""
    for path, text in files.items():
        (root / Path(path).name).write_text(text)
    for line in (root / "sums").read_text().splitlines():
        path = line.split()[1]
        if not (MANIFESTS / path).exists():
            pytest.skip(f"{path} is not fetched: run make kubernetes where its host can be reached")
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(MANIFESTS / path, root / path)
    done = subprocess.run(["sha256sum", "--check", "--quiet", "sums"], cwd=root, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    return root


def applied(cluster: Cluster, kind: str, name: str) -> Any:
    answer = cluster.plane.kubectl("get", kind, name, "-n", "kube-system", "-o", "json")
    return json.loads(answer.stdout)


def test_network_and_controllers_are_taken(cluster: Cluster, folder: Path) -> None:
    cluster.plane.kubectl("apply", "-f", str(folder / manifests.FLANNEL.path / "kube-flannel.yml"))
    cluster.plane.kubectl("apply", "-k", str(folder))
    cluster.plane.kubectl("apply", "-k", str(folder))
    controller = applied(cluster, "daemonset", "aws-cloud-controller-manager")["spec"]["template"]["spec"]
    (container,) = controller["containers"]
    assert container["image"] == f"{manifests.CLOUD_IMAGE}:{manifests.CLOUD_IMAGE_TAGS[MINOR]}"
    assert {"--controllers=cloud-node", "--cluster-name=acme-demo-0123456789ab"} <= set(container["args"])
    driver = applied(cluster, "deployment", "ebs-csi-controller")["spec"]
    pod = driver["template"]["spec"]
    assert (driver["replicas"], pod["hostNetwork"]) == (1, True)
    assert pod["nodeSelector"]["node-role.kubernetes.io/control-plane"] == ""
    assert {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"} in pod["tolerations"]
    assert "csi-snapshotter" not in {container["name"] for container in pod["containers"]}
    assert "--extra-tags=stockyard:installation=inst-1" in pod["containers"][0]["args"]
    plugin = applied(cluster, "daemonset", "nvidia-device-plugin-daemonset")["spec"]["template"]["spec"]
    (term,) = plugin["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": GPU_NAME, "operator": "Exists"}]
    node = applied(cluster, "daemonset", "ebs-csi-node")["spec"]["template"]["spec"]
    assert "--metadata-sources=kubernetes" in node["containers"][0]["args"]


def test_the_device_plugin_runs_on_nodes_with_gpus_alone(web: Cluster, tmp_path: Path) -> None:
    kubectl = web.plane.kubectl
    taint = {"key": GPU, "value": "true", "effect": "NoSchedule"}
    machines = {"with-gpu": Kubelet("", 4, 16384).node("with-gpu", {GPU_NAME: "l4", KWOK: "on"}, [taint], "110")}
    machines["without"] = Kubelet("", 4, 16384).node("without", {KWOK: "on"}, [], "110")
    for name, node in machines.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(node))
        kubectl("create", "-f", str(tmp_path / f"{name}.json"))
    folder = fetched(tmp_path, manifests.files(None, GPU_NAME))
    kubectl("apply", "-k", str(folder))
    labels = "name=nvidia-device-plugin-ds"

    def nodes_with_plugin() -> list[str]:
        output_options = ("-o", "jsonpath={.items[*].spec.nodeName}")
        return kubectl("get", "pods", "-n", "kube-system", "-l", labels, *output_options).stdout.split()

    try:
        assert until(nodes_with_plugin) == ["with-gpu"]
    finally:
        kubectl("delete", "-k", str(folder))
        kubectl("delete", "nodes", *machines)


def test_claims_of_volumes_without_a_class_get_ours(cluster: Cluster, folder: Path, tmp_path: Path) -> None:
    cluster.plane.kubectl("apply", "-f", str(folder / "storage-class.yaml"))
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    path = tmp_path / "claim.json"
    path.write_text(json.dumps(claim))
    cluster.plane.kubectl("apply", "-f", str(path))
    answer = cluster.plane.kubectl("get", "pvc", "data", "-n", "default", "-o", "jsonpath={.spec.storageClassName}")
    assert answer.stdout == "gp3"
