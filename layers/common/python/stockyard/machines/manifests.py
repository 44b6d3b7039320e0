"""Third parties' manifests that a control plane applies: each file of a commit by its hash. Their text is not ours.

The machine fetches them from one base address, checks every one, and applies the network as it is. The cloud's
controllers are put together by kustomize, which is part of kubectl, with what this cluster's have to be told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BASE = "https://raw.githubusercontent.com"
"""Where the files are, below ``{repository}/{commit}/``. A mirror has the same paths."""
FOLDER = "/etc/stockyard/manifests"
"""Where the machine puts them, under the same paths."""


@dataclass(frozen=True, slots=True)
class Source:
    """A folder of a public repository at a commit. ``files``: a line for each, its sha256 and its name."""

    repository: str
    commit: str
    folder: str
    files: str

    @property
    def path(self) -> str:
        """The folder, below the base address."""
        return f"{self.repository}/{self.commit}/{self.folder}"

    def sums(self) -> Iterable[str]:
        """Lines for ``sha256sum --check``, one for each file."""
        rows = (line.split() for line in self.files.split("\n") if line)
        return (f"{digest}  {self.path}/{name}" for digest, name in rows)


FLANNEL = Source(
    "flannel-io/flannel",
    "5cd0d52648e891d73a6dcb9bb2c67d7c365cf7aa",
    "Documentation",
    "e875824be2f552b45711dbda91af81b17eb961d00025d914d9fef18fad8f09c0  kube-flannel.yml",
)
"""0.28.9; its default pod range is that of our clusters."""
CLOUD_CONTROLLER = Source(
    "kubernetes/cloud-provider-aws",
    "1c494fbc3edacf55e2a1e06df21858c03ff9c457",
    "examples/existing-cluster/base",
    """
7b1c43110064ac43717358c85d2308981d6606ccad18d02c1708106a205e56dc  apiserver-authentication-reader-role-binding.yaml
c7182ccf876dabee51a5e0f7155c667089a9a664536e4c2a33ac06ea8ce4c65e  aws-cloud-controller-manager-daemonset.yaml
94257525a59ad9e171bb1ecfdc35e282ae75021425d4c0c719933ba0024a0949  cluster-role-binding.yaml
5d68da38f2f4e586e88be18dab44a55dcf4d245de670b5b23c80991b13196cdb  cluster-role.yaml
67dd9ddc8cdf0bf163539d967518641658d1b2f99230890e45870243ce0e89d3  kustomization.yaml
bc55f6b9af0c43fb357a7fad7875945b628e5d85dc056a39cb4ac22c4e68ad94  service-account.yaml
""",
)
"""1.35.2; the folders of 1.34, 1.36 and 1.37 are the same, but for the image, which is named below."""

EBS_DRIVER = Source(
    "kubernetes-sigs/aws-ebs-csi-driver",
    "180b882717f4f8b437da125a11c78d9d60a641da",
    "deploy/kubernetes/base",
    """
