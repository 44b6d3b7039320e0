"""The network of a machine: the card and the network that settings add to its template, and what its guest is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stockyard.providers.nodes.kubevirt import properties
from stockyard.providers.nodes.kubevirt.templates import merged

NAME = "stockyard"
"""Name of the network and of its interface in a machine's specification."""
_GUEST: Mapping[str, dict[str, Any]] = {
    "bridge": {"bridge": {}},
    "masquerade": {"masquerade": {}},
    "sriov": {"sriov": {}},
}


def attachment(settings: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The interface and the network of a NetworkAttachmentDefinition; None where the settings name none."""
    name = settings.get(properties.ATTACHMENT)
    if not name:
        return None
    interface = {"name": NAME, **_GUEST[settings.get(properties.BINDING) or properties.BINDINGS[0]]}
    if text := settings.get(properties.INTERFACE_TEMPLATE):
        interface = {**merged(interface, properties.mapping(text)), "name": NAME}
    multus: dict[str, Any] = {"networkName": name}
    if properties.is_true(settings.get(properties.MULTUS_DEFAULT) or None):
        multus["default"] = True
    return interface, {"name": NAME, "multus": multus}


def needs_address(settings: Mapping[str, str]) -> bool:
    """Whether each machine gets an address of its own by us."""
    return bool(settings.get(properties.CIDR)) and not settings.get(properties.NETWORK_DATA)


def guest_data(settings: Mapping[str, str], address: str | None) -> str | None:
    """Network configuration of cloud-init; None where the guest asks its network by itself."""
    if text := settings.get(properties.NETWORK_DATA):
        return properties.network_data(text)
    if address is None:
        return None
    own = properties.interface(settings[properties.CIDR])
    card = {
        "addresses": [f"{address}/{own.network.prefixlen}"],
        "routes": [{"to": "0.0.0.0/0" if own.version == 4 else "::/0", "via": str(own.ip)}],
        "nameservers": {"addresses": properties.servers(settings[properties.SERVERS])},
    }
    name = settings.get(properties.CARD) or properties.DEFAULT_CARD
    return json.dumps({"version": 2, "ethernets": {name: card}}, indent=1)
