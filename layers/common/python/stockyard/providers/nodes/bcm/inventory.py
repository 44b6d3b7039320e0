"""The hosts of each node type: those that the document names, and the members of the groups that it names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.records import NodeProvider
from stockyard.errors import VendorRefused
from stockyard.providers.clouds.bcm import sheets
from stockyard.providers.clouds.bcm.client import HeadNode
from stockyard.providers.clouds.bcm.devices import Device
from stockyard.providers.clouds.bcm.sheets import Host, Sheet

HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?", re.ASCII)
EVERYTHING = "all"
"""A name that no node and no group is taken for: whoever means every node names them."""
POWER_OFF = "stockyard.dev/power-off-when-free"
"""Property of a type or a provider: with ``true`` its hosts are switched off once they have been wiped."""


def entries(provider: NodeProvider) -> Sequence[Mapping[str, Any]]:
    """The node types as the document has them."""
    return block_of(provider).get("nodeTypes") or ()


def names_in(entry: Mapping[str, Any], field: str) -> Sequence[str]:
    """Names of an entry that may be meant: of ``nodes`` or ``nodeGroups``."""
    return [name for name in entry.get(field) or () if is_name(name)]


def is_name(name: str) -> bool:
    """Whether a name of a node or a group is one, and stands for no more than that."""
    return HOST_NAME.fullmatch(name) is not None and name.lower() != EVERYTHING


def type_of(provider: NodeProvider, hostname: str, groups: Sequence[str]) -> str | None:
    """Name of the first type that the host is of; None where it is of none."""
    for entry in entries(provider):
        if hostname in names_in(entry, "nodes") or set(groups) & set(names_in(entry, "nodeGroups")):
            return str(entry["name"])
    return None


def hosts_by_type(provider: NodeProvider, sheet: Sheet) -> Mapping[str, Sequence[Host]]:
    """The hosts of each type by the sheet, each in one type, in order of name; those that may not be installed too."""
    hosts: dict[str, list[Host]] = {str(entry["name"]): [] for entry in entries(provider)}
    for host in sorted(sheet.hosts, key=lambda host: host.hostname):
        name = type_of(provider, host.hostname, host.groups)
        if name is not None:
            hosts[name].append(host)
    return hosts


def counted(hosts: Sequence[Host]) -> Sequence[Host]:
    """Hosts that Stockyard may install, in use or not."""
    return [host for host in hosts if host.why_not is None]


def live_hosts(provider: NodeProvider, head_node: HeadNode) -> Mapping[str, Sequence[Device]]:
    """The devices of each type as they are now, in order of name."""
    needs_groups = any(names_in(entry, "nodeGroups") for entry in entries(provider))
    groups = head_node.groups() if needs_groups else {}
    if groups is None:
        raise VendorRefused("The head node does not tell its groups.", hint="Name the nodes of each type.")
    hosts: dict[str, list[Device]] = {str(entry["name"]): [] for entry in entries(provider)}
    for device in sorted(head_node.devices(), key=lambda device: device.hostname):
        inside = [name for name, members in groups.items() if device.uuid and device.uuid in members]
        name = type_of(provider, device.hostname, inside) if device.hostname else None
        if name is not None:
            hosts[name].append(device)
    return hosts


def read_sheet(sheet: bytes | None) -> Sheet | None:
    """The inventory of a sheet; None where there is none, or another release has written it."""
    try:
        return sheets.read(sheet) if sheet is not None else None
    except VendorRefused:
        return None


def ends_off(provider: NodeProvider, type_name: str) -> bool:
    """Whether hosts of the type are switched off when nobody has them."""
    entry = next((each for each in entries(provider) if each["name"] == type_name), {})
    properties = {**provider.properties, **(entry.get("properties") or {})}
    return properties.get(POWER_OFF) == "true"
