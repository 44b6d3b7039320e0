"""A node type as the scheduler sees it, and how one is made from what a provider declares.

Declared is text (properties, Kubernetes quantities); what the scheduler reads is exact: thousandths of a unit, lists
of values. Raises of this module are ``ValueError`` with a text that names the key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType

from stockyard.domain.nodes.offers import SpotPrice
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.patterns import pattern
from stockyard.domain.values.quantities import milli
from stockyard.domain.values.requirements import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODE_TYPE, OS, ZONE, normal_key

ANY = "*"
"""As the only value of a property, or as a zone: whatever is asked for."""
ON_DEMAND, SPOT, CAPACITY_BLOCK = "on-demand", "spot", "capacity-block"
"""Capacity types. A capacity block is room that was bought before, for a time: no price list says what it costs."""
DEFAULT_ZONE = "global"
DEFAULT_PODS = 110
CPU, MEMORY, PODS, STORAGE = "cpu", "memory", "pods", "ephemeral-storage"
_HUGE_PAGES = "hugepages-"
OWN_WEIGHT, MOST_OWN_COST = 1e-9, 100_000
"""Weight of a cost unit of one's own machines where rented ones weigh their price in USD an hour, and the units that
count: a machine weighs less than a tenth of the cheapest rented one, and the one with fewer units weighs less."""
COST_PER_CPU, COST_PER_GIB, COST_PER_OTHER = 10, 2, 10_000
_GIB = 2**30
LEAST_GIB = 2
"""Memory that a machine has at least to become a node of a cluster unasked: kubeadm asks for as much of each."""
_LABEL_VALUE = pattern(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)
BUILT_IN = frozenset({NODE_TYPE, INSTANCE_TYPE, CAPACITY_TYPE, OS})
"""Properties that Stockyard sets itself, whatever a document says; a node's capacity type is its placement's."""


@dataclass(frozen=True, slots=True)
class Offering:
    """One way to get a node of a type: ``zones`` all have the one price ``usd_hour``, None when none is known.

    Where prices of zones differ, ``zone_prices`` has them by the id of the zone, and ``usd_hour`` is the most of them:
    ``domain.nodes.prices`` says what counts.
    ``on_demand_usd_hour`` is what the type costs on demand, of which bids for spot are a part.
    """

    capacity_type: str
    zones: tuple[str, ...]
    usd_hour: float | None = None
    zone_prices: Mapping[str, SpotPrice] = field(default_factory=dict, hash=False)
    on_demand_usd_hour: float | None = None


@dataclass(frozen=True, slots=True)
class NodeType:
    """A node type as the scheduler sees it. ``name`` is canonical: ``provider.type``.

    ``properties`` are the effective ones with their values, ``(ANY,)`` for any; zone and capacity type are left out,
    they belong to ``offerings``. ``allocatable`` and ``capacity`` (before the overhead) are thousandths of a unit by
    resource, ``pods`` included. ``cost`` is the explicit one if ``cost_given``, else the formula's; see ``rank`` for
    what orders types. ``unit_price`` is the provider's ``price_per_cost_unit`` in USD an hour.
    ``small``: its machines have too little memory for a kubelet and what runs beside it, so claims have to ask for it.
    ``unserved`` says why no node of it can be made yet; None: one can. Such a type is listed and never chosen.
    ``disk_gib`` is the disk of its nodes that is billed beside the machine, and ``gib_usd_hour`` what a GiB of it
    costs, None where that is not known; 0 GiB: the price of an offering is that of the whole node.
    ``owned``: its machines are there anyway. A node of it costs nothing unless its owner says a price, and comes before
    every rented one, whatever that price is.
    """

    name: str
    provider: str
    properties: Mapping[str, tuple[str, ...]]
    allocatable: Mapping[str, int]
    capacity: Mapping[str, int]
    cost: float
    offerings: tuple[Offering, ...]
    limited: bool = False
    available: bool = True
    cost_given: bool = False
    unit_price: float | None = None
    small: bool = False
    unserved: str | None = None
    disk_gib: int = 0
    gib_usd_hour: float | None = None
    owned: bool = False

    @property
    def bare(self) -> str:
        """The type's name without its provider."""
        return self.name.removeprefix(f"{self.provider}.")

    @property
    def disk_usd_hour(self) -> float | None:
        """Cost of a node's disk beside its machine, in USD an hour; None where that is not known."""
        if not self.disk_gib:
            return 0.0
        return None if self.gib_usd_hour is None else self.gib_usd_hour * self.disk_gib

    @property
    def usd_hour(self) -> float | None:
        """Money per hour of the cheapest offering, in its cheapest zone; None when no money is known."""
        prices = [money for offering in self.offerings if (money := self.money(_at_least(offering))) is not None]
        return min(prices, default=None)

    @property
    def effective_cost(self) -> float:
        """Cost of the type as its provider counts: the explicit cost, else the cheapest offering's rank."""
        return min((self.rank(_at_least(offering)) for offering in self.offerings), default=self.cost)

    def rank(self, offering: Offering) -> float:
        """Rank of an offering among the provider's own types: the explicit cost, else the real price, else the
        formula's cost.

        Types of one provider may mix units. With a ``unit_price`` a real price is turned into cost units; without
        one the numbers are compared as they are.
        """
        if self.cost_given or offering.usd_hour is None:
            return self.cost
        return offering.usd_hour / self.unit_price if self.unit_price else offering.usd_hour

    def money(self, offering: Offering) -> float | None:
        """Price of a node in USD an hour, which orders types of different providers: the real price with that of its
        disk, else cost times ``unit_price``; else nothing for what is owned, and None for what is rented."""
        if offering.usd_hour is not None:
            disk = self.disk_usd_hour
            return None if disk is None else offering.usd_hour + disk
        if self.unit_price is None:
            return 0.0 if self.owned else None
        return self.cost * self.unit_price

    def weight(self, offering: Offering) -> float | None:
        """Amount that plans make as small as they can: the price of a rented node, or of an owned one a trifle that
        rises with its cost, so that owned ones come first. None where a price is not known."""
        return own_weight(self.cost) if self.owned else self.money(offering)

    def extended(self) -> frozenset[str]:
        """The extended resources that it has."""
        return frozenset(
            name
            for resources in (self.capacity, self.allocatable)
            for name, amount in resources.items()
            if amount > 0 and is_extended(name)
        )


