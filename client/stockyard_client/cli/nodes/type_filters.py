"""Filters of node types in a list: by what they have, where they are and what they cost; what GPUs a claim asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.output.node_tables import dollars, hourly
from stockyard_client.node_models import NodeType

Cpu = Annotated[str | None, typer.Option(help="Only types with so many cores at least.")]
Memory = Annotated[str | None, typer.Option(help="Only types with so much memory at least, such as 16Gi.")]
Gpu = Annotated[
    str | None, typer.Option(metavar="GPU", help="Only types with GPUs: a count, a name, or both: 2, l4, l4:2.")
]
Arch = Annotated[str | None, typer.Option(help="Only types of this architecture, amd64 or arm64.")]
CapacityType = Annotated[
    str | None, typer.Option(metavar="TYPE", help="Only types to be had so: on-demand, spot, capacity-block.")
]
Property = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        help="Only types with this property: key=v1,v2, key!=v1, key>5, key<5, key, !key; may be repeated.",
    ),
]
ClaimGpu = Annotated[str | None, typer.Option("--gpu", metavar="GPU", help="GPUs: a count, a name, or both: 1, l4:1.")]
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
_CAPACITY_TYPE = "karpenter.sh/capacity-type"
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
    """Demands on a node type; None for no demand."""

    cpu: str | None = None
    memory: str | None = None
    gpu: str | None = None
    arch: str | None = None
    zone: str | None = None
    max_price: float | None = None
    capacity_type: str | None = None
    properties: Sequence[Mapping[str, Any]] = ()
    """As ``inputs.requirement`` reads them."""

    def of(self, types: Iterable[NodeType]) -> list[NodeType]:
        """The types that are wanted, in their order. Raises :class:`BadInput` for what is no quantity, also where there
        are no types."""
        check_memory(self.memory)
        wanted_gpus = None if self.gpu is None else gpus(self.gpu)
        least = [
            (name, quantity(text, f"--{name}"))
            for name, text in (("cpu", self.cpu), ("memory", self.memory))
            if text is not None
        ]
        return [
            node_type
            for node_type in types
            if all(_amount(node_type, name) >= amount for name, amount in least)
            and (wanted_gpus is None or _has_gpus(node_type, *wanted_gpus))
            and (self.arch is None or self.arch in _values(node_type, _ARCH))
            and (self.zone is None or _is_in(node_type, self.zone))
            and all(_agrees(node_type, requirement) for requirement in self.properties)
            and (self.capacity_type is None or self.capacity_type in _capacity_types(node_type))
            and (self.max_price is None or self._costs_at_most(node_type, self.max_price))
        ]

    def _costs_at_most(self, node_type: NodeType, usd_hour: float) -> bool:
        """Whether it may be had for that, of the capacity type that is wanted."""
        price = hourly(node_type)
        if self.capacity_type is not None:
            of_type = [offer for offer in _offerings(node_type) if offer.get("capacity_type") == self.capacity_type]
            prices = [offer["usd_hour"] for offer in of_type if offer.get("usd_hour") is not None]
            price = min(prices, default=None) if of_type else price
        return price is not None and price <= usd_hour


def _has_gpus(node_type: NodeType, name: str, count: int) -> bool:
    has_name = not name or any(name == value.lower() for key in _GPU_NAMES for value in _values(node_type, key))
    return has_name and sum(_amount(node_type, key) for key in _GPUS) >= count


def gpus(text: str) -> tuple[str, int]:
    """The name of GPUs in lower case, empty for any, and how many: of ``2``, ``l4`` or ``l4:2``. Raises
    :class:`BadInput`."""
    name, colon, count = text.lower().partition(":")
    if not colon and name.isdecimal():
        name, count = "", name
    if (colon and not (name and count.isdecimal())) or (count and not int(count)):
        raise BadInput(f"--gpu {text}: a count, a name, or NAME:COUNT is expected")
    return name, int(count or 1)


def gpu_request(
    text: str, types: Callable[[], Iterable[NodeType]]
) -> tuple[dict[str, str], Sequence[Mapping[str, Any]]]:
    """Resources and requirements of a claim that asks for such GPUs. ``types`` gives the node types that there are, as
    providers call a GPU in their own ways. Raises :class:`BadInput` where none has one of that name."""
    name, count = gpus(text)
    if not name:
        return {_GPUS[0]: str(count)}, ()
    values_by_key: dict[tuple[str, str], set[str]] = {}
    names: set[str] = set()
    for node_type in types():
        resource = next((key for key in _GPUS if _amount(node_type, key)), None)
        for key in _GPU_NAMES if resource else ():
            for value in filter(None, _values(node_type, key)):
                names.add(value)
                if value.lower() == name:
                    values_by_key.setdefault((str(resource), key), set()).add(value)
    if not values_by_key:
        raise BadInput(
            f"--gpu {text}: no node type has one of this name; there are {', '.join(sorted(names)) or 'none'}"
        )
    if len(values_by_key) > 1:
        keys = ", ".join(sorted(key for _, key in values_by_key))
        raise BadInput(f"--gpu {text}: providers say it by different properties ({keys}): name one by --provider")
    ((resource, key), values), *_ = values_by_key.items()
    return {resource: str(count)}, [{"key": key, "operator": "In", "values": sorted(values)}]


def _offerings(node_type: NodeType) -> list[dict[str, Any]]:
    offerings: list[dict[str, Any]] = node_type.document().get("offerings") or []
    return offerings


def _capacity_types(node_type: NodeType) -> set[str]:
    offered = {str(offer.get("capacity_type")) for offer in _offerings(node_type)}
    return offered or set(_values(node_type, _CAPACITY_TYPE))


def _agrees(node_type: NodeType, requirement: Mapping[str, Any]) -> bool:
    """Whether the type has such a property; one that says `*` may have any value."""
    values = [value for value in _values(node_type, str(requirement["key"])) if value]
    operator, bounds = requirement["operator"], list[str](requirement.get("values") or [])
    if operator in ("Exists", "DoesNotExist"):
        return bool(values) is (operator == "Exists")
    if operator == "NotIn":
        return any(value not in bounds for value in values) or not values
    if "*" in values:
        return True
    if operator == "In":
        return any(value in bounds for value in values)
    bound = quantity(bounds[0], str(requirement["key"]))
    numbers = [float(value) for value in values if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value)]
    return any(number > bound if operator == "Gt" else number < bound for number in numbers)


def _values(node_type: NodeType, key: str) -> list[str]:
    return str(node_type.properties.get(key) or "").split(",")


def _amount(node_type: NodeType, name: str) -> float:
    return quantity(str(node_type.resources.get(name) or "0"), name)


def _is_in(node_type: NodeType, zone: str) -> bool:
    """Whether the type may be had there. One that says `*` may be in any zone of its region, or, where its prices go by
    zones, in those."""
    zones = _values(node_type, _ZONE)
    priced = {name for offering in _offerings(node_type) for name in offering.get("zone_prices") or {}}
    if zone in zones or zone in priced:
        return True
    region = str(node_type.properties.get(_REGION) or "")
    return "*" in zones and bool(region) and re.fullmatch(rf"{re.escape(region)}[a-z]", zone) is not None


def without_repetitions(types: Iterable[NodeType]) -> list[tuple[NodeType, list[str]]]:
    """The types, with equal ones of several providers in one row: that row has the other providers' names, and their
    prices where these differ (their nodes have other disks)."""
    rows: dict[tuple[Any, ...], tuple[NodeType, list[str]]] = {}
    for node_type in types:
        amounts = tuple(sorted((name, text) for name, text in node_type.resources.items() if name not in _OF_DISKS))
        memo_key = (node_type.type, amounts, node_type.capacity.model_dump_json(), node_type.phase, node_type.reason)
        if memo_key in rows:
            first, providers = rows[memo_key]
            price = dollars(hourly(node_type))
            differs = price is not None and price != dollars(hourly(first))
            providers.append(f"{node_type.provider} ({price})" if differs else node_type.provider)
        else:
            rows[memo_key] = (node_type, [])
    return list(rows.values())
