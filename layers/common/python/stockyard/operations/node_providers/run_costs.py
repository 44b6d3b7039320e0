"""Costs of runs for plans: minutes and money of the programs that make and remove a node."""

from __future__ import annotations

from typing import Any

from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.records import NodeProvider
from stockyard.domain.values.notes import Note, remark
from stockyard.operations.services import Services

DAYS_A_MONTH = 365 / 12


def run_notes(
    services: Services, provider: NodeProvider | None, node_type: NodeType, subject: str = "it"
) -> list[dict[str, Any]]:
    """Note of a plan for a node of the type: how long its runs take and what they cost; nothing where none makes it.
    ``subject`` is what the plan calls the node."""
    source = services.node_sources.get(provider.kind) if provider is not None else None
    if provider is None or source is None:
        return []
    times = source.run_times(provider, node_type.bare)
    if times is None:
        return []
    price = times.usd_a_minute
    text = (
        f"Runs in your own account make and remove {subject}: about {times.once} minutes, {price * times.once:.2f} USD,"
        f" at most {times.longest} minutes, {price * times.longest:.2f} USD; one of {times.daily} minutes compares"
        f" {subject} each day, {price * times.daily * DAYS_A_MONTH:.2f} USD a month."
    )
    if times.environment:
        text += (
            f" About {times.environment} minutes, {price * times.environment:.2f} USD, are once for the environment of"
            " the cluster."
        )
    return [remark("", Note(f"{text} A minute is {price:g} USD. None of this is in the price."))]
