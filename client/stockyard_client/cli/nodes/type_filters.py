"""Which node types of a list are type_filter: by what they have, where they are and what they cost."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.output.node_sheets import dollars, hourly
from stockyard_client.node_models import NodeType

Cpu = Annotated[str | None, typer.Option(help="Only types with so many cores at least.")]
Memory = Annotated[str | None, typer.Option(help="Only types with so much memory at least, such as 16Gi.")]
Gpu = Annotated[
    str | None, typer.Option(metavar="GPU", help="Only types with GPUs: a count, a name, or both: 2, l4, l4:2.")
]
Arch = Annotated[str | None, typer.Option(help="Only types of this architecture, amd64 or arm64.")]
Zone = Annotated[str | None, typer.Option(help="Only types that may be had in this zone, by its name or id.")]
MaxPrice = Annotated[float | None, typer.Option(metavar="USD", help="Only types whose USD/HOUR is no more than this.")]

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|[kKMGTP]i?)?")
_UNITS = {"m": 0.001, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_UNITS |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
LEAST_BYTES = 2**20
"""Below it an amount of memory without a unit is a slip: no machine has so little."""
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
_GPU_NAMES = ("karpenter.k8s.aws/instance-gpu-name", "gpu-model")
_OF_DISKS = frozenset({"ephemeral-storage"})
_ARCH, _ZONE = "kubernetes.io/arch", "topology.kubernetes.io/zone"
_REGION = "topology.kubernetes.io/region"


def quantity(text: str, option: str) -> float:
    """A quantity of Kubernetes as a number. Raises :class:`BadInput`, which names the option."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise BadInput(f"{option} {text}: a quantity such as 4, 500m or 16Gi is expected")
    return float(match[1]) * _UNITS.get(match[2] or "", 1.0)


def check_memory(text: str | None) -> None:
    """Refuses an amount of memory that lacks its unit: ``4`` would be four bytes. Raises :class:`BadInput`."""
    if text is not None and text.isdecimal() and int(text) < LEAST_BYTES:
        raise BadInput(f"--memory {text} would be {text} bytes: write {text}Gi, or {text}Mi")


@dataclass(frozen=True, slots=True)
class TypeFilter:
    """What a node type has to have; None for whatever it has."""

    cpu: str | None = None
    memory: str | None = None
    gpu: str | None = None
    arch: str | None = None
    zone: str | None = None
    max_price: float | None = None

    def of(self, types: Iterable[NodeType]) -> list[NodeType]:
        """The types that are wanted, in their order. Raises :class:`BadInput` for what is no quantity."""
        check_memory(self.memory)
        least = [
            (name, quantity(text, f"--{name}"))
            for name, text in (("cpu", self.cpu), ("memory", self.memory))
            if text is not None
        ]
        return [
            node_type
            for node_type in types
            if all(_amount(node_type, name) >= amount for name, amount in least)
            and self._has_gpu(node_type)
            and (self.arch is None or self.arch in _values(node_type, _ARCH))
            and (self.zone is None or _is_in(node_type, self.zone))
            and (self.max_price is None or _costs_at_most(node_type, self.max_price))
        ]

    def _has_gpu(self, node_type: NodeType) -> bool:
        if self.gpu is None:
            return True
        name, colon, count = self.gpu.lower().partition(":")
        if not colon and name.isdecimal():
            name, count = "", name
        if colon and not count.isdecimal():
            raise BadInput(f"--gpu {self.gpu}: a count, a name, or NAME:COUNT is expected")
        has_name = not name or any(name == value.lower() for key in _GPU_NAMES for value in _values(node_type, key))
        return has_name and sum(_amount(node_type, key) for key in _GPUS) >= int(count or 1)


def _values(node_type: NodeType, key: str) -> list[str]:
    return str(node_type.properties.get(key) or "").split(",")


def _amount(node_type: NodeType, name: str) -> float:
    return quantity(str(node_type.resources.get(name) or "0"), name)


def _costs_at_most(node_type: NodeType, usd_hour: float) -> bool:
    price = hourly(node_type)
    return price is not None and price <= usd_hour


def _is_in(node_type: NodeType, zone: str) -> bool:
    """Whether the type may be had there. One that says `*` may be in any zone of its region, or, where its prices go by
    zones, in those."""
    zones = _values(node_type, _ZONE)
    offerings: list[dict[str, Any]] = (node_type.model_extra or {}).get("offerings") or []
    priced = {name for offering in offerings for name in offering.get("zone_prices") or {}}
    if zone in zones or zone in priced:
        return True
    region = str(node_type.properties.get(_REGION) or "")
    return "*" in zones and bool(region) and re.fullmatch(rf"{re.escape(region)}[a-z]", zone) is not None


def without_repetitions(types: Iterable[NodeType]) -> list[tuple[NodeType, list[str]]]:
    """The types, those of several providers that have the same resources and state once, each with the other providers'
    names, and their prices where these differ (their nodes have other disks)."""
    rows: dict[tuple[Any, ...], tuple[NodeType, list[str]]] = {}
    for node_type in types:
        amounts = tuple(sorted((name, text) for name, text in node_type.resources.items() if name not in _OF_DISKS))
        mark = (node_type.type, amounts, node_type.capacity.model_dump_json(), node_type.phase, node_type.reason)
        if mark in rows:
            first, providers = rows[mark]
            price = dollars(hourly(node_type))
            differs = price is not None and price != dollars(hourly(first))
            providers.append(f"{node_type.provider} ({price})" if differs else node_type.provider)
        else:
            rows[mark] = (node_type, [])
    return list(rows.values())
