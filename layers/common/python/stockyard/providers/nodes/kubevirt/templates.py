"""Templates of virtual machines: a node type's replaces the provider's, or is merged over it.

Lists that KubeVirt merges by the names of their entries are merged so, everything else as a JSON merge patch
(RFC 7386), which replaces a list. Pure: the golden cases are in ``tests/unit/providers/nodes/kubevirt/merges.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from stockyard.domain.nodes.provider_kinds import Document, Quantities, written_resources
from stockyard.domain.values.quantities import milli

Template = Mapping[str, Any]
BASE, REPLACEMENT, CHANGE = "virtualMachineTemplate", "virtualMachineTemplate", "mergeVirtualMachineTemplate"
MACHINE = ("spec", "template", "spec")
DEVICES = (*MACHINE, "domain", "devices")
BY_NAME = frozenset({(*DEVICES, "disks"), (*DEVICES, "interfaces"), (*MACHINE, "volumes"), (*MACHINE, "networks")})
"""Lists whose entries are known by their names."""
DIRECTIVE = "$patch"
"""The member of an entry that says ``delete``, or ``replace`` for the whole list, as in a strategic merge patch."""


def template_of(block: Document, entry: Document) -> Template:
    """The template of a node type: its own, or the provider's with its changes."""
    own: Template | None = entry.get(REPLACEMENT)
    if own is not None:
        return own
    result: Template = merged(block.get(BASE) or {}, entry.get(CHANGE) or {})
    return result


def merged(base: Any, change: Any, path: tuple[str, ...] = ()) -> Any:
    """``base`` with ``change`` laid over it; neither is changed. A null removes."""
    if isinstance(change, Mapping):
        before = base if isinstance(base, Mapping) else {}
        result = dict(before)
        for name, value in change.items():
            if value is None:
                result.pop(name, None)
            else:
                result[name] = merged(before.get(name), value, (*path, name))
        return result
    if isinstance(change, list) and path in BY_NAME:
        return _by_name(base if isinstance(base, list) else [], change)
    return change


def _by_name(base: Sequence[Any], change: Sequence[Any]) -> list[Any]:
    """Entries of both lists, those of one name merged, in the order of ``base``; new ones behind."""
    if any(_directive(entry) == "replace" for entry in change):
        base, change = [], [entry for entry in change if _directive(entry) != "replace"]
    result = list(base)
    for entry in change:
        name = entry.get("name") if isinstance(entry, Mapping) else None
        index = next((at for at, each in enumerate(result) if name is not None and _name(each) == name), None)
        if _directive(entry) == "delete":
            result = [each for each in result if name is None or _name(each) != name]
        elif index is None:
            result.append(merged(None, entry) if isinstance(entry, Mapping) else entry)
        else:
            result[index] = merged(result[index], entry)
    return result


def _name(entry: Any) -> Any:
    return entry.get("name") if isinstance(entry, Mapping) else None


def _directive(entry: Any) -> Any:
    return entry.get(DIRECTIVE) if isinstance(entry, Mapping) else None


def resources(block: Document, entry: Document) -> Quantities:
    """Resources of the virtual machine's template, and over them what the node type's entry says."""
    return {**_of_machine(template_of(block, entry)), **written_resources(block, entry)}


def _of_machine(template: Any) -> Quantities:
    """cpu, memory and the rest that a virtual machine's template asks for; a part that cannot be read is not there."""
    domain = mapping_at(template, (*MACHINE, "domain"))
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


def mapping_at(document: Any, names: Iterable[str]) -> Mapping[str, Any]:
    """The object below a document; an empty one where there is none."""
    for name in names:
        document = _mapping(document).get(name)
    return _mapping(document)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
