"""Node types as callers see them."""

from __future__ import annotations

from typing import Any, Literal

from stockyard.domain.models.base import View
from stockyard.domain.models.clusters.views import ConditionView
from stockyard.domain.models.view_fields import CapacityType, CreatedAt, Message, Reason, UpdatedAt, Version


class RefusedView(View):
    """A zone in which the provider refused a machine a short while ago."""

    zone: str
    """The zone; ``*`` stands for all."""
    reason: str
    """The code of the refusal."""
    refused_at: str
    """When it was refused."""
    until: str
    """From when on it is tried again."""


class SpotPointView(View):
    """A spot price."""

    time: str
    """From when on it held, as the hourly refresh saw it."""
    usd_hour: float
    """USD an hour, with the disk of a node."""


class OfferingView(View):
    """One way to get a node of the type."""

    capacity_type: CapacityType
    zones: list[str]
    """The zones where it is on offer."""
    usd_hour: float | None
    """USD an hour in the cheapest zone; null where no price is known."""
    zone_prices: dict[str, float]
    """USD an hour by the id of the zone, where it costs something else in each; a zone that is not here has none."""
    refused: list[RefusedView]
    """The zones in which it was refused a short while ago and is not tried yet."""


class CapacityView(View):
    """Numbers of nodes of the type: how many there may be, are claimed, and are left."""

    total: int | None
    """How many nodes of the type there may be; null for any number."""
    claimed: int | None
    """How many of them are claimed; null where the number is not limited."""
    available: int | None
    """How many more there may be; null where the number is not limited, negative when the limit was lowered below what
    is claimed."""
    counted_at: str | None
    """When the provider's machines were counted; null where the number is only what the document allows."""


class NodeTypeView(View):
    """A kind of node on offer."""

    id: str
    """The id of the type."""
    name: str
    """The canonical name, ``provider.type``."""
    type: str
    """The bare name."""
    provider: str
    """The name of its node provider."""
    provider_id: str
    """The id of its node provider."""
    display_name: str
    """A name for people."""
    phase: Literal["Pending", "Available", "Unavailable", "Failed"]
    """Whether claims can get a node of it."""
    reason: Reason
    message: Message
    conditions: list[ConditionView]
    """What is observed of it, an aspect each."""
    properties: dict[str, str]
    """The effective properties, also the built-in ones: one value, a comma list, or ``*``."""
    requirements: list[dict[str, Any]]
    """The same as requirements that a selector has."""
    resources: dict[str, str]
    """What a node of it has, by the name of the resource."""
    allocatable: dict[str, str]
    """What of that is for pods."""
    cost: float
    """Orders the types of a provider: what is written, else the price where it is known, else an estimate."""
    usd_hour: float | None
    """USD an hour of the cheapest offering in its cheapest zone; null where no price is known."""
    owned: bool
    """Whether its machines are the owner's anyway: such types come before all that are rented. A node of one costs
    nothing where ``usd_hour`` is 0."""
    offerings: list[OfferingView]
    """The ways to get a node of it."""
    disk_gib: int
    """The usual disk of a node in GiB, which is billed beside its machine and is in all prices here; 0: the price of a
    machine has its disk."""
    disk_usd_hour: float | None
    """What of a price is that disk, in USD an hour; null where it is not known."""
    capacity: CapacityView
    """How many nodes of it there may be."""
    spot_history: dict[str, list[SpotPointView]] | None
    """Spot prices of the last day by the id of the zone, the oldest first; null where ``history`` was not in the
    request."""
    labels: dict[str, str]
    """Labels by key."""
    annotations: dict[str, str]
    """Annotations by key."""
    created_at: CreatedAt
    updated_at: UpdatedAt
    version: Version
