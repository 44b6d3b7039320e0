"""What a cluster would make and cost: the plan of a dry run, from the settings and the price list alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.domain.control_plane import DISK_GIB
from stockyard.ports import Finding, PriceList

HOURS_A_MONTH = 730
DEFAULT_TYPE = "t3.xlarge"
BALANCER_ADDRESSES = 2
"""Public addresses of the load balancer: one a zone; in a given VPC at most as many."""


@dataclass(frozen=True, slots=True)
class PriceItem:
    """One line of a price. ``hour`` is USD, None where the catalogue does not know it."""

    name: str
    quantity: int
    hour: float | None


def control_plane_type(settings: Mapping[str, Any]) -> str:
    """The control group's first type wins over ``control_plane_instance_type``."""
    for group in settings.get("autoscaler_node_groups") or ():
        if group.get("role") == "control":
            return str(group["instance_types"][0])
    return str(settings.get("control_plane_instance_type") or DEFAULT_TYPE)


def worker_groups(settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The node groups that become pools."""
    return [group for group in settings.get("autoscaler_node_groups") or () if group.get("role") != "control"]


def price_items(settings: Mapping[str, Any], prices: PriceList) -> list[PriceItem]:
    """Everything of a cluster that is billed while it stands, without its workers."""
    region = str(settings.get("region_name") or "us-east-1")
    machine = control_plane_type(settings)
    known = prices.instance(region, machine)
    gigabyte_month = prices.rate(region, "gp3")
    own_network = not settings.get("vpc_id") and not settings.get("subnet_id")
    nat_addresses = 1 if own_network else 0
    addresses = BALANCER_ADDRESSES + nat_addresses + (1 if settings.get("public_control_plane") else 0)
    disk = None if gigabyte_month is None else gigabyte_month * DISK_GIB / HOURS_A_MONTH
    items = [
        PriceItem(f"control plane instance {machine}", 1, known["usd_hour"] if known else None),
        PriceItem(f"control plane disk gp3 {DISK_GIB} GiB", 1, disk),
        PriceItem("network load balancer", 1, prices.rate(region, "network_load_balancer")),
    ]
    if own_network:
        items.append(PriceItem("NAT gateway", 1, prices.rate(region, "nat_gateway")))
    address = prices.rate(region, "public_ipv4")
    items.append(PriceItem("public IPv4 address", addresses, None if address is None else address * addresses))
    return items


def price(items: Sequence[PriceItem]) -> dict[str, Any]:
    """USD an hour and a month (730 hours). ``complete`` is false when a line has no known price."""
    hour = sum(item.hour for item in items if item.hour is not None)
    return {
        "currency": "USD",
        "hour": round(hour, 6),
        "month": round(hour * HOURS_A_MONTH, 2),
        "complete": all(item.hour is not None for item in items),
        "items": [
            {
                "name": item.name,
                "quantity": item.quantity,
                "hour": None if item.hour is None else round(item.hour, 6),
                "month": None if item.hour is None else round(item.hour * HOURS_A_MONTH, 2),
            }
            for item in items
        ],
    }


def creates(client_id: str, settings: Mapping[str, Any], prefix: str) -> list[dict[str, str]]:
    """The resources a creation would make, by kind and name."""
    stem = f"{prefix}-{client_id}"
    own_network = not settings.get("vpc_id") and not settings.get("subnet_id")
    made = [("keycloak client", client_id)]
    if own_network:
        made += [
            ("vpc", f"{stem}-vpc (10.0.0.0/16)"),
            ("subnet", f"{stem} public, in two zones"),
            ("subnet", f"{stem} private, in two zones"),
            ("internet gateway", f"{stem}-igw"),
            ("nat gateway", f"{stem}-nat"),
            ("route table", f"{stem} public and private"),
        ]
    made += [
        ("security group", f"{stem}-control-plane"),
        ("security group", f"{stem}-node"),
        ("iam role", f"{stem}-node-role"),
        ("instance profile", f"{stem}-instance-profile"),
        ("network load balancer", f"{stem} API endpoint"),
        ("instance", f"{stem}-control-plane ({control_plane_type(settings)})"),
    ]
    made += [("pool", str(group.get("name"))) for group in worker_groups(settings)]
    return [{"kind": kind, "name": name} for kind, name in made]


def plan(
    client_id: str, settings: Mapping[str, Any], prices: PriceList, prefix: str, findings: Sequence[Finding]
) -> dict[str, Any]:
    """The body of a dry run's answer: ``creates, changes, deletes, price, rejected, warnings``."""
    return {
        "creates": creates(client_id, settings, prefix),
        "changes": [],
        "deletes": [],
        "price": price(price_items(settings, prices)),
        "rejected": [],
        "warnings": [{"pointer": f.pointer, "detail": f.detail} for f in findings if f.warning],
    }
