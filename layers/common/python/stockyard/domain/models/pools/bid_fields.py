"""The most that spot may cost, zones to spread over, and how nodes are replaced: as documents of pools say it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Fault, Input, check
from stockyard.domain.pools.bids import PERCENT, USD_HOUR

MOST_PERCENT = 1000.0
MOST_USD_HOUR = 1000.0
"""More than any machine costs."""
MOST_ZONES = 10
_FIGURE = patterns.worded(r"^(100|[0-9]{1,2})%$", "a number of nodes, or a percentage from 0% to 100%")

Zone = Annotated[str, StringConstraints(max_length=63, pattern=patterns.LOWER_NAME)]
Zones = Annotated[
    list[Zone],
    Field(max_length=MOST_ZONES, json_schema_extra={"uniqueItems": True}),
    AfterValidator(fields.distinct),
]
"""Zones over which the nodes of a pool are spread evenly."""
Figure = (
    Annotated[int, Field(ge=0, le=10_000, strict=True)]
    | Annotated[str, StringConstraints(max_length=4, pattern=_FIGURE)]
)


class MaxPrice(Input):
    """The most that a node may cost as spot, in one of two forms."""

    percent: Annotated[float, Field(gt=0, le=MOST_PERCENT, allow_inf_nan=False)] | None = None
    """Percent of what the node type costs on demand in its region; it may be more than 100."""
    usd_hour: Annotated[float, Field(gt=0, le=MOST_USD_HOUR, allow_inf_nan=False)] | None = None
    """USD an hour."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.percent is None) == (self.usd_hour is None):
            raise ValueError(f"needs either {PERCENT} or {USD_HOUR}")
        return self

    def entry(self) -> dict[str, float]:
        """The bid as the record keeps it."""
        return self.model_dump(exclude_none=True)


class UpdateStrategy(Input):
    """Strategy to replace nodes that are not as they would be made now."""

    type: Literal["add_first", "remove_first", "custom"] = "add_first"
    """``add_first`` makes the next node before one leaves, ``remove_first`` lets one leave before, ``custom`` has the
    two figures."""
    max_surge: Figure | None = None
    """How many nodes more than wanted there may be at a time, as a number or in percent; for ``custom`` only."""
    max_unavailable: Figure | None = None
    """How many nodes fewer than wanted there may be at a time, as a number or in percent; for ``custom`` only."""

    @model_validator(mode="after")
    def _figures(self) -> Self:
        faults: list[Fault] = []
        names = ("max_surge", "max_unavailable")
        if self.type != "custom":
            faults += [((name,), "is for the type custom only") for name in names if getattr(self, name) is not None]
        else:
            faults += [
                ((name,), "this field is required for the type custom") for name in names if getattr(self, name) is None
            ]
            if not faults and all(str(getattr(self, name)).rstrip("%") in ("0", "00") for name in names):
                faults.append((("max_unavailable",), "must not be 0 where max_surge is: no node could be replaced"))
        check(faults)
        return self

    def entry(self) -> dict[str, Any]:
        """The strategy as the record keeps it: nothing where it is the usual one."""
        return {} if self.type == "add_first" else self.model_dump(exclude_none=True)
