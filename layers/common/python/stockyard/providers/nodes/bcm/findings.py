"""Faults of a provider's document, and the hosts that it lets Stockyard install: from the sheet, without a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.records import CloudAccount, NodeProvider
from stockyard.domain.values.pointers import pointer
from stockyard.ports import Finding
from stockyard.providers.clouds.bcm.sheets import Sheet
from stockyard.providers.nodes.bcm.inventory import POWER_OFF, counted, ends_off, entries, hosts_by_type, is_name

_NETWORK = ("bcm.vcluster.com/network-", "netris.vcluster.com/")
"""Beginnings of properties of networks that Stockyard does not set up."""
_UNKNOWN = "The inventory is not known yet: types have no hosts until the account has been verified and refreshed."


def findings(provider: NodeProvider, account: CloudAccount | None, sheet: Sheet | None) -> Sequence[Finding]:
    """Faults first, then what somebody may want to know before hosts are installed."""
    faults = [*_endpoint(provider, account), *_properties(provider), *_names(provider)]
    if sheet is None:
        return [*faults, Finding("/spec/secretRef", _UNKNOWN, warning=True)]
    return [*faults, *_of_inventory(provider, sheet)]


def unsupported(*properties: Mapping[str, str]) -> str | None:
    """The first of the properties that asks for a network of its own; None for none."""
    return next((key for each in properties for key in each if key.startswith(_NETWORK)), None)


def _endpoint(provider: NodeProvider, account: CloudAccount | None) -> Iterator[Finding]:
    """A document's endpoint is never called: the account has one, which was pinned."""
    written = str(block_of(provider)["endpoint"]).rstrip("/")
    there = account.attributes.get("endpoint") if account is not None else None
    if there is not None and written.lower() != str(there).lower():
        yield Finding("/spec/endpoint", f"The account's head node is at {there}.")


def _properties(provider: NodeProvider) -> Iterator[Finding]:
    field_paths: list[tuple[tuple[str | int, ...], Mapping[str, str]]] = [(("properties",), provider.properties)]
    for index, entry in enumerate(entries(provider)):
        field_paths.append((("spec", "nodeTypes", index, "properties"), entry.get("properties") or {}))
    for field_path, properties in field_paths:
        for key, value in properties.items():
            if key.startswith(_NETWORK):
                yield Finding(pointer(*field_path, key), f"{key}: networks of hosts are not set up by Stockyard.")
            if key == POWER_OFF and value not in ("true", "false"):
                yield Finding(pointer(*field_path, key), "must be true or false")


def _names(provider: NodeProvider) -> Iterator[Finding]:
    types: dict[str, str] = {}
    for index, entry in enumerate(entries(provider)):
        if not (entry.get("nodes") or entry.get("nodeGroups")):
            text = "name nodes or nodeGroups: no type has every node of a head node"
            yield Finding(pointer("spec", "nodeTypes", index, "nodes"), text)
        for field in ("nodes", "nodeGroups"):
            for number, name in enumerate(entry.get(field) or ()):
                field_path = pointer("spec", "nodeTypes", index, field, number)
                if not is_name(name):
                    yield Finding(field_path, "must be the name of one node or group: no pattern, and never all")
                elif types.setdefault(f"{field}/{name}", str(entry["name"])) != entry["name"]:
                    yield Finding(field_path, f"{name} is of type {types[f'{field}/{name}']} already")


def _of_inventory(provider: NodeProvider, sheet: Sheet) -> Iterator[Finding]:
    by_name = {host.hostname: host for host in sheet.hosts}
    hosts = hosts_by_type(provider, sheet)
    for index, entry in enumerate(entries(provider)):
        yield from _of_entry(("spec", "nodeTypes", index), entry, by_name, sheet.groups)
        if ends_off(provider, entry["name"]) and not sheet.tells_status:
            text = "The head node does not tell when an installation has ended, so no host is switched off after it."
            yield Finding(pointer("spec", "nodeTypes", index, "properties"), text)
        for host in hosts[entry["name"]]:
            owners = [
                each["name"] for each in entries(provider)[index + 1 :] if _is_of(each, host.hostname, host.groups)
            ]
            if owners:
                text = f"{host.hostname} is of type {entry['name']} and of {owners[0]}: it counts for the first."
                yield Finding(pointer("spec", "nodeTypes", index), text, warning=True)


def hosts_of_types(provider: NodeProvider, sheet: Sheet | None) -> Sequence[Finding]:
    """A remark for each type: its hosts by name."""
    if sheet is None:
        return [Finding("/spec/secretRef", _UNKNOWN, warning=True)]
    hosts = hosts_by_type(provider, sheet)
    return [
        Finding(pointer("spec", "nodeTypes", index), _plan(hosts[entry["name"]]), warning=True)
        for index, entry in enumerate(entries(provider))
    ]


def _of_entry(
    here: tuple[str | int, ...], entry: Mapping[str, Any], by_name: Mapping[str, Any], groups: Sequence[str] | None
) -> Iterator[Finding]:
    for number, name in enumerate(entry.get("nodes") or ()):
        host = by_name.get(name)
        field_path = pointer(*here, "nodes", number)
        if host is None:
            yield Finding(field_path, f"The inventory has no {name}.", warning=True)
        elif host.why_not is not None and "compute node" in host.why_not:
            yield Finding(field_path, f"{name} is no compute node.")
    for number, name in enumerate(entry.get("nodeGroups") or ()):
        field_path = pointer(*here, "nodeGroups", number)
        if groups is None:
            yield Finding(field_path, "The head node does not tell its groups: name nodes instead.")
        elif name not in groups:
            yield Finding(field_path, f"The inventory has no group {name}.", warning=True)


def _plan(hosts: Sequence[Any]) -> str:
    """Names of the hosts that may be wiped and installed, and of the rest."""
    names = ", ".join(host.hostname for host in counted(hosts)) or "no host"
    alone = ", ".join(f"{host.hostname} ({host.why_not})" for host in hosts if host.why_not is not None)
    return f"Stockyard may wipe, install and switch {names}." + (f" It leaves alone {alone}." if alone else "")


def _is_of(entry: Mapping[str, Any], hostname: str, groups: Sequence[str]) -> bool:
    return hostname in (entry.get("nodes") or ()) or bool(set(groups) & set(entry.get("nodeGroups") or ()))
