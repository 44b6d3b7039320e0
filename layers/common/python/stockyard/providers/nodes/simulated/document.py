"""Documents of machines that exist in Stockyard alone."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from stockyard.domain.models import fields
from stockyard.domain.models.nodes.block_fields import (
    MAX_TYPES,
    Count,
    NamedNodeType,
    Seconds,
    Usd,
    Zone,
    complete,
    one_of,
    unique_names,
)
from stockyard.domain.models.nodes.node_fields import Camel

Zones = Annotated[list[Zone], Field(min_length=1, max_length=26), AfterValidator(fields.distinct)]


class SimulatedType(NamedNodeType):
    """A machine that exists in Stockyard alone."""

    usd_per_hour: Usd | None = None
    spot_usd_per_hour: Usd | None = None
    zones: Zones | None = None
    max_capacity: Count | None = None

    @model_validator(mode="after")
    def _checked(self) -> Self:
        one_of(self, ("zone", "zones"), needed=False)
        complete(self)
        return self


def _seconds_or_never(value: Any) -> Any:
    if value == "never" or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 86_400):
        return value
    raise ValueError("must be seconds, at most 86400, or never")


class SimulatedBlock(Camel):
    """Machines that exist in Stockyard alone, to try things out: they cost nothing and join by themselves."""

    launch_seconds: Seconds = 0
    join_seconds: Annotated[Any, AfterValidator(_seconds_or_never)] = 0
    node_types: Annotated[list[SimulatedType], Field(max_length=MAX_TYPES), AfterValidator(unique_names)] | None = None
