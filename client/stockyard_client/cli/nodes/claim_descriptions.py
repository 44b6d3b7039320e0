"""A node claim as somebody who looks at it wants to know it."""

from __future__ import annotations

from stockyard_client.base_models import POOL_LABEL
from stockyard_client.cli.context import Context
from stockyard_client.cli.operations.events import Names
from stockyard_client.cli.output import sections
from stockyard_client.cli.output.ages import age
from stockyard_client.cli.output.node_tables import (
    placed,
    price_text,
    provider_of,
    requirements_text,
    state,
    type_of,
    zone_of,
)
from stockyard_client.client import Client
from stockyard_client.models import Operation
from stockyard_client.node_models import NodeClaim


def describe(context: Context, client: Client, claim: NodeClaim, operation: Operation | None) -> None:
    """Writes the claim: its node and price, what does not hold, its last operation and events, what to type next."""
    extra = claim.document()
    sections.title(context, f"claim {claim.name}", state(claim), claim.reason)
    if claim.message:
        sections.paragraph(context, claim.message, "yellow" if claim.phase != "Available" else "dim")
    sections.facts(
        context,
        {
            "Cluster": Names(client).of(claim.cluster),
            "Pool": (extra.get("labels") or {}).get(POOL_LABEL),
            "Type": claim.type and f"{type_of(claim)} of provider {provider_of(claim)}",
            "Capacity": placed(claim, "capacity_type"),
            "Zone": zone_of(claim),
            "Price": price_text(placed(claim, "usd_hour"), owned=bool(placed(claim, "owned"))),
            "Node": claim.node_name,
            "Machine": extra.get("machine_id"),
            "Asked": _requirements_of(claim),
            "Power": claim.power if claim.power not in ("", "On") else None,
            "Age": f"{age(claim.created_at, context.now())} ({claim.created_at})" if claim.created_at else None,
            "Kept until": extra.get("kept_until"),
            "Taken back at": extra.get("ends_at"),
            "Id": claim.id,
        },
    )
    sections.conditions(context, claim.conditions)
    sections.operation(context, operation)
    sections.events(context, client.events.newest(claim.id, sections.EVENTS_SHOWN))
    sections.following(context, *_next(claim, operation))


def _requirements_of(claim: NodeClaim) -> str:
    extra = claim.document()
    resources = [f"{name}={amount}" for name, amount in (extra.get("resources") or {}).items()]
    rules = requirements_text(extra.get("requirements") or ())
    return "; ".join([*resources, *([rules] if rules else [])])


def _next(claim: NodeClaim, operation: Operation | None) -> list[str]:
    commands = [f"stockyard claim explain {claim.name}"]
    if claim.phase == "Pending" and operation is not None and not operation.done:
        commands.insert(0, f"stockyard operation wait {operation.id}")
    return commands
