"""The node types that a tenant may use."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Input, View

AllowedType = Annotated[str, StringConstraints(max_length=130, pattern=patterns.ALLOWED_TYPE)]
AllowedTypes = Annotated[list[AllowedType], Field(max_length=200), AfterValidator(fields.distinct)]


class AllowedNodeTypesPut(Input):
    """The names of node types, ``provider.type`` or ``provider.*``: null allows all, an empty list none."""

    allowed: AllowedTypes | None


class AllowedNodeTypesView(View):
    """What the tenant may use. ``version`` is 0 until it is set for the first time."""

    allowed: list[str] | None
    updated_at: str | None
    version: int
