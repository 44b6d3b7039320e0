"""The kind ``kubeVirt``: its documents are stored and checked; nodes of it are not built yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from stockyard.domain.nodes.provider_kinds import Document, ProviderKind, Quantities, host_cluster, written_resources
from stockyard.domain.values.quantities import milli
from stockyard.providers.descriptors import NodeSourceDescriptor


def resources(block: Document, entry: Document) -> Quantities:
    """Resources of the virtual machine's template, and over them what the node type's entry says."""
    template = entry.get("virtualMachineTemplate")
    if template is None:
        template = _merged(block.get("virtualMachineTemplate") or {}, entry.get("mergeVirtualMachineTemplate") or {})
    return {**_of_machine(template), **written_resources(block, entry)}


def _merged(base: Any, change: Any) -> Any:
    """``base`` with ``change`` laid over it, object by object; null removes. Lists are replaced: none is on the way to
    the resources."""
    if not isinstance(base, Mapping) or not isinstance(change, Mapping):
        return change
    merged = {**base, **{key: _merged(base.get(key), value) for key, value in change.items()}}
    return {key: value for key, value in merged.items() if value is not None}


def _of_machine(template: Any) -> Quantities:
    """cpu, memory and the rest that a virtual machine's template asks for; a part that cannot be read is not there."""
    domain = _below(template, ("spec", "template", "spec", "domain"))
    cpu = _mapping(domain.get("cpu"))
    quantities: Quantities = {}
    numbers = [cpu[name] for name in ("cores", "sockets", "threads") if isinstance(cpu.get(name), int)]
    if numbers:
        quantities["cpu"] = prod(numbers)
    guest = _mapping(domain.get("memory")).get("guest")
    requests = _mapping(_mapping(domain.get("resources")).get("requests"))
    quantities = {**quantities, **({} if guest is None else {"memory": guest}), **requests}
    return {name: value for name, value in quantities.items() if _is_quantity(value)}


def _is_quantity(value: Any) -> bool:
    try:
        return milli(value) >= 0
    except ValueError:
        return False


def _below(document: Any, names: Iterable[str]) -> Mapping[str, Any]:
    for name in names:
        document = _mapping(document).get(name)
    return _mapping(document)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


KIND = ProviderKind(
    "kubeVirt",
    f"{__name__}.document:KubeVirtBlock",
    resources=resources,
    owned=True,
    account=host_cluster,
    cloud="kubernetes",
    cloud_title="Kubernetes",
)
DESCRIPTOR = NodeSourceDescriptor(KIND)
