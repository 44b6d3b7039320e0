"""Limits of a cluster: what it may have together with its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator

from stockyard.domain.models.base import check
from stockyard.domain.models.nodes.node_fields import Quantity, Resources
from stockyard.domain.month_budgets import USD_MONTH


def _limits(limits: Mapping[str, object]) -> dict[str, object]:
    text = f"is no limit of a cluster, which has only {USD_MONTH}; pools have limits of nodes and resources"
    check([((name,), text) for name in limits if name != USD_MONTH])
    return {name: amount if amount is None else str(amount) for name, amount in limits.items()}


ClusterLimits = Annotated[Resources, AfterValidator(_limits)]
"""What the cluster may have with its nodes: ``usd_month``, the most that it is to cost in a calendar month of UTC."""
LimitsPatch = Annotated[dict[str, Quantity | None], AfterValidator(_limits)]


def limits_after(current: Mapping[str, str], patch: Mapping[str, object] | None) -> dict[str, str]:
    """``current`` after a JSON merge patch; None removes all."""
    merged = {**current, **patch} if patch is not None else {}
    return {name: str(amount) for name, amount in merged.items() if amount is not None}
