"""Node types as callers see them."""

from __future__ import annotations

from typing import Any, Literal

from stockyard.domain.models.base import View
from stockyard.domain.models.cluster_views import ConditionView


class OfferingView(View):
    """One way to get a node of the type; ``usd_hour`` is null where no price is known."""

    capacity_type: str
    zones: list[str]
    usd_hour: float | None


class CapacityView(View):
    """Nodes of the type; all null where they are not limited, and so not counted."""

    total: int | None
    claimed: int | None
    available: int | None


class NodeTypeView(View):
    """A kind of node on offer. ``name`` is canonical, ``provider.type``; ``type`` the bare name.

    ``properties`` are the effective ones, also the built-in ones: one value, a comma list, or ``*``. ``requirements``
    are the same as selector requirements. ``cost`` is what is written, else the price where it is known, else the
    formula's, and orders the types of one provider; ``usd_hour`` is the cheapest offering's price.
    """

    id: str
    name: str
    type: str
    provider: str
    provider_id: str
    display_name: str
    phase: Literal["Pending", "Available", "Unavailable", "Failed"]
    reason: str
    message: str
    conditions: list[ConditionView]
    properties: dict[str, str]
    requirements: list[dict[str, Any]]
    resources: dict[str, str]
    allocatable: dict[str, str]
    cost: float
    usd_hour: float | None
    offerings: list[OfferingView]
    capacity: CapacityView
    labels: dict[str, str]
    annotations: dict[str, str]
    created_at: str
    updated_at: str
    version: int
