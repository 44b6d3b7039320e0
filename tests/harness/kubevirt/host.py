"""A Kubernetes host with KubeVirt: the simulated API, strict as virt-api, and its controllers, in this process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from local.kubernetes.real.callers import InProcess
from local.kubevirt import VirtControllers, kinds, virtual_machine_faults
from local.kubevirt.launchers import SCHEDULABLE
from stockyard.providers.clouds.kubernetes import host_template
from stockyard.providers.clouds.kubernetes.features import KUBEVIRT
from stockyard.providers.clouds.kubernetes.marks import NODE_TYPE
from stockyard.providers.nodes.kubevirt.launch import KubeVirtConfig
from tests.harness.worlds.kubernetes_host import NAMESPACE, NUMBER, KubernetesHost
from tests.harness.worlds.memory import FixedClock

RESOURCES = ("virtualmachines", "virtualmachineinstances", "datavolumes", "persistentvolumeclaims", "secrets")
"""All that a machine may leave behind."""
_COUNT = "count/virtualmachines.kubevirt.io"
CONFIG = KubeVirtConfig("https://api.example.test")
IMAGE = {
    "kubevirt.vcluster.com/image-url": "docker://quay.io/containerdisks/ubuntu:22.04",
    "kubevirt.vcluster.com/root-disk-size": "20Gi",
}


class WithKubeVirt(KubernetesHost):
    """A host whose controllers take a step whenever time has passed, or something was changed, before they are seen
    again."""

    features: Sequence[str] = (KUBEVIRT,)
    controllers: VirtControllers
    full: set[str]
    """Node types of which no machine is taken: a quota of their own is used up."""
    is_bare = False
    """Whether nobody has installed KubeVirt."""

    def settle(self) -> None:
        """Let the controllers do what is to be done now."""
        raise NotImplementedError

    def answer(self, request: httpx.Request) -> httpx.Response:
        """See ``KubernetesHost.answer``."""
        self.settle()
        if self.is_bare and "kubevirt.io" in request.url.path:
            return httpx.Response(404, text="404 page not found")
        if request.method == "PATCH" and "/virtualmachines/" in request.url.path and self._is_full(request):
            text = f"exceeded quota: of-the-type, requested: {_COUNT}=1, used: {_COUNT}=1, limited: {_COUNT}=1"
            name = request.url.path.rpartition("/")[2]
            body = {"kind": "Status", "code": 403, "reason": "Forbidden"}
            body["message"] = f'virtualmachines.kubevirt.io "{name}" is forbidden: {text}'
            return httpx.Response(403, json=body)
        return super().answer(request)

    def _is_full(self, request: httpx.Request) -> bool:
        labels = json.loads(request.content)["metadata"].get("labels") or {}
        return labels.get(NODE_TYPE) in self.full

    def machines(self) -> list[str]:
        """The names of the machines that are there."""
        return [object_name.partition("/")[2] for object_name in self.objects("virtualmachines")]


class VirtualMachineHost(WithKubeVirt):
    """The host in this process."""

    def __init__(self, namespaces: Sequence[str] = (NAMESPACE,), clock: FixedClock | None = None) -> None:
        super().__init__(namespaces, clock)
        self.api.install(kinds())
        self.api.store.webhooks["VirtualMachine"] = virtual_machine_faults
        self.controllers = VirtControllers(InProcess(self.api), self.clock.now)
        self.full = set()
        self._seen: object = None

    def grant_everywhere(self) -> None:
        """Let the account do everything in every namespace."""
        group = "rbac.authorization.k8s.io"
        rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
        subject = {"kind": "ServiceAccount", "name": host_template.NAME, "namespace": NAMESPACE}
        about = {"apiVersion": f"{group}/v1", "metadata": {"name": "everything"}}
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": "everything"}
        self.api.install(
            [
                {**about, "kind": "ClusterRole", "rules": [rule]},
                {**about, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]},
            ]
        )

    def settle(self) -> None:
        """Let the controllers do what is to be done now."""
        while (now := (self.clock.now(), self.api.store.revision)) != self._seen:
            self._seen = now
            self.controllers.work()

    def node(self, name: str, taints: Sequence[Mapping[str, str]] = (), **allocatable: str) -> None:
        """Add a node on which machines may stand; from then on they need one."""
        self.controllers.on_nodes = True
        labels = {SCHEDULABLE: "true", "kubernetes.io/hostname": name}
        document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        status = {"allocatable": {"pods": "110", **allocatable}}
        self.api.install([{**document, "spec": {"taints": list(taints)}, "status": status}])

    def leftovers(self) -> list[str]:
        """Objects that machines have left behind, by resource."""
        self.settle()
        return [f"{resource} {object_name}" for resource in RESOURCES for object_name in self._of(resource)]

    def _of(self, resource: str) -> Mapping[str, Any]:
        """Objects of a resource in the namespaces of machines, marked or not."""
        spaces = self.account.attributes["namespaces"]
        return {
            f"{key.namespace}/{key.name}": document
            for key, document in self.api.store.objects.items()
            if key.resource == resource and key.namespace in spaces
        }


def block(*types: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A provider's block in the host's namespace, with a template that KubeVirt takes."""
    domain = {"devices": {}, "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}
    template = {"spec": {"template": {"spec": {"domain": domain}}}}
    return {
        "clusterRef": {"cluster": NUMBER, "namespace": NAMESPACE},
        "virtualMachineTemplate": template,
        "nodeTypes": list(types),
        **fields,
    }
