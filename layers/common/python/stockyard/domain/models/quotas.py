"""Quotas of a tenant."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stockyard.domain.models.base import Input, View


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
