"""The document of a VirtualMachine: its template with an image, a network, the first boot and our marks. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.domain.nodes.provider_kinds import Document
from stockyard.domain.values.quantities import milli
from stockyard.providers.clouds.kubernetes.marks import GENERATION, NODE_PROVIDER, NODE_TYPE, label_value
from stockyard.providers.nodes.kubevirt import networks, properties
from stockyard.providers.nodes.kubevirt.templates import MACHINE, Template, mapping_at, merged

API_VERSION, KIND, INSTANCE = "kubevirt.io/v1", "VirtualMachine", "VirtualMachineInstance"
CDI_VERSION, DATA_VOLUME = "cdi.kubevirt.io/v1beta1", "DataVolume"
FIRST_BOOT, ROOT_DISK = "cloudinitdisk", "rootdisk"
"""Names of the disks and volumes that are ours."""
ALWAYS, HALTED = "Always", "Halted"
NO_FIELDS: Mapping[tuple[str, ...], str] = {
    (
        *MACHINE,
        "taints",
    ): "KubeVirt's machines have no taints, so these are left out; give them to claims or to a pool.",
}
"""Fields that published documents have, that no machine has, and that an API server takes away."""
_VIRTIO = {"bus": "virtio"}


@dataclass(frozen=True, slots=True)
class Names:
    """Name of a machine and of what belongs to it. ``marks`` are the labels by which all of it is known as ours;
    ``provider`` is the id of its provider, None for a trial."""

    machine: str
    namespace: str
    marks: Mapping[str, str]
    provider: str | None = None

    @property
    def first_boot(self) -> str:
        """The Secret of the first boot, with user data and network data."""
        return f"{self.machine}-first-boot"

    def volume(self, name: str) -> str:
        """The DataVolume of that name in a template, which several machines have."""
        return f"{self.machine}-{name}"


def document(
    template: Template, names: Names, entry: Document, settings: Mapping[str, str], *, has_network_data: bool = False
) -> dict[str, Any]:
    """The VirtualMachine that is made from the template of a node type, which ``entry`` is in the provider's document.
    What is ours comes last, and wins."""
    meta, spec = mapping_at(template, ("metadata",)), dict(mapping_at(template, ("spec",)))
    of_type = {NODE_TYPE: entry["name"], **({NODE_PROVIDER: names.provider} if names.provider is not None else {})}
    own = {key: label_value(text) for key, text in of_type.items()} | dict(names.marks)
    labels = {**(meta.get("labels") or {}), **own}
    about = {"name": names.machine, "namespace": names.namespace, "labels": labels}
    if annotations := meta.get("annotations"):
        about["annotations"] = dict(annotations)
    spec.pop("running", None)
    volumes = _own_volumes(spec, names, settings)
    inner = mapping_at(spec, ("template",))
    inner_meta = dict(mapping_at(inner, ("metadata",)))
    # A machine's instance goes with the machine, so the sweep looks for machines alone.
    instance_marks = {key: text for key, text in names.marks.items() if key != GENERATION}
    inner_meta["labels"] = {**(inner_meta.get("labels") or {}), **instance_marks}
    machine = _machine(
        sized(mapping_at(inner, ("spec",)), entry), names, settings, volumes, has_network_data=has_network_data
    )
    spec |= {"runStrategy": ALWAYS, "template": {**inner, "metadata": inner_meta, "spec": machine}}
    if volumes:
        spec["dataVolumeTemplates"] = list(volumes.values())
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": about, "spec": spec}


def sized(machine: Template, entry: Document) -> Template:
    """The specification with the cpu and the memory that the node type says itself: a node is as large as pods are
    told."""
    written = {name: str(value) for name, value in (entry.get("resources") or {}).items() if name in ("cpu", "memory")}
    if not written:
        return machine
    domain = dict(mapping_at(machine, ("domain",)))
    resources = mapping_at(domain, ("resources",))
    requests = {**mapping_at(resources, ("requests",)), **written}
    limits = {name: value for name, value in mapping_at(resources, ("limits",)).items() if name not in written}
    domain["resources"] = {**resources, "requests": requests, **({"limits": limits} if limits else {})}
    if not limits:
        domain["resources"].pop("limits", None)
    if "cpu" in written and "cpu" in domain:
        cpu = {
            name: value for name, value in mapping_at(domain, ("cpu",)).items() if name not in ("sockets", "threads")
        }
        domain["cpu"] = {**cpu, "cores": -(-milli(written["cpu"]) // 1000)}
    if "memory" in written and "guest" in mapping_at(domain, ("memory",)):
        domain["memory"] = {**domain["memory"], "guest": written["memory"]}
    return {**machine, "domain": domain}


def _own_volumes(spec: Mapping[str, Any], names: Names, settings: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """DataVolumes of the machine, by their names in the template: each machine has its own, with our marks."""
    written: dict[str, Any] = {}
    for entry in spec.get("dataVolumeTemplates") or ():
        name = str(mapping_at(entry, ("metadata",)).get("name", ""))
        written[name] = entry
    if properties.has_image(settings):
        written[ROOT_DISK] = _root_disk(settings)
    volumes = {}
    for name, entry in written.items():
        meta = mapping_at(entry, ("metadata",))
        labels = {**(meta.get("labels") or {}), **names.marks}
        volumes[name] = {**entry, "metadata": {**meta, "name": names.volume(name), "labels": labels}}
    return volumes


def _root_disk(settings: Mapping[str, str]) -> dict[str, Any]:
    spec: dict[str, Any] = {"storage": {"resources": {"requests": {"storage": settings[properties.DISK_SIZE]}}}}
    if source := settings.get(properties.DATA_SOURCE):
        namespace, _, name = source.rpartition("/")
        spec["sourceRef"] = {"kind": "DataSource", "name": name, **({"namespace": namespace} if namespace else {})}
    else:
        url = settings[properties.IMAGE_URL]
        spec["source"] = {"registry" if url.startswith("docker://") else "http": {"url": url}}
    volume: dict[str, Any] = {"spec": spec}
    if text := settings.get(properties.DISK_TEMPLATE):
        volume = merged(volume, properties.mapping(text))
    return volume


def _machine(
    template: Template,
    names: Names,
    settings: Mapping[str, str],
    own_volumes: Mapping[str, Any],
    *,
    has_network_data: bool,
) -> dict[str, Any]:
    """The specification of the machine's instance."""
    machine = {name: value for name, value in template.items() if (*MACHINE, name) not in NO_FIELDS}
    domain = dict(mapping_at(machine, ("domain",)))
    devices = dict(mapping_at(domain, ("devices",)))
    volumes = [_renamed(volume, names, own_volumes) for volume in machine.get("volumes") or ()]
    first_boot: dict[str, Any] = {"secretRef": {"name": names.first_boot}}
    if has_network_data:
        first_boot["networkDataSecretRef"] = {"name": names.first_boot}
    own: dict[str, dict[str, Any]] = {FIRST_BOOT: {"cloudInitNoCloud": first_boot}}
    if ROOT_DISK in own_volumes:
        own = {ROOT_DISK: {"dataVolume": {"name": names.volume(ROOT_DISK)}}, **own}
    disks = [{"name": name, "disk": _VIRTIO} | ({"bootOrder": 1} if name == ROOT_DISK else {}) for name in own]
    devices["disks"] = [*_without(devices.get("disks") or (), own), *disks]
    machine["volumes"] = [*_without(volumes, own), *({"name": name, **volume} for name, volume in own.items())]
    if pair := networks.attachment(settings):
        interface, network = pair
        devices["interfaces"] = [*_without(devices.get("interfaces") or (), {networks.NAME}), interface]
        machine["networks"] = [*_without(machine.get("networks") or (), {networks.NAME}), network]
    machine["domain"] = {**domain, "devices": devices}
    return machine


def _without(entries: Sequence[Any], names: Mapping[str, Any] | set[str]) -> list[Any]:
    """Entries of a list that are not called so."""
    return [entry for entry in entries if not (isinstance(entry, Mapping) and entry.get("name") in names)]


def _renamed(volume: Any, names: Names, own_volumes: Mapping[str, Any]) -> Any:
    """The volume by the name that its DataVolume has for this machine."""
    if not isinstance(volume, Mapping):
        return volume
    for member, field in (("dataVolume", "name"), ("persistentVolumeClaim", "claimName")):
        name = mapping_at(volume, (member,)).get(field)
        if name in own_volumes:
            return {**volume, member: {**volume[member], field: names.volume(str(name))}}
    return volume
