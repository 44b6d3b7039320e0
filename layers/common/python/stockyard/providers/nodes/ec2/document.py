"""Documents of nodes on EC2."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from stockyard.domain.models import fields
from stockyard.domain.models.nodes.block_fields import MAX_TYPES, Cost, Count, unique_names
from stockyard.domain.models.nodes.node_fields import Camel, DisplayName, Properties
from stockyard.domain.models.patterns import worded
from stockyard.providers.clouds.aws import DEFAULT_REGION
from stockyard.providers.clouds.aws import fields as aws_fields

_TYPE_GLOB = worded(
    r"^[a-z0-9*?][a-z0-9*?.-]{0,62}$",
    "an EC2 instance type, in which * and ? stand for other characters, such as m6i.*",
)
Glob = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=_TYPE_GLOB)]
_SECURITY_GROUP = worded(
    r"^sg-([0-9a-f]{8}|[0-9a-f]{17})$", "the id of a security group: sg- and 8 or 17 hexadecimal digits"
)
_INSTANCE_PROFILE = worded(r"^[A-Za-z0-9_+=,.@-]{1,128}$", "the name of an instance profile")
SecurityGroup = Annotated[str, StringConstraints(pattern=_SECURITY_GROUP)]
CapacityType = Literal["on-demand", "spot"]
CapacityTypes = Annotated[list[CapacityType], Field(min_length=1, max_length=2), AfterValidator(fields.distinct)]
Globs = Annotated[list[Glob], Field(min_length=1, max_length=200), AfterValidator(fields.distinct)]
Subnets = Annotated[list[aws_fields.SubnetId], Field(min_length=1, max_length=16), AfterValidator(fields.distinct)]
SecurityGroups = Annotated[list[SecurityGroup], Field(min_length=1, max_length=16), AfterValidator(fields.distinct)]


class Ec2Type(Camel):
    """Differences of one instance type of EC2 from what the catalogue says."""

    name: aws_fields.InstanceType
    display_name: DisplayName | None = None
    properties: Properties | None = None
    cost: Cost | None = None
    max_capacity: Count | None = None


def _on_demand() -> list[CapacityType]:
    return ["on-demand"]


class Ec2Block(Camel):
    """Instances of one region, in the account of a cloud account."""

    cloud_account: Annotated[int, Field(ge=1, le=2**31 - 1)]
    region: aws_fields.Region = DEFAULT_REGION
    capacity_types: CapacityTypes = Field(default_factory=_on_demand)
    allocation_strategy: (
        Literal["lowest-price", "capacity-optimized", "price-capacity-optimized", "diversified"] | None
    ) = None
    instance_types: Globs = Field(default_factory=lambda: ["*"])
    instance_profile: Annotated[str, StringConstraints(pattern=_INSTANCE_PROFILE)] | None = None
    subnets: Subnets | None = None
    security_groups: SecurityGroups | None = None
    image: aws_fields.ImageId | None = None
    node_types: Annotated[list[Ec2Type], Field(max_length=MAX_TYPES), AfterValidator(unique_names)] | None = None