@dataclass(frozen=True, slots=True)
class Declaration:
    """A node type as written down. Quantities and properties are texts; ``overhead`` is not for pods.

    ``instance_type`` is the vendor's own name where it differs from ours, ``arch`` is set for EC2, ``offerings``
    replace the one on-demand offering that ``zone`` and ``usd_hour`` describe. ``boots``: its nodes are machines on
    which a kubelet runs, so memory below ``LEAST_GIB`` makes the type a small one. ``unserved`` and the disk are those
    of the type.
    """

    provider: str
    name: str
    resources: Mapping[str, str | float]
    overhead: Mapping[str, str | float] = field(default_factory=dict)
    provider_properties: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    zone: str | None = None
    cost: float | None = None
    usd_hour: float | None = None
    unit_price: float | None = None
    limited: bool = False
    available: bool = True
    instance_type: str | None = None
    arch: str | None = None
    offerings: tuple[Offering, ...] | None = None
    boots: bool = False
    unserved: str | None = None
    disk_gib: int = 0
    gib_usd_hour: float | None = None
    owned: bool = False


def _at_least(offering: Offering) -> Offering:
    """The offering at the price of its cheapest zone."""
    prices = offering.zone_prices
    return replace(offering, usd_hour=min(price.now for price in prices.values())) if prices else offering


def node_type_of(declared: Declaration) -> NodeType:
    """The node type that ``declared`` describes. Raises ``ValueError``."""
    properties = effective_properties(declared)
    zones = properties.pop(ZONE)
    properties.pop(CAPACITY_TYPE)
    capacity = read_resources(declared.resources)
    for required in (CPU, MEMORY):
        if required not in capacity:
            raise ValueError(f"{required}: a node type needs it")
    cost = formula_cost(capacity) if declared.cost is None else declared.cost
    offerings = declared.offerings
    return NodeType(
        name=canonical(declared.provider, declared.name),
        provider=declared.provider,
        properties=MappingProxyType(properties),
        allocatable=MappingProxyType(allocatable(capacity, read_resources(declared.overhead, pods=None))),
        capacity=MappingProxyType(capacity),
        cost=cost,
        offerings=(Offering(ON_DEMAND, zones, declared.usd_hour),) if offerings is None else offerings,
        limited=declared.limited,
        available=declared.available,
        cost_given=declared.cost is not None,
        unit_price=declared.unit_price,
        small=declared.boots and capacity[MEMORY] < LEAST_GIB * _GIB * 1000,
        unserved=declared.unserved,
        disk_gib=declared.disk_gib,
        gib_usd_hour=declared.gib_usd_hour,
        owned=declared.owned,
    )


def canonical(provider: str, name: str) -> str:
    """The name of a node type that no other has."""
    return f"{provider}.{name}"


