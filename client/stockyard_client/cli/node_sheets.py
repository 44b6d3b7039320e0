"""How records of nodes are tabulated."""

from __future__ import annotations

from stockyard_client.cli.output import Column, Sheet
from stockyard_client.models import Condition
from stockyard_client.node_models import Applied, Candidate, NodeClaim, NodeProvider, NodeType, PriceOf


def amount(value: float | None) -> str | None:
    """A number without an empty fraction."""
    return None if value is None else f"{value:.10g}"


def dollars(value: float | None) -> str | None:
    """USD an hour."""
    return None if value is None else f"{value:.4f}"


def declared_types(provider: NodeProvider) -> int | None:
    """How many types its document declares; of EC2 it only says what differs from what is discovered."""
    return None if provider.kind == "ec2" else len(provider.node_types)


def capacity(node_type: NodeType) -> str | None:
    """Nodes that are free, of how many; None where they are not limited."""
    capacity = node_type.capacity
    return None if capacity.total is None else f"{capacity.available}/{capacity.total}"


def state(claim: NodeClaim) -> str:
    """The phase, or that it is on its way out."""
    return "Deleting" if claim.deleting else claim.phase


def reason(claim: NodeClaim) -> str:
    """Why it is in its phase, else by what its node differs from its launch."""
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


PROVIDERS: Sheet[NodeProvider] = Sheet(
    (
        Column("NAME", lambda p: p.name),
        Column("KIND", lambda p: p.kind),
        Column("PHASE", lambda p: p.phase),
        Column("TYPES", declared_types),
        Column("SHARED", lambda p: "yes" if p.shared else "", wide=True),
        Column("CREATED", lambda p: p.created_at),
        Column("ID", lambda p: p.id, wide=True),
        Column("DISPLAY NAME", lambda p: p.display_name, wide=True),
        Column("MESSAGE", lambda p: p.message, wide=True),
    ),
    lambda p: p.name,
)
TYPES: Sheet[NodeType] = Sheet(
    (
        Column("NAME", lambda t: t.name),
        Column("CPU", lambda t: t.resources.get("cpu")),
        Column("MEMORY", lambda t: t.resources.get("memory")),
        Column("COST", lambda t: amount(t.cost)),
        Column("USD/HOUR", lambda t: dollars(t.usd_hour)),
        Column("CAPACITY", capacity),
        Column("PHASE", lambda t: t.phase),
        Column("ID", lambda t: t.id, wide=True),
        Column("REASON", lambda t: t.reason, wide=True),
        Column("PROPERTIES", lambda t: pairs_of(t.properties), wide=True),
    ),
    lambda t: t.name,
)
CLAIMS: Sheet[NodeClaim] = Sheet(
    (
        Column("NAME", lambda c: c.name),
        Column("PHASE", state),
        Column("REASON", reason),
        Column("CLUSTER", lambda c: c.cluster),
        Column("TYPE", lambda c: c.type),
        Column("NODE", lambda c: c.node_name),
        Column("CREATED", lambda c: c.created_at),
        Column("ID", lambda c: c.id, wide=True),
        Column("PROVIDER", lambda c: c.provider, wide=True),
        Column("USD/HOUR", lambda c: dollars((c.placement or {}).get("usd_hour")), wide=True),
        Column("OPERATION", lambda c: c.operation_id, wide=True),
        Column("MESSAGE", message, wide=True),
    ),
    lambda c: c.name,
)
CANDIDATES: Sheet[Candidate] = Sheet(
    (
        Column("TYPE", lambda c: c.type),
        Column("CAPACITY TYPE", lambda c: c.capacity_type),
        Column("USD/HOUR", lambda c: dollars(c.usd_hour)),
        Column("COST", lambda c: amount(c.cost)),
        Column("RULED OUT BY", lambda c: c.rule),
        Column("MESSAGE", lambda c: c.message),
    ),
    lambda c: c.type,
)
APPLIED: Sheet[Applied] = Sheet(
    (
        Column("KIND", lambda a: a.kind),
        Column("NAME", lambda a: a.name),
        Column("ACTION", lambda a: a.action),
        Column("ID", lambda a: a.id, wide=True),
        Column("OPERATION", lambda a: a.operation_id, wide=True),
    ),
    lambda a: f"{a.kind.lower()}/{a.name}",
)
PRICES: Sheet[PriceOf] = Sheet(
    (
        Column("NAME", lambda p: p.name),
        Column("PRICE", lambda p: amount(p.price)),
        Column("CURRENCY", lambda p: p.currency),
        Column("UNIT", lambda p: p.unit),
        Column("REGION", lambda p: p.region),
    ),
    lambda p: p.name,
)
