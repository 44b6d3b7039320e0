"""Models for the tests of descriptions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stockyard.domain.models import fields
from stockyard.domain.models.base import Irremovable, View
from stockyard.domain.models.fields import Description

Here = Annotated[str, Field(max_length=3)]
"""An alias of this module."""
Silent = str


class Thing(View):
    """A thing. It has fields."""

    own: int
    """What ``own`` is,
    in two lines."""
    here: Here
    perhaps: Irremovable[Here | None] = None
    imported: Description
    qualified: Annotated[fields.Description, Field(max_length=9)]
    silent: Silent
    given_name: Annotated[str, Field(description="From the field itself.")]
    """From below."""


class Child(Thing):
    """Another one."""

    here: Here
    """Said anew."""