cc797a6977f410150650751421bef2d3ee14da31b18b69d7333f8ab24a543a7b  clusterrole-attacher.yaml
85d21ca300c274783fe56dddb79bca80a85e9418318cfd4eedd97e97a078ec1d  clusterrole-csi-node.yaml
5dbf3b7db5e96f175292c1ae17b46acf2d213060ca6ebe6d6acd54cc998db8d2  clusterrole-provisioner.yaml
935fc2d6ebb30ee7f7d98d62571cd99149ceed0460d24a510a7307765b48adc6  clusterrole-resizer.yaml
6dd5427072a7f45d302acc24c567b48542d8685dc5a374b94de3362feeaf0433  clusterrole-snapshotter.yaml
99046c555443bc910376d7bd0aeb0334ec07932fc3fffe2b1c2029fead344d19  clusterrolebinding-attacher.yaml
1fe7f0b32896c1b57d87db7f08b438db6e4c932e0068d047bb6c7743f4269346  clusterrolebinding-csi-node.yaml
65f664cf6417f40c45398bac91a6bdd02b56472dd43f8aa06c128c3e47127ea0  clusterrolebinding-provisioner.yaml
db66c955a3b01a2577fae28449ba9d855e0bf9d044020275e1b6b5f93652c494  clusterrolebinding-resizer.yaml
5b5a7a50004d8fb6a4d62d4157e6ce96706f3e573a76ad16cb25cdbc35a047a2  clusterrolebinding-snapshotter.yaml
5a3457415030c0c7301215d5f80f7e8bc5e588e40ca325bf3c51e4433d790117  controller.yaml
cda3a71ee5a2c6f5eccc1786aac99b9c0b406545b257d7959d1c85945f3dcd38  csidriver.yaml
538adbc14bee4343280c30329b728aac8c265f44d30b8a7b085c487b0ecae3cf  kustomization.yaml
65ea334823e0966c5458388ce2ba29c85d25f08dfdadb90176e4eb6149c5eab1  node.yaml
9dc4fbc0d6214954b90ee2e4a82082441ab1c5e6d3de8afb499f21c40fa04944  poddisruptionbudget-controller.yaml
671eda0f174b82d53cfe1464f06a06323d559c61cceb4d18e705beabb6a00a0d  role-leases.yaml
a1c17a9fc63e46fdc54d5b4c18d0f0eade95e8f7e213322ba9164ef4c0c37f3b  rolebinding-leases.yaml
220692a597e986673ac099f659e7e52b1a98a4642e18322ec2f58a0fd9cbd6c4  serviceaccount-csi-controller.yaml
c7df4a9e08ac7218576ee38fa913ea8b5cbd8b3309aab55232385d42f530a9a0  serviceaccount-csi-node.yaml
""",
)
"""1.64.0. Its controller is told here to run on the control plane, whose role alone may make volumes."""
DEVICE_PLUGIN = Source(
    "NVIDIA/k8s-device-plugin",
    "570e776d6813cb9f3e9c8c105cf8d79989db6650",
    "deployments/static",
    "3b298ec5a81fb4289479ebee7955d287176cefa6ca977ea485c227e80e41dee5  nvidia-device-plugin.yml",
)
"""0.19.3. It gives a node its ``nvidia.com/gpu``, and does not start on a machine without a driver."""
CLOUD_IMAGE = "registry.k8s.io/provider-aws/cloud-controller-manager"
CLOUD_IMAGE_TAGS = {"1.34": "v1.34.3", "1.35": "v1.35.2", "1.36": "v1.36.2", "1.37": "v1.37.0"}
"""By minor of the cluster: a controller may not be newer than its API server."""
STORAGE_CLASS: Mapping[str, Any] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "gp3", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "ebs.csi.aws.com",
    "parameters": {"type": "gp3", "encrypted": "true"},
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowVolumeExpansion": True,
}


def storage_class(volume_key: str | None = None) -> dict[str, Any]:
    """The default class of volumes, which are encrypted by that key, or by the cloud's default one."""
    key = {"kmsKeyId": volume_key} if volume_key else {}
    return {**STORAGE_CLASS, "parameters": {**STORAGE_CLASS["parameters"], **key}}


_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_CONTAINERS = "/spec/template/spec/containers"


@dataclass(frozen=True, slots=True)
class Controllers:
    """Settings of the cloud's controllers of one cluster. ``volume_tags`` go on every volume that they make."""

    minor: str
    cluster_name: str
    volume_tags: Mapping[str, str]
    volume_key: str | None = None
    """The cloud's name of the key that encrypts volumes; None for the cloud's default one."""


