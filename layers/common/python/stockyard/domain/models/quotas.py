"""Quotas of a tenant, the node types that it may use, and the accounts that it may send events from."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Input, View

AllowedType = Annotated[str, StringConstraints(max_length=130, pattern=patterns.ALLOWED_TYPE)]
EventAccount = Annotated[str, StringConstraints(pattern=patterns.EVENT_ACCOUNT)]
EventAccounts = Annotated[list[EventAccount], Field(max_length=40), AfterValidator(fields.distinct)]
AllowedTypes = Annotated[list[AllowedType], Field(max_length=200), AfterValidator(fields.distinct)]


class QuotaPut(Input):
    """A tenant's own limit."""

    limit: Annotated[int, Field(ge=0, le=100_000)]


class QuotaView(View):
    """A limit and how much of it is used. ``version`` is 0 while the default holds, ``limit`` null without one.

    ``per-user.`` before the name: the limit of each user, and the use of the one who has the most.
    """

    name: str
    limit: int | None
    used: int
    version: int


class AllowedNodeTypesPut(Input):
    """The names of node types, ``provider.type`` or ``provider.*``: null allows all, an empty list none."""

    allowed: AllowedTypes | None


class AllowedNodeTypesView(View):
    """What the tenant may use. ``version`` is 0 until it is set for the first time."""

    allowed: list[str] | None
    updated_at: str | None
    version: int


class EventAccountsPut(Input):
    """Accounts of the event bus, of 12 digits, that no other tenant has."""

    accounts: EventAccounts


class EventAccountsView(View):
    """Accounts of the event bus whose request events are the tenant's. ``version`` is 0 until it is set."""

    accounts: list[str]
    updated_at: str | None
    version: int
