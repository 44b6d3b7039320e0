"""Pools, providers, node types, accounts and operations as somebody who looks at them wants to know them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

from pydantic import Field

from stockyard_client.base_models import HOURS_A_MONTH, POOL_LABEL, Model
from stockyard_client.cli.context import Context
from stockyard_client.cli.documents.pointers import dotted, tokens_of
from stockyard_client.cli.output import sections
from stockyard_client.cli.output.ages import age
from stockyard_client.cli.output.node_tables import (
    CLAIMS_OF_CLUSTER,
    amount,
    capacity,
    dollars,
    pairs_of,
    price_text,
    requirements_text,
    trouble_first,
)
from stockyard_client.cli.output.output import CLUSTERS
from stockyard_client.cli.output.pool_tables import state
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.client import Client
from stockyard_client.models import CloudAccount, Cluster, Operation
from stockyard_client.node_models import NodeProvider, NodeType
from stockyard_client.part_models import Condition
from stockyard_client.pool_models import Pool

MOST = 15
"""Rows of a table in a description."""


class Offering(Model):
    """One way to have a node of a type; ``zones`` may be ``*``. ``zone_prices`` go by the ids of zones."""

    capacity_type: str
    zones: tuple[str, ...] = ()
    usd_hour: float | None = None
    zone_prices: dict[str, float] = Field(default_factory=dict)

    def by_zone(self) -> list[Offering]:
        """A line for each zone where it costs something else in each, the cheapest first."""
        prices = sorted(self.zone_prices.items(), key=lambda pair: (pair[1], pair[0]))
        return [self.model_copy(update={"zones": (zone,), "usd_hour": usd}) for zone, usd in prices] or [self]


OFFERINGS: Printer[Offering] = Printer(
    (
        Column("CAPACITY", lambda o: o.capacity_type),
        Column("USD/HOUR", lambda o: dollars(o.usd_hour)),
        Column("USD/MONTH", lambda o: None if o.usd_hour is None else f"{o.usd_hour * HOURS_A_MONTH:.2f}"),
        Column("ZONES", lambda o: ", ".join(o.zones), give=1),
    ),
    lambda o: o.capacity_type,
)


def _more(record: Model) -> dict[str, Any]:
    """Fields of the record, as the API sent them."""
    return record.document()


def _age(context: Context, moment: str | None) -> str | None:
    return f"{age(moment, context.now())} ({moment})" if moment else None


def pool(context: Context, client: Client, cluster: Cluster, record: Pool) -> None:
    """Writes a pool: how many nodes it has and may have, what they cost, its claims, and why it lacks some."""
    extra, nodes = _more(record), record.nodes
    sections.title(context, f"pool {record.name}", state(record), f"{record.kind}, of cluster {cluster.name}")
    sections.facts(
        context,
        {
            "Nodes": f"{nodes.available} available, {nodes.claims} asked for, at least {nodes.desired}",
            "Limits": pairs_of(record.limits),
            "Price": price_text(nodes.usd_hour),
            "Provider": record.provider or "the cheapest of all",
            "Requirements": requirements_text(extra.get("requirements") or ()),
            "Labels": pairs_of(extra.get("labels") or {}),
            "Taints": ", ".join(_taint(entry) for entry in extra.get("taints") or ()),
            "Zones": ", ".join(extra.get("zones") or ()),
            "Bid": pairs_of({key: str(value) for key, value in (extra.get("max_price") or {}).items()}),
            "Weight": record.weight or None,
            "Nodes expire": extra.get("expire_after"),
            "Age": _age(context, record.created_at),
        },
    )
    sections.conditions(context, record.conditions)
    claims = list(client.node_claims.list(cluster=cluster.id, label=f"{POOL_LABEL}={record.name}"))
    ordered = trouble_first(claims)
    sections.table(context, "Node claims", CLAIMS_OF_CLUSTER, ordered[:MOST], _hidden(len(ordered), cluster.name))
    sections.following(context, f"stockyard disruption preview {cluster.name}")


def _taint(entry: dict[str, Any]) -> str:
    value = f"={entry['value']}" if entry.get("value") else ""
    return f"{entry.get('key')}{value}:{entry.get('effect')}"


def _hidden(count: int, cluster: str) -> str:
    return f"and {count - MOST} more: stockyard claim list --cluster {cluster}" if count > MOST else ""


def provider(context: Context, client: Client, record: NodeProvider) -> None:
    """Writes a provider: its state and why, its types, and the claims that it serves."""
    sections.title(context, f"provider {record.name}", record.phase, record.kind)
    if record.message or record.reason:
        sections.paragraph(context, ": ".join(filter(None, (record.reason, record.message))), "yellow")
    types = list(client.node_types.list(provider=record.name, page_size=200))
    claims = list(client.node_claims.list(provider=record.name))
    phases = Counter(claim.phase for claim in claims)
    sections.facts(
        context,
        {
            "Types": f"{len(types)}, of which {sum(t.phase == 'Available' for t in types)} are available",
            "Prices": _range(types),
            "Claims": ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items())) or "none",
            "Shared": "with all tenants, by the platform" if record.shared else None,
            "Display name": record.display_name,
            "Age": _age(context, record.created_at),
            "Id": record.id,
        },
    )
    sections.conditions(context, [Condition.model_validate(entry) for entry in _more(record).get("conditions") or ()])
    for warning in record.warnings:
        field_name = dotted(tokens_of(str(warning.get("pointer") or "")))
        text = ": ".join(part for part in (field_name, str(warning.get("detail") or "")) if part)
        sections.paragraph(context, f"Warning: {text}", "yellow")
    sections.following(context, f"stockyard type list --provider {record.name}")


def _range(types: Iterable[NodeType]) -> str | None:
    prices = sorted(entry.usd_hour for entry in types if entry.usd_hour is not None)
    return f"{dollars(prices[0])} to {dollars(prices[-1])} USD/hour" if prices else None


def node_type(context: Context, record: NodeType) -> None:
    """Writes a node type: what it has, what of it a claim can have, and at which prices."""
    extra = _more(record)
    sections.title(context, f"type {record.name}", record.phase, record.reason)
    if extra.get("message"):
        sections.paragraph(context, str(extra["message"]), "yellow")
    sections.facts(
        context,
        {
            "Resources": pairs_of(record.resources),
            "Allocatable": pairs_of(extra.get("allocatable") or {}),
            "Capacity": capacity(record),
            "Cost": amount(record.cost),
            "Price": price_text(record.usd_hour, owned=record.owned),
            "Properties": pairs_of(record.properties),
            "Id": record.id,
        },
    )
    offerings = [Offering.model_validate(entry) for entry in extra.get("offerings") or ()]
    by_zone = [line for offering in offerings for line in offering.by_zone()]
    sections.table(context, "Offerings", OFFERINGS, by_zone)
    sections.following(context, f"stockyard claim create --cluster CLUSTER --type {record.name} --dry-run")


def _label(attribute: str) -> str:
    """An attribute as a heading of facts: ``role_arn`` is `Role ARN`."""
    return attribute.replace("_", " ").capitalize().replace(" arn", " ARN")


def account(context: Context, client: Client, record: CloudAccount) -> None:
    """Writes an account: whether it can be used, and by which clusters it is."""
    sections.title(context, f"account {record.id}", record.verification or "", record.name)
    if record.verification_message:
        sections.paragraph(context, record.verification_message, "" if record.verification == "verified" else "yellow")
    attributes = {key: value for key, value in (_more(record).get("attributes") or {}).items() if value is not None}
    sections.facts(
        context,
        {
            "Provider": record.provider,
            "Description": record.description,
            **{_label(str(key)): value for key, value in attributes.items()},
            "External id": _more(record).get("external_id"),
            "Sealed": ", ".join(record.secrets),
            "Tags": pairs_of(_more(record).get("tags") or {}),
            "Verified": _age(context, _more(record).get("verified_at")),
            "Age": _age(context, record.created_at),
        },
    )
    for warning in record.warnings:
        sections.paragraph(context, f"Warning: {warning}", "yellow")
    clusters = [c for c in islice(client.clusters.list(page_size=200), 1000) if c.cloud_account_id == record.id]
    sections.table(context, "Clusters", CLUSTERS, clusters[:MOST])
    if record.verification != "verified":
        sections.following(context, f"stockyard account template {record.id}", f"stockyard account verify {record.id}")


def operation(context: Context, client: Client, record: Operation) -> None:
    """Writes an operation: each phase with its time and message, why it failed, what it changed."""
    sections.title(context, f"operation {record.id}", record.status, record.kind)
    sections.facts(
        context,
        {
            "Subject": f"{record.subject_name} ({record.subject})" if record.subject_name else record.subject,
            "Progress": f"{record.progress}%",
            "By": _more(record).get("actor"),
            "Attempt": _more(record).get("attempt"),
            "Began": _age(context, record.created_at),
            "Updated": _age(context, record.updated_at),
        },
    )
    for change in record.changes:
        sections.paragraph(context, f"{change.get('pointer')}: {change.get('before')} becomes {change.get('after')}")
    sections.operation(context, record, all_phases=True)
    sections.events(context, client.events.newest(record.subject, sections.EVENTS_SHOWN))
    if not record.done:
        sections.following(context, f"stockyard operation wait {record.id}")
