"""Tables of records of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stockyard_client.base_models import HOURS_A_MONTH
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.node_models import Applied, NodeClaim, NodeProvider, NodeType, PriceOf
from stockyard_client.part_models import Condition


def amount(value: float | None) -> str | None:
    """A number without an empty fraction."""
    return None if value is None else f"{value:.10g}"


OWN = "own"
"""In place of a price: the machine is its owner's anyway."""


def dollars(value: float | None, *, owned: bool = False) -> str | None:
    """USD an hour; ``OWN`` of a machine that is ``owned`` and that nobody says a price of."""
    if owned and not value:
        return OWN
    return None if value is None else f"{value:.4f}"


_DISCOVERED = frozenset({"ec2", "eks", "cudo"})
"""Kinds of providers whose types are those of their cloud."""


def declared_types(provider: NodeProvider) -> int | str:
    """The names of the cloud's types that the provider has, or the number of types that its document declares."""
    if provider.kind not in _DISCOVERED:
        return len(provider.node_types)
    names = (provider.document().get("spec") or {}).get("instanceTypes") or ["*"]
    return "all" if names == ["*"] else ",".join(str(name) for name in names)


def hourly(node_type: NodeType) -> float | None:
    """USD an hour of a node as it comes where nobody asks for more: on demand, else what the type costs."""
    prices = [entry.get("usd_hour") for entry in _offerings(node_type) if entry.get("capacity_type") == "on-demand"]
    return prices[0] if prices else node_type.usd_hour


def spot(node_type: NodeType) -> float | None:
    """USD an hour of a spot node, in the cheapest zone; None where it cannot be had, or its price is not known."""
    prices = [entry.get("usd_hour") for entry in _offerings(node_type) if entry.get("capacity_type") == "spot"]
    return min((price for price in prices if price is not None), default=None)


def _offerings(node_type: NodeType) -> list[dict[str, Any]]:
    return node_type.document().get("offerings") or []


def capacity(node_type: NodeType) -> str | None:
    """Nodes that are free, of how many; None where they are not limited."""
    capacity = node_type.capacity
    return None if capacity.total is None else f"{capacity.available}/{capacity.total}"


def state(claim: NodeClaim) -> str:
    """The phase, or that it is on its way out."""
    return "Deleting" if claim.deleting else claim.phase


def reason(claim: NodeClaim) -> str:
    """The reason of its phase, else the difference between the node and its launch."""
    return claim.reason or next((condition.reason for condition in _drift(claim)), "")


def message(claim: NodeClaim) -> str:
    """The text to the reason."""
    return claim.message or next((condition.message for condition in _drift(claim)), "")


def _drift(claim: NodeClaim) -> list[Condition]:
    return [
        condition for condition in claim.conditions if condition.type == "NotDrifted" and condition.status == "False"
    ]


def pairs_of(properties: dict[str, str]) -> str:
    """``key=value`` texts in order of key."""
    return " ".join(f"{key}={value}" for key, value in sorted(properties.items()))


def type_of(claim: NodeClaim) -> str:
    """The type as its provider calls it."""
    provider, dot, name = claim.type.partition(".")
    return name if dot else provider


def provider_of(claim: NodeClaim) -> str:
    """The provider that has the type, else the one that is asked for."""
    provider, dot, _ = claim.type.partition(".")
    return provider if dot else claim.provider


def placed(claim: NodeClaim, field: str) -> Any:
    """Field of the scheduler's decision about the claim; None before the decision."""
    return (claim.placement or {}).get(field)


def zone_of(claim: NodeClaim) -> str | None:
    """The zone of the node; ``*`` while it may be any."""
    zones = placed(claim, "zones")
    return ",".join(zones) if zones else None


def price_text(hour: float | None, *, owned: bool = False) -> str | None:
    """A price by the hour and the month; None where it is not known, and ``OWN`` as of ``dollars``."""
    if owned and not hour:
        return OWN
    return None if hour is None else f"{hour:.4f} USD/hour, {hour * HOURS_A_MONTH:,.2f} USD/month"


MOST_VALUES = 6
"""Values of a requirement that are written out: a claim of a pool lists each node type that the pool may have."""


def requirements_text(rules: Iterable[Mapping[str, Any]]) -> str:
    """Requirements of a node's labels, in a line; of many values the first ones, and how many more there are."""
    parts = ((rule.get("key"), rule.get("operator"), _values_text(rule.get("values") or ())) for rule in rules)
    return "; ".join(" ".join(str(part) for part in rule if part) for rule in parts)


