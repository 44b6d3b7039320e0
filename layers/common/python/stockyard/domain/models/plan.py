"""The plan of a dry run."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from stockyard.domain.models.base import View
from stockyard.domain.models.manifests.set_members import SetMemberView


class PlannedThing(View):
    """Something that would be made or removed."""

    kind: str
    """What it is."""
    name: str
    """Its name."""


class PlannedChange(View):
    """A field that would change."""

    kind: str = ""
    """The kind of what has the field; empty of an operation."""
    name: str = ""
    """The name of what has the field; empty of an operation."""
    pointer: str
    """The JSON pointer of the field in the body."""
    field: str = ""
    """Where it is, for people, such as ``nodeTypes[small].usdPerHour``; empty of an operation."""
    before: Any
    """The value now."""
    after: Any
    """The value then."""


class Remark(View):
    """Reason why something was ruled out, or a remark to mind."""

    pointer: str
    """The JSON pointer of the place in the body; empty for all of it."""
    detail: str
    """What is to be said, as a sentence."""
    note: bool = False
    """Whether it only tells what is so; what is no note has to be minded. Absent for false."""


class GroupView(View):
    """Node types that one rule excluded."""

    rule: str
    """The rule; ``Fits`` for those that fit and were not chosen."""
    message: str
    """What the rule says of them."""
    count: int
    """How many types there are."""
    types: list[str]
    """The names of the first ten; of those that fit the cheapest."""


class PriceItem(View):
    """One line of a price."""

    name: str
    """What costs it."""
    quantity: int
    """How many of them there are."""
    hour: float | None
    """Its price an hour, for all of them; null where it is not known."""
    month: float | None
    """Its price in a month of 730 hours, for all of them; null where it is not known."""


class Price(View):
    """Cost of the plan."""

    currency: str = "USD"
    """The currency of all prices."""
    hour: float | None
    """The sum of an hour; null where the price of a line is not known."""
    month: float | None
    """The sum of a month of 730 hours; null where the price of a line is not known."""
    complete: bool = True
    """False when a line has no known price."""
    known_hour: float = 0
    """What of an hour is known: the sum is at least that."""
    known_month: float = 0
    """What of a month of 730 hours is known."""
    items: list[PriceItem]
    """The lines that make the sum."""


class PlannedRun(View):
    """The run of a template that would make a node."""

    template: dict[str, Any]
    """The template as the provider's document has it: ``inline``, or ``git`` with the commit that is known."""
    variables: dict[str, Any]
    """Its variables by name, without secrets: the user data joins no cluster, and secret outputs of the environment
    are missing."""


class Plan(View):
    """The resources to make, to change and to remove, the costs, and the rejected types with the reasons."""

    verdict: str = ""
    """One sentence that comes first: what was chosen or why nothing fits, what a deletion removes and saves; empty of
    other plans."""
    groups: list[GroupView] = Field(default_factory=list)
    """The node types that do not fit, by the rule that excluded them; ``rejected`` has up to 200 one by one."""
    creates: list[PlannedThing] = Field(default_factory=list)
    """What would be made."""
    changes: list[PlannedChange] = Field(default_factory=list)
    """The fields that would change."""
    deletes: list[PlannedThing] = Field(default_factory=list)
    """What would be removed."""
    price: Price = Price(hour=0, month=0, items=[])
    """What it costs then; of a deletion what is saved."""
    price_before: Price | None = None
    """What is paid now, of a change that has a price; else null."""
    steps: list[str] = Field(default_factory=list)
    """Of a change of a ready cluster: what happens, in order."""
    rejected: list[Remark] = Field(default_factory=list)
    """What was ruled out, and why."""
    warnings: list[Remark] = Field(default_factory=list)
    """What to mind."""
    unnamed: list[SetMemberView] = Field(default_factory=list)
    """Of manifests of a set: what it has applied before, is still there, and no document names. It stays."""
    run: PlannedRun | None = None
    """Of a claim, where ``run`` was given: the run that would make its node; null where no template makes it."""


class PlanView(View):
    """The answer to ``?dry_run=true``; nothing was written."""

    plan: Plan
    """What would be done."""
