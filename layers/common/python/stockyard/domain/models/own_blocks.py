"""Where nodes come from in our own documents: EC2, and machines that exist in Stockyard alone."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.block_fields import (
    MAX_TYPES,
    Cost,
    Count,
    NamedNodeType,
    Seconds,
    Usd,
    Zone,
    complete,
    distinct,
    one_of,
    unique_names,
)
from stockyard.domain.models.node_fields import Camel, DisplayName, Properties

Glob = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=patterns.TYPE_GLOB)]
SecurityGroup = Annotated[str, StringConstraints(pattern=patterns.SECURITY_GROUP)]
CapacityType = Literal["on-demand", "spot"]
CapacityTypes = Annotated[list[CapacityType], Field(min_length=1, max_length=2), AfterValidator(distinct)]
Globs = Annotated[list[Glob], Field(min_length=1, max_length=200), AfterValidator(distinct)]
Subnets = Annotated[list[fields.SubnetId], Field(min_length=1, max_length=16), AfterValidator(distinct)]
SecurityGroups = Annotated[list[SecurityGroup], Field(min_length=1, max_length=16), AfterValidator(distinct)]
Zones = Annotated[list[Zone], Field(min_length=1, max_length=26), AfterValidator(distinct)]


class Ec2Type(Camel):
    """What differs for one instance type of EC2 from what the catalogue says."""

    name: fields.InstanceType
    display_name: DisplayName | None = None
    properties: Properties | None = None
    cost: Cost | None = None
    max_capacity: Count | None = None


def _on_demand() -> list[CapacityType]:
    return ["on-demand"]


class Ec2Block(Camel):
    """Instances of one region, in the account of a cloud account."""

    cloud_account: Annotated[int, Field(ge=1, le=2**31 - 1)]
    region: fields.Region = "us-east-1"
    capacity_types: CapacityTypes = Field(default_factory=_on_demand)
    allocation_strategy: (
        Literal["lowest-price", "capacity-optimized", "price-capacity-optimized", "diversified"] | None
    ) = None
    instance_types: Globs = Field(default_factory=lambda: ["*"])
    instance_profile: Annotated[str, StringConstraints(pattern=patterns.INSTANCE_PROFILE)] | None = None
    subnets: Subnets | None = None
    security_groups: SecurityGroups | None = None
    image: Annotated[str, StringConstraints(pattern=patterns.IMAGE)] | None = None
    node_types: Annotated[list[Ec2Type], Field(max_length=MAX_TYPES), AfterValidator(unique_names)] | None = None


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