def files(controllers: Controllers | None, gpu_label: str | None = None) -> dict[str, str]:
    """Path -> text of what the machine is given besides the manifests: those of the network, with ``controllers`` those
    of the cloud, and with ``gpu_label``, which nodes with GPUs have, the device plugin for those."""
    plugin = [DEVICE_PLUGIN] if gpu_label is not None else []
    cloud = [CLOUD_CONTROLLER, EBS_DRIVER] if controllers is not None else []
    sums = "".join(f"{line}\n" for source in (FLANNEL, *cloud, *plugin) for line in source.sums())
    written = {f"{FOLDER}/sums": sums}
    parts = [
        *([kustomization(controllers)] if controllers is not None else []),
        *([gpu_kustomization(gpu_label)] if gpu_label is not None else []),
    ]
    if controllers is not None:
        written[f"{FOLDER}/storage-class.yaml"] = json.dumps(storage_class(controllers.volume_key), indent=1)
    if parts:
        written[f"{FOLDER}/kustomization.yaml"] = json.dumps(_together(parts), indent=1)
    return written


def _together(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One document of several: their lists behind each other."""
    whole = dict(parts[0])
    for part in parts[1:]:
        whole |= {name: [*whole.get(name, ()), *value] for name, value in part.items() if isinstance(value, list)}
    return whole


def gpu_kustomization(gpu_label: str) -> dict[str, Any]:
    """The device plugin on nodes that have the label, whatever its value."""
    term = {"matchExpressions": [{"key": gpu_label, "operator": "Exists"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{DEVICE_PLUGIN.path}/nvidia-device-plugin.yml"],
        "patches": [
            _patch(
                "DaemonSet",
                "nvidia-device-plugin-daemonset",
                [_add("/spec/template/spec/affinity", {"nodeAffinity": required})],
            )
        ],
    }


def kustomization(controllers: Controllers) -> dict[str, Any]:
    """The controllers with their arguments, and the default class of volumes."""
    name, tags = controllers.cluster_name, ",".join(f"{k}={v}" for k, v in controllers.volume_tags.items())
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [CLOUD_CONTROLLER.path, EBS_DRIVER.path, "storage-class.yaml"],
        "images": [{"name": CLOUD_IMAGE, "newTag": CLOUD_IMAGE_TAGS[controllers.minor]}],
        "patches": [
            # No load balancers: they could not carry our tag, so that a deletion could not remove them. No removal of
            # nodes: the claim's life decides that, and nodes of other clouds would be taken for lost ones.
            _patch("DaemonSet", "aws-cloud-controller-manager", _arguments(0, "--controllers=cloud-node")),
            _patch("DaemonSet", "aws-cloud-controller-manager", _arguments(0, f"--cluster-name={name}")),
            # What pods on nodes may not read from the metadata service, the node's labels say.
            _patch("DaemonSet", "ebs-csi-node", _arguments(0, "--metadata-sources=kubernetes")),
            _patch(
                "Deployment",
                "ebs-csi-controller",
                [
                    *_arguments(0, f"--k8s-tag-cluster-id={name}", f"--extra-tags={tags}"),
                    _add("/spec/template/spec/hostNetwork", True),
                    _add("/spec/template/spec/nodeSelector/" + _CONTROL_PLANE.replace("/", "~1"), ""),
                    _add("/spec/template/spec/tolerations/-", {"key": _CONTROL_PLANE, "effect": "NoSchedule"}),
                    {"op": "replace", "path": "/spec/replicas", "value": 1},
                    # It needs definitions that nobody has installed.
                    {"op": "test", "path": f"{_CONTAINERS}/3/name", "value": "csi-snapshotter"},
                    {"op": "remove", "path": f"{_CONTAINERS}/3"},
                ],
            ),
        ],
    }


def _patch(kind: str, name: str, operations: list[dict[str, Any]]) -> dict[str, Any]:
    return {"target": {"kind": kind, "name": name}, "patch": json.dumps(operations)}


def _arguments(container: int, *arguments: str) -> list[dict[str, Any]]:
    return [_add(f"{_CONTAINERS}/{container}/args/-", argument) for argument in arguments]


def _add(path: str, value: object) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}
