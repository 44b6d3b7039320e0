"""The settings of a cluster on EKS."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Input, check, refuse, repeated
from stockyard.domain.models.clusters import ClusterSettings
from stockyard.domain.models.patterns import worded
from stockyard.providers.clouds.aws import DEFAULT_REGION
from stockyard.providers.clouds.aws import fields as aws_fields

SYSTEM = "system"
"""The role of groups for controllers, and the name of the group that a cluster has in any case."""
MAX_GROUPS, MAX_NODES = 8, 1000
DEFAULT_VPC = "10.0.0.0/16"
DEFAULT_SUBNETS = ("10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20")
_RESERVATION = worded(r"^cr-[0-9a-f]+$", "the id of a capacity reservation: cr- and hexadecimal digits")
_ZONE = worded(r"^[a-z0-9-]{1,63}$", "the name of a zone, such as us-west-2a")
Zone = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=_ZONE)]
NodeCount = Annotated[int, Field(ge=0, le=MAX_NODES)]


class Taint(Input):
    """A Kubernetes node taint."""

    key: fields.LabelKey
    value: fields.LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class EksNodeGroup(Input):
    """A group of equal nodes. ``count`` is how many there are at first; then there are between ``min_size`` and
    ``max_size``, as pods need them.

    ``accelerator_type`` names the GPUs of a group with the role ``gpu``. ``capacity_reservation_id`` is the capacity
    block that the nodes come from.
    """

    name: Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=patterns.LABEL)]
    role: Literal["system", "gpu"]
    instance_type: aws_fields.InstanceType
    disk_gib: Annotated[int, Field(ge=10, le=65_536)] | None = 100
    count: NodeCount = 1
    min_size: NodeCount = 0
    max_size: NodeCount = 8
    zones: Annotated[list[Zone], Field(max_length=8), AfterValidator(fields.distinct)] = Field(default_factory=list)
    fabric: Literal["none", "efa"] = "none"
    accelerator_type: Annotated[str, StringConstraints(max_length=63)] = ""
    capacity_reservation_id: (
        Annotated[str, StringConstraints(min_length=4, max_length=64, pattern=_RESERVATION)] | None
    ) = None
    labels: fields.Labels = Field(default_factory=dict)
    taints: Annotated[list[Taint], Field(max_length=50)] = Field(default_factory=list)

    @model_validator(mode="after")
    def _agree(self) -> EksNodeGroup:
        faults = []
        if not self.min_size <= self.count:
            faults.append((("min_size",), "must not be greater than count"))
        if not self.count <= self.max_size:
            faults.append((("max_size",), "must not be less than count"))
        if self.role == "gpu" and not self.accelerator_type:
            faults.append((("accelerator_type",), "is required when role is gpu"))
        if self.role == "gpu" and not self.zones:
            faults.append((("zones",), "is required when role is gpu"))
        check(faults)
        return self


def _groups(groups: list[EksNodeGroup]) -> list[EksNodeGroup]:
    check(repeated([group.name for group in groups], "another group has this name", "name"))
    return groups


class EksSettings(ClusterSettings):
    """Settings of a cluster on AWS EKS. ``subnet_cidrs`` are the public subnets, one for each zone.

    ``nat_gateways``: one for all zones, or one for each. ``public_access_cidrs`` may reach the API from outside; none
    given: everybody may. ``support`` is how long AWS supports the cluster's version. ``shared_storage``: a file system
    and a StorageClass for volumes that many pods write.
    """

    region_name: aws_fields.Region = DEFAULT_REGION
    vpc_cidr: fields.Cidr = DEFAULT_VPC
    subnet_cidrs: Annotated[list[fields.Cidr], Field(min_length=2, max_length=6), AfterValidator(fields.distinct)] = (
        Field(default_factory=lambda: [*DEFAULT_SUBNETS])
    )
    zones: Annotated[list[Zone], Field(max_length=6), AfterValidator(fields.distinct)] = Field(default_factory=list)
    nat_gateways: Literal["one", "zone"] = "one"
    public_access_cidrs: fields.Cidrs = Field(default_factory=list)
    support: Literal["standard", "extended"] = "standard"
    addon_versions: dict[str, str] = Field(default_factory=dict)
    shared_storage: bool = True
    namespace: Annotated[str, StringConstraints(max_length=63)] = ""
    node_groups: Annotated[list[EksNodeGroup], Field(max_length=MAX_GROUPS), AfterValidator(_groups)] = Field(
        default_factory=list
    )

    @model_validator(mode="after")
    def _places(self) -> EksSettings:
        if self.zones and len(self.zones) != len(self.subnet_cidrs):
            raise refuse((("zones",), "must name as many zones as there are subnets"))
        return self

    def normal(self) -> dict[str, Any]:
        """The settings as the record keeps them: with the group of the name ``system`` that every cluster has."""
        document = super().normal()
        if not any(group.name == SYSTEM for group in self.node_groups):
            document["node_groups"] = [builtin_group(), *document["node_groups"]]
        return document


def builtin_group() -> dict[str, Any]:
    """The group of a cluster that names none called ``system``."""
    group = EksNodeGroup(
        name=SYSTEM, role="system", instance_type="m6i.xlarge", disk_gib=None, count=1, min_size=1, max_size=2
    )
    return {**group.model_dump(mode="json"), "builtin": True}
