"""The plan of a dry run."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from stockyard.domain.models.base import View


class PlannedThing(View):
    """Something that would be made or removed."""

    kind: str
    name: str


class PlannedChange(View):
    """A field that would change: the value now and then. ``kind`` and ``name`` say whose field it is, ``field`` where
    it is for people (``nodeTypes[small].usdPerHour``), ``pointer`` where it is in the body. An operation has only
    pointers."""

    kind: str = ""
    name: str = ""
    pointer: str
    field: str = ""
    before: Any
    after: Any


class Remark(View):
    """Why something was ruled out, or what to mind; ``pointer`` is the place in the body."""

    pointer: str
    detail: str


class GroupView(View):
    """Node types that one rule excluded: ``types`` names the first ten of ``count``, ``message`` says what of them. In
    explanations those that fit and were not chosen have the rule ``Fits``, the cheapest first."""

    rule: str
    message: str
    count: int
    types: list[str]


class PriceItem(View):
    """One line of a price; ``hour`` and ``month`` are null where the catalogue does not know it."""

    name: str
    quantity: int
    hour: float | None
    month: float | None


class Price(View):
    """What the plan costs; ``complete`` is false when a line has no known price."""

    currency: str = "USD"
    hour: float
    month: float
    complete: bool = True
    items: list[PriceItem]


class Plan(View):
    """What would be made, changed and removed, what it costs, what was rejected and why. ``price_before`` is what is
    paid now, of a change that has a price; of a deletion ``price`` is what is saved. ``verdict`` is one sentence that
    comes first: what was chosen or why nothing fits, what a deletion removes and saves; empty of other plans.
    ``groups`` are the node types that do not fit, by the rule that excluded them, and ``rejected`` the same one by one,
    up to 200."""

    verdict: str = ""
    groups: list[GroupView] = Field(default_factory=list)
    creates: list[PlannedThing] = Field(default_factory=list)
    changes: list[PlannedChange] = Field(default_factory=list)
    deletes: list[PlannedThing] = Field(default_factory=list)
    price: Price = Price(hour=0, month=0, items=[])
    price_before: Price | None = None
    steps: list[str] = Field(default_factory=list)
    """Of a change of a ready cluster: what happens, in order."""
    rejected: list[Remark] = Field(default_factory=list)
    warnings: list[Remark] = Field(default_factory=list)


class PlanView(View):
    """The answer to ``?dry_run=true``; nothing was written."""

    plan: Plan