def _values_text(values: Sequence[str]) -> str:
    if len(values) <= MOST_VALUES + 1:
        return ",".join(values)
    return f"{','.join(values[:MOST_VALUES])} and {len(values) - MOST_VALUES} more"


def trouble_first(claims: Iterable[NodeClaim]) -> list[NodeClaim]:
    """The claims, those first that somebody may have to look at."""
    return sorted(claims, key=lambda claim: (claim.phase == "Available" and not claim.deleting, claim.name))


def why(reason: str, message: str) -> str:
    """A reason with its text."""
    return ": ".join(text for text in (reason, message) if text)


PROVIDERS: Printer[NodeProvider] = Printer(
    (
        Column("NAME", lambda p: p.name, give=1),
        Column("KIND", lambda p: p.kind),
        Column("PHASE", lambda p: p.phase),
        Column("TYPES", declared_types),
        Column("AGE", lambda p: p.created_at, is_age=True),
        Column("WHY", lambda p: why(p.reason, p.message), give=2),
        Column("SHARED", lambda p: "yes" if p.shared else "", wide=True),
        Column("CREATED", lambda p: p.created_at, wide=True),
        Column("ID", lambda p: p.id, wide=True),
        Column("DISPLAY NAME", lambda p: p.display_name, wide=True),
    ),
    lambda p: p.name,
)
TYPES: Printer[NodeType] = Printer(
    (
        Column("NAME", lambda t: t.name, give=1),
        Column("CPU", lambda t: t.resources.get("cpu")),
        Column("MEMORY", lambda t: t.resources.get("memory")),
        Column("USD/HOUR", lambda t: dollars(hourly(t), owned=t.owned)),
        Column("SPOT", lambda t: dollars(spot(t)), spare=True),
        Column("CAPACITY", capacity),
        Column("PHASE", lambda t: t.phase),
        Column("WHY", lambda t: why(t.reason, str(t.document().get("message") or "")), give=2),
        Column("COST", lambda t: amount(t.cost), wide=True),
        Column("ID", lambda t: t.id, wide=True),
        Column("PROPERTIES", lambda t: pairs_of(t.properties), wide=True),
    ),
    lambda t: t.name,
)


def types_printer(also: Mapping[str, str]) -> Printer[NodeType]:
    """The columns of node types, with those providers that have the same type, by the ids of types."""
    if not any(also.values()):
        return TYPES
    other_providers: Column[NodeType] = Column("ALSO OF", lambda t: also.get(t.id), give=1, spare=True)
    return Printer((*TYPES.columns[:1], other_providers, *TYPES.columns[1:]), TYPES.name)


CLAIMS: Printer[NodeClaim] = Printer(
    (
        Column("NAME", lambda c: c.name, give=1),
        Column("PHASE", state),
        Column("CLUSTER", lambda c: c.cluster, give=3),
        Column("TYPE", type_of, give=2),
        Column("CAPACITY", lambda c: placed(c, "capacity_type"), spare=True),
        Column("ZONE", zone_of, spare=True),
        Column("USD/HOUR", lambda c: dollars(placed(c, "usd_hour"), owned=bool(placed(c, "owned"))), spare=True),
        Column("AGE", lambda c: c.created_at, is_age=True, spare=True),
        Column("WHY", lambda c: why("" if reason(c) == c.phase else reason(c), message(c)), give=4),
        Column("NODE", lambda c: c.node_name, wide=True),
        Column("PROVIDER", provider_of, wide=True),
        Column("CREATED", lambda c: c.created_at, wide=True),
        Column("ID", lambda c: c.id, wide=True),
        Column("OPERATION", lambda c: c.operation_id, wide=True),
    ),
    lambda c: c.name,
)
CLAIMS_OF_CLUSTER: Printer[NodeClaim] = Printer(
    tuple(column for column in CLAIMS.columns if column.heading != "CLUSTER"), CLAIMS.name
)
"""Of claims whose cluster is known."""
APPLIED: Printer[Applied] = Printer(
    (
        Column("KIND", lambda a: a.kind),
        Column("NAME", lambda a: a.name),
        Column("ACTION", lambda a: a.action),
        Column("ID", lambda a: a.id, wide=True),
        Column("OPERATION", lambda a: a.operation_id, wide=True),
    ),
    lambda a: f"{a.kind.lower()}/{a.name}",
)
PRICES: Printer[PriceOf] = Printer(
    (
        Column("NAME", lambda p: p.name),
        Column("KIND", lambda p: p.kind),
        Column("PRICE", lambda p: amount(p.price)),
        Column("CURRENCY", lambda p: p.currency),
        Column("PER", lambda p: p.unit),
        Column("REGION", lambda p: p.region),
    ),
    lambda p: p.name,
)
