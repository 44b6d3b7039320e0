"""Quotas of a tenant, the node types for its use, and the accounts from which events are accepted."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Input, View

AllowedType = Annotated[str, StringConstraints(max_length=130, pattern=patterns.ALLOWED_TYPE)]
EventAccount = Annotated[str, StringConstraints(pattern=patterns.EVENT_ACCOUNT)]
EventAccounts = Annotated[list[EventAccount], Field(max_length=40), AfterValidator(fields.distinct)]
EventRights = Literal["operator", "admin"]
AllowedTypes = Annotated[list[AllowedType], Field(max_length=200), AfterValidator(fields.distinct)]


class QuotaPut(Input):
    """A tenant's own limit."""

    limit: Annotated[int, Field(ge=0, le=100_000_000)] | None
    """The new limit; null for the default again, which is none for some. What is used already stays."""


class QuotaView(View):
    """A limit and how much of it is used."""

    name: str
    """The name of the quota; with ``per-user.`` before it the limit of each user."""
    limit: int | None
    """The limit; null for none."""
    used: int
    """How much of it is used; of a limit of each user, by the one who has the most."""
    version: int
    """Rises each time that it is set; 0 while the default holds."""


class AllowedNodeTypesPut(Input):
    """The node types that the tenant may use."""

    allowed: AllowedTypes | None
    """Names of node types, ``provider.type``, or ``provider.*`` for all of a provider; null allows all, an empty list
    none."""


class AllowedNodeTypesView(View):
    """The node types that the tenant may use."""

    allowed: list[str] | None
    """The names of the node types that the tenant may use; null for all, an empty list for none."""
    updated_at: str | None
    """When it was set last; null for never."""
    version: int
    """Rises each time that it is set; 0 before."""


class EventAccountsPut(Input):
    """The accounts of the event bus that the tenant sends from."""

    accounts: EventAccounts
    """Accounts of the event bus, of 12 digits, that no other tenant has."""
    rights: EventRights = "operator"
    """Rights of their requests: those of an `operator`, or of an `admin`, who may also ask for node providers and
    choose packs with the rights of an administrator."""


class EventAccountsView(View):
    """The accounts of the event bus that the tenant sends from."""

    accounts: list[str]
    """Accounts of the event bus whose request events are the tenant's."""
    rights: EventRights
    """Rights of their requests."""
    updated_at: str | None
    """When it was set last; null for never."""
    version: int
    """Rises each time that it is set; 0 before."""
