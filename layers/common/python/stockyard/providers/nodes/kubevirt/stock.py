"""Number of machines of each node type that the host's nodes have room for, as they were last counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.records import NodeProvider
from stockyard.providers.clouds.kubernetes.node_room import Amounts, NodeRoom, Rooms, amounts, machine_key
from stockyard.providers.nodes.kubevirt.templates import MACHINE, Template, mapping_at, template_of
from stockyard.providers.nodes.kubevirt.virtual_machines import sized

_MIB = 1024 * 1024 * 1000
"""Of memory, in thousandths of a byte."""
_OVERHEAD_MIB, _OF_VCPU_MIB, _TABLES = 260, 8, 512
"""Memory that the programs around a guest take, by KubeVirt's own formula, near enough: in all, for each vCPU, and one
part of so many of the guest's memory."""
_OF_VCPU_MILLI = 100
"""Thousandths of a core that a vCPU asks for where the template asks for none: KubeVirt lets ten share a core."""


def totals(rooms: Rooms, provider: NodeProvider) -> dict[str, int]:
    """Number of machines of each type by its bare name: those that stand on nodes, and as many as there is room for
    beside them. Types share the room: each is counted as if it were alone."""
    block = block_of(provider)
    namespace = str(block["clusterRef"]["namespace"])
    result: dict[str, int] = {}
    for entry in block.get("nodeTypes") or ():
        name = str(entry["name"])
        machine = sized(mapping_at(template_of(block, entry), MACHINE), entry)
        needs = requests_of(machine)
        fits = sum(_fitting(node, needs) for node in rooms.nodes if _takes(node, machine))
        result[name] = fits + rooms.machines.get(machine_key(namespace, provider.id, name), 0)
    return result


def requests_of(machine: Template) -> Amounts:
    """Resources that a machine's pod asks for, as far as its template tells."""
    domain = mapping_at(machine, ("domain",))
    cpu = mapping_at(domain, ("cpu",))
    numbers = [cpu[name] for name in ("cores", "sockets", "threads") if isinstance(cpu.get(name), int)]
    guest = {"memory": mapping_at(domain, ("memory",)).get("guest")}
    limits, requests = (mapping_at(domain, ("resources", name)) for name in ("limits", "requests"))
    needs = Counter(amounts(guest) | amounts(limits) | amounts(requests))
    vcpus = prod(numbers) if numbers else max(1, -(-needs["cpu"] // 1000))
    needs["cpu"] = needs["cpu"] or vcpus * _OF_VCPU_MILLI
    needs["memory"] += (_OVERHEAD_MIB + _OF_VCPU_MIB * vcpus) * _MIB + needs["memory"] // _TABLES
    needs["pods"] = 1000
    devices = mapping_at(domain, ("devices",))
    for each in (*_listed(devices.get("gpus")), *_listed(devices.get("hostDevices"))):
        needs[str(each.get("deviceName"))] += 1000
    return needs


def _fitting(node: NodeRoom, needs: Amounts) -> int:
    return min(node.free.get(name, 0) // amount for name, amount in needs.items() if amount)


def _takes(node: NodeRoom, machine: Template) -> bool:
    """Whether the machine may stand on the node, by its selector and its tolerations; its affinity is not read."""
    selector = mapping_at(machine, ("nodeSelector",))
    tolerations = list(_listed(machine.get("tolerations")))
    return all(node.labels.get(key) == value for key, value in selector.items()) and all(
        any(_tolerates(each, taint) for each in tolerations) for taint in node.taints
    )


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    key = toleration.get("key") or ""
    if toleration.get("operator") == "Exists":
        return key in ("", taint["key"])
    return key == taint["key"] and str(toleration.get("value") or "") == taint["value"]


def _listed(entries: Any) -> Iterator[Mapping[str, Any]]:
    return (each for each in entries if isinstance(each, Mapping)) if isinstance(entries, Sequence) else iter(())