def is_extended(resource: str) -> bool:
    """Whether nodes that have ``resource`` are kept for claims that ask for it."""
    return resource not in (CPU, MEMORY, PODS, STORAGE) and not resource.startswith(_HUGE_PAGES)


def formula_cost(resources: Mapping[str, int]) -> float:
    """The cost of thousandths of units where none is given: 10 a cpu, 2 a GiB, 10000 a piece of anything extended.

    Exact, also for parts of a unit (250m cpu cost 2.5), and an integer where it is whole. ``pods`` cost nothing, nor
    do ``ephemeral-storage`` and huge pages: they come in bytes, not in pieces.
    """
    from fractions import Fraction  # most functions price nothing

    total = Fraction(0)
    for name, amount in resources.items():
        if name == CPU:
            total += Fraction(amount * COST_PER_CPU, 1000)
        elif name == MEMORY:
            total += Fraction(amount * COST_PER_GIB, 1000 * _GIB)
        elif is_extended(name):
            total += Fraction(amount * COST_PER_OTHER, 1000)
    return int(total) if total.denominator == 1 else float(total)


def read_resources(written: Mapping[str, str | float], pods: int | None = DEFAULT_PODS) -> dict[str, int]:
    """Quantities as thousandths of a unit, with ``pods`` where none are given. Raises ``ValueError``."""
    amounts: dict[str, int] = {}
    for name, quantity in written.items():
        try:
            amounts[name] = milli(quantity)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if amounts[name] < 0:
            raise ValueError(f"{name}: {quantity!r} is negative")
    if pods is not None:
        amounts.setdefault(PODS, pods * 1000)
    return amounts


def allocatable(capacity: Mapping[str, int], overhead: Mapping[str, int]) -> dict[str, int]:
    """Amount of each resource that is left for pods. It may be negative: then nothing ever fits."""
    remaining = dict(capacity)
    for name, amount in overhead.items():
        remaining[name] = remaining.get(name, 0) - amount
    return remaining


def effective_properties(declared: Declaration) -> dict[str, tuple[str, ...]]:
    """All properties with their values: the type's over its provider's, built-in ones over both."""
    name = canonical(declared.provider, declared.name)
    properties = read_properties(declared.provider_properties) | read_properties(declared.properties)
    for key in BUILT_IN:
        properties.pop(key, None)
    zones = properties.pop(ZONE, (DEFAULT_ZONE,)) if declared.zone is None else parse_property(ZONE, declared.zone)
    properties |= {NODE_TYPE: (name,), INSTANCE_TYPE: (declared.instance_type or name,), OS: ("linux",)}
    properties |= {ZONE: zones, CAPACITY_TYPE: (ON_DEMAND,)}
    if declared.arch is not None:
        properties[ARCH] = (declared.arch,)
    return properties


def read_properties(written: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Properties by key with their values. Raises ``ValueError``.

    A provider's own settings (``kubevirt.vcluster.com/image-url`` and the like) may be any text; those that cannot be
    labels are no properties to choose by and are left out.
    """
    return {
        normal_key(key): parse_property(key, text)
        for key, text in written.items()
        if not is_setting(key) or is_label_text(text)
    }


def is_setting(key: str) -> bool:
    """Whether ``key`` is of a provider's own domain, so that its value need not be a label."""
    return ".vcluster.com" in key and key.partition("/")[0].endswith(".vcluster.com")


def is_label_text(text: str) -> bool:
    """Whether a property's text can be labels: ``*``, or a list of label values."""
    return text.strip() in (ANY, "") or all(_LABEL_VALUE.fullmatch(part.strip()) for part in text.split(","))


def parse_property(key: str, text: str) -> tuple[str, ...]:
    """The values of one property: a single one, a comma list, or ``*``. Raises ``ValueError`` that names ``key``."""
    if _LABEL_VALUE.fullmatch(text):  # nearly all of them
        return (text,)
    if text.strip() in (ANY, ""):  # the empty text is a label value too, if alone
        return (text.strip(),)
    values = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for value in values:
        if not _LABEL_VALUE.fullmatch(value):
            raise ValueError(
                f"{key}: {value!r} is not a label value: 1 to 63 letters, digits, '-', '_' or '.', "
                "with a letter or digit at both ends"
            )
    return values


def own_weight(cost: float) -> float:
    """Weight of an owned machine of that cost in plans, see ``NodeType.weight``."""
    return (min(cost, MOST_OWN_COST) + 1) * OWN_WEIGHT


def offering_text(node_type: NodeType, capacity_type: str | None) -> str:
    """Words of a bill for how a node is had: its capacity type, and whether it is owned."""
    return f"{capacity_type}, own" if node_type.owned else str(capacity_type)
