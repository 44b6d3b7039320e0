"""virt-controller and the importer of images, as their documents say: from VirtualMachine to instance to status.

They speak to an API server, simulated or real, by the same requests, and start no guest: whoever wants one watches the
instances. A round takes each machine one step further. What is not played: migration, snapshots, hotplug.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from local.kubernetes.real.callers import Caller
from local.kubernetes.real.client import Refused
from local.kubernetes.store import stamp
from local.kubevirt.launchers import Launchers
from stockyard.domain.values.quantities import milli

ROOT, CDI = "/apis/kubevirt.io/v1", "/apis/cdi.kubevirt.io/v1beta1"
MACHINE_FINALIZER = "kubevirt.io/virtualMachineControllerFinalize"
INSTANCE_FINALIZER = "foregroundDeleteVirtualMachine"
MERGE = "application/merge-patch+json"
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seconds:
    """Lengths of what takes time."""

    image: float = 3.0
    start: float = 2.0
    stop: float = 1.0


@dataclass
class VirtControllers:
    """Works on all machines of a cluster, a round at a time.

    ``on_nodes``: machines stand on the cluster's nodes, by pods; else nothing bounds them. ``broken_images`` are
    references and addresses that cannot be fetched. ``refused_pods`` are namespaces whose quota takes no pod.
    """

    caller: Caller
    now: Callable[[], datetime]
    seconds: Seconds = field(default_factory=Seconds)
    on_nodes: bool = False
    broken_images: set[str] = field(default_factory=set)
    refused_pods: set[str] = field(default_factory=set)

    def work(self) -> None:
        """One round."""
        for machine in self._listed(f"{ROOT}/virtualmachines", "VirtualMachine"):
            try:
                self._step(machine)
            except Refused as refused:
                if refused.status not in (404, 409):  # somebody was quicker: the next round sees it
                    raise
        for instance in self._listed(f"{ROOT}/virtualmachineinstances", "VirtualMachineInstance"):
            self._end(instance)
        self._collect()

    def _listed(self, path: str, kind: str) -> list[Object]:
        return [{"kind": kind, **item} for item in self.caller.call("GET", path)["items"]]

    def _step(self, machine: Object) -> None:
        meta = machine["metadata"]
        finalizers = list(meta.get("finalizers") or ())
        instance = self._get(f"{ROOT}/namespaces/{meta['namespace']}/virtualmachineinstances/{meta['name']}")
        if meta.get("deletionTimestamp"):
            if instance is not None:
                self._delete(instance, "virtualmachineinstances")
                self._tell(machine, "Terminating", instance)
            elif MACHINE_FINALIZER in finalizers:
                self._patch(machine, {"metadata": {"finalizers": [f for f in finalizers if f != MACHINE_FINALIZER]}})
            return
        if MACHINE_FINALIZER not in finalizers:
            self._patch(machine, {"metadata": {"finalizers": [*finalizers, MACHINE_FINALIZER]}})
        spec = machine["spec"]
        is_wanted = spec.get("runStrategy") == "Always" or spec.get("running") is True
        if not is_wanted:
            if instance is not None:
                self._delete(instance, "virtualmachineinstances")
            self._tell(machine, "Stopping" if instance is not None else "Stopped", instance)
        elif instance is None:
            self._start(machine)
        elif instance["metadata"].get("deletionTimestamp"):
            self._tell(machine, "Stopping", instance)
        else:
            self._go_on(machine, instance)

    def _start(self, machine: Object) -> None:
        """Import what the machine's disks are made from, and then make its instance."""
        states = [
            self._volume_state(machine, template) for template in machine["spec"].get("dataVolumeTemplates") or ()
        ]
        failed = next((text for state, text in states if state == "failed"), None)
        if failed is not None:
            self._tell(machine, "DataVolumeError", None, ("DataVolumesReady", "ImportFailed", failed))
        elif any(state == "importing" for state, _ in states):
            self._tell(machine, "Provisioning", None, ("DataVolumesReady", "NotReady", "the image is being imported"))
        elif machine["metadata"]["namespace"] in self.refused_pods:
            text = f'failed to create virtual machine pod: pods "virt-launcher-{machine["metadata"]["name"]}" is'
            text += (
                " forbidden: exceeded quota: pods, requested: count/pods=1, used: count/pods=1, limited: count/pods=1"
            )
            self._tell(machine, "Starting", None, ("Failure", "FailedCreate", text), failure=True)
        else:
            self._make_instance(machine)

    def _volume_state(self, machine: Object, template: Mapping[str, Any]) -> tuple[str, str]:
        meta, name = machine["metadata"], template["metadata"]["name"]
        space = f"{CDI}/namespaces/{meta['namespace']}/datavolumes"
        volume = self._get(f"{space}/{name}")
        if volume is None:
            body = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", **template}
            body["metadata"] = {
                **template["metadata"],
                "namespace": meta["namespace"],
                "ownerReferences": [_owner(machine)],
            }
            volume = self.caller.call("POST", space, body)
            claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            about = {"name": name, "namespace": meta["namespace"], "labels": template["metadata"].get("labels") or {}}
            reference = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": name}
            about["ownerReferences"] = [{**reference, "uid": volume["metadata"]["uid"]}]
            document = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": claim}
            self.caller.call("POST", f"/api/v1/namespaces/{meta['namespace']}/persistentvolumeclaims", document)
        source = template["spec"].get("source") or {}
        url = next((str(each.get("url")) for each in source.values() if isinstance(each, dict)), "")
        if url in self.broken_images:
            return "failed", f"Unable to connect to {url}"
        return ("importing" if self._age(volume) < self.seconds.image else "ready"), ""

    def _make_instance(self, machine: Object) -> None:
        meta, template = machine["metadata"], machine["spec"]["template"]
        labels = {**((template.get("metadata") or {}).get("labels") or {}), "kubevirt.io/vm": meta["name"]}
        about = {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": labels,
            "finalizers": [INSTANCE_FINALIZER],
            "ownerReferences": [_owner(machine)],
        }
        body = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": about}
        path = f"{ROOT}/namespaces/{meta['namespace']}/virtualmachineinstances"
        instance = self.caller.call("POST", path, {**body, "spec": template["spec"]})
        self._go_on(machine, instance)

    def _go_on(self, machine: Object, instance: Object) -> None:
        """The next state of a machine that has an instance."""
        images = [volume["containerDisk"]["image"] for volume in _volumes(instance) if "containerDisk" in volume]
        broken = next((image for image in images if image in self.broken_images), None)
        if (instance.get("status") or {}).get("phase") == "Running":
            self._tell(machine, "Running", instance)
        elif self.on_nodes and not Launchers(self.caller).placed(instance):
            text = "0/3 nodes are available: 3 Insufficient memory."
            self._tell(machine, "ErrorUnschedulable", instance, ("PodScheduled", "Unschedulable", text))
        elif broken is not None:
            late = self._age(instance) > self.seconds.start * 5
            name = "ImagePullBackOff" if late else "ErrImagePull"
            self._tell(machine, name, instance, ("Ready", name, f'Back-off pulling image "{broken}"'))
        elif not all(self._has_secret(instance, name) for name in _secrets(instance)):
            self._tell(
                machine, "Starting", instance, ("Ready", "GuestNotRunning", "the Secret of cloud-init is not there")
            )
        elif self._age(instance) < self.seconds.start:
            self._tell(
                machine, "Starting", instance, ("Ready", "GuestNotRunning", "Guest VM is not reported as running")
            )
        else:
            self._patch(instance, {"status": {"phase": "Running"}}, "virtualmachineinstances", "/status")
            self._tell(machine, "Running", instance)

    def _has_secret(self, instance: Object, name: str) -> bool:
        return self._get(f"/api/v1/namespaces/{instance['metadata']['namespace']}/secrets/{name}") is not None

    def _end(self, instance: Object) -> None:
        """An instance that was deleted is gone when its guest has shut down."""
        since = instance["metadata"].get("deletionTimestamp")
        if since and (self.now() - datetime.fromisoformat(since)).total_seconds() >= self.seconds.stop:
            if self.on_nodes:
                Launchers(self.caller).remove(instance)
            self._patch(instance, {"metadata": {"finalizers": []}}, "virtualmachineinstances")

    def _collect(self) -> None:
        """Delete what belongs to a machine or a volume that is gone, as Kubernetes' collector of garbage does."""
        uids = {each["metadata"]["uid"] for each in self._listed(f"{ROOT}/virtualmachines", "VirtualMachine")}
        volumes = self._listed(f"{CDI}/datavolumes", "DataVolume")
        volume_uids = self._collected(volumes, "datavolumes", uids)
        claims = self._listed("/api/v1/persistentvolumeclaims", "PersistentVolumeClaim")
        self._collected(claims, "persistentvolumeclaims", uids | volume_uids)
        self._collected(self._listed("/api/v1/secrets", "Secret"), "secrets", uids)

    def _collected(self, items: list[Object], resource: str, uids: set[str]) -> set[str]:
        present: set[str] = set()
        for item in items:
            owners = item["metadata"].get("ownerReferences") or ()
            own = [owner for owner in owners if owner["kind"] in ("VirtualMachine", "DataVolume")]
            if own and not any(owner["uid"] in uids for owner in own):
                self._delete(item, resource)
            else:
                present.add(item["metadata"]["uid"])
        return present

    def _tell(
        self,
        machine: Object,
        name: str,
        instance: Object | None,
        why: tuple[str, str, str] | None = None,
        *,
        failure: bool = False,
    ) -> None:
        """Write the machine's status, where it is another one."""
        before = machine.get("status") or {}
        is_ready = name == "Running"
        conditions = [{"type": "Ready", "status": "True" if is_ready else "False"}]
        if why is not None:
            kind, reason, text = why
            conditions = [each for each in conditions if each["type"] != kind]
            conditions.append(
                {"type": kind, "status": "True" if failure else "False", "reason": reason, "message": text}
            )
        earlier = {(each["type"], each["status"]): each for each in before.get("conditions") or ()}
        for each in conditions:
            old = earlier.get((each["type"], each["status"])) or {}
            each["lastTransitionTime"] = old.get("lastTransitionTime") or stamp(self.now())
        status = {"printableStatus": name, "created": instance is not None, "ready": is_ready, "conditions": conditions}
        if {key: before.get(key) for key in status} != status:
            self._patch(machine, {"status": status}, part="/status")

    def _patch(self, document: Object, change: Object, resource: str = "virtualmachines", part: str = "") -> None:
        meta = document["metadata"]
        path = f"{ROOT}/namespaces/{meta['namespace']}/{resource}/{meta['name']}{part}"
        self.caller.call("PATCH", path, change, MERGE)

    def _delete(self, document: Object, resource: str) -> None:
        meta = document["metadata"]
        if meta.get("deletionTimestamp"):
            return
        root = {"datavolumes": CDI, "virtualmachineinstances": ROOT}.get(resource, "/api/v1")
        try:
            self.caller.call("DELETE", f"{root}/namespaces/{meta['namespace']}/{resource}/{meta['name']}")
        except Refused as refused:
            if refused.status != 404:
                raise

    def _get(self, path: str) -> Object | None:
        try:
            answer: Object = self.caller.call("GET", path)
        except Refused as refused:
            if refused.status != 404:
                raise
            return None
        return answer

    def _age(self, document: Object) -> float:
        return (self.now() - datetime.fromisoformat(document["metadata"]["creationTimestamp"])).total_seconds()


def requests(instance: Mapping[str, Any]) -> tuple[float, float]:
    """CPUs and bytes of memory that an instance asks for."""
    domain = instance["spec"]["domain"]
    wished = (domain.get("resources") or {}).get("requests") or {}
    memory = wished.get("memory") or (domain.get("memory") or {}).get("guest") or 0
    cpu = wished.get("cpu") or (domain.get("cpu") or {}).get("cores") or 0
    return milli(cpu) / 1000, milli(memory) / 1000


def _owner(document: Object) -> Object:
    meta = document["metadata"]
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def _volumes(instance: Object) -> list[Mapping[str, Any]]:
    return instance["spec"].get("volumes") or []


def _secrets(instance: Object) -> Iterator[str]:
    for volume in _volumes(instance):
        cloud_init = volume.get("cloudInitNoCloud") or {}
        for name in ("secretRef", "networkDataSecretRef"):
            if cloud_init.get(name):
                yield cloud_init[name]["name"]
