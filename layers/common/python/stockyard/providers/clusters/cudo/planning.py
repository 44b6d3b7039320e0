"""Resources and cost of a cluster on Cudo, as its settings and the price list say. No call is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.pools.node_groups import WORKER
from stockyard.domain.values.prices import PriceItem
from stockyard.ports import ClusterPlan
from stockyard.providers.clouds.cudo import sizing
from stockyard.providers.clouds.cudo.names import CONTROL_PLANE, DATA, NETWORK, NODE, name
from stockyard.providers.clouds.cudo.sheets import Sheet
from stockyard.providers.clouds.cudo.values import MachineType
from stockyard.providers.clusters.cudo import inspection
from stockyard.providers.clusters.cudo.configuration import DATA_DISK_GIB, NETWORK_CIDR, control_plane

_NETWORK, _DISK, _MACHINE = ((("network/network", 1),), (("disk/disk", 1),), (("control_plane/vm", 1),))
"""Lines of the ledger, by phase and kind."""


def plan(sheet: Sheet, settings: Mapping[str, Any], prefix: str, client_id: str) -> ClusterPlan:
    """Plan of a creation, with the price by part; prices are None where no type is known that fits."""
    machine = control_plane(settings)
    kind = inspection.choose(sheet.types, machine, sheet.data_center)
    data_center = machine.data_center or sheet.data_center or "the account's data center"
    words = f"{kind.name if kind else machine.machine_type or 'the cheapest type that fits'} in {data_center}"
    encrypted = "" if settings["no_vault"] else ", encrypted"
    creates = (
        ("security group", name(prefix, client_id, CONTROL_PLANE)),
        ("security group", name(prefix, client_id, NODE)),
        ("network", f"{name(prefix, client_id, NETWORK)} ({NETWORK_CIDR})"),
        (
            "disk",
            f"{name(prefix, client_id, DATA)} ({DATA_DISK_GIB} GiB{encrypted})",
        ),
        ("machine", f"{name(prefix, client_id, CONTROL_PLANE)} ({words})"),
    )
    network = sheet.networks.get(data_center)
    items = _items(kind, inspection.size_of(machine))
    return ClusterPlan(
        creates, (*items, PriceItem("network", 1, None if network is None else float(network), _NETWORK))
    )


def _items(kind: MachineType | None, size: sizing.Size) -> list[PriceItem]:
    if kind is None:
        return [
            PriceItem("control plane", 1, None, _MACHINE),
            PriceItem(f"data disk {DATA_DISK_GIB} GiB", 1, None, _DISK),
        ]
    amounts = sizing.price_parts(kind, size)
    parts = [PriceItem(f"control plane: {part}", 1, float(amount), _MACHINE) for part, amount in amounts]
    data = float(kind.storage_gib_price * DATA_DISK_GIB)
    return [*parts, PriceItem(f"data disk {DATA_DISK_GIB} GiB", 1, data, _DISK)]


def group_items(types: Sequence[MachineType], settings: Mapping[str, Any]) -> list[PriceItem]:
    """One line for each worker group with a floor: what its nodes cost that it never goes below."""
    known_types = {(kind.name, kind.data_center): kind for kind in types}
    items = []
    for group in settings["autoscaler_node_groups"]:
        count = group["min_size"]
        if group["role"] == WORKER and count:
            kind = known_types.get((group["machine_type"], group["data_center_id"]))
            hour = None if kind is None else float(sizing.price(kind, inspection.group_size(group)) * count)
            items.append(PriceItem(f"{count} {'node' if count == 1 else 'nodes'} of pool {group['id']}", count, hour))
    return items
