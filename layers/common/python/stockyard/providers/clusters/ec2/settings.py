"""The settings of a cluster on AWS EC2. Field by field the table of the reference, as decided."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Fault, Input, check, refuse, repeated
from stockyard.domain.models.clusters import ClusterSettings
from stockyard.domain.models.group_fields import GroupTaints
from stockyard.providers.clouds.aws import DEFAULT_REGION
from stockyard.providers.clouds.aws import fields as aws_fields
from stockyard.providers.clusters.ec2.configuration import (
    DEFAULT_CIDR,
    DEFAULT_TYPES,
    ETCD_SNAPSHOTS,
    ETCD_VOLUME_GIB,
    EVERYWHERE,
    LEAST_ETCD_GIB,
    MOST_ETCD_GIB,
    MOST_SNAPSHOTS,
)
from stockyard.providers.clusters.ec2.network_configuration import FOR_ALL, PER_ZONE
from stockyard.providers.clusters.ec2.network_settings import (
    Bastion,
    NatGateways,
    Subnets,
    VpcCidr,
    Zones,
    placement_faults,
)

MAX_GROUPS = 200
MAX_NODES = 10_000
"""What a document may say at all; a tenant's quotas ``node_groups`` and ``nodes_per_group`` allow less."""
_SLURM_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


class NodeGroup(Input):
    """A group of equal nodes. The ``control`` group gives size and type of the control plane."""

    name: Annotated[str, StringConstraints(max_length=63, pattern=patterns.LABEL)]
    role: Literal["control", "worker"]
    min_size: Annotated[int, Field(ge=0, le=MAX_NODES)]
    max_size: Annotated[int, Field(ge=0, le=MAX_NODES)]
    instance_types: aws_fields.InstanceTypes
    labels: fields.Labels = Field(default_factory=dict)
    taints: GroupTaints = Field(default_factory=list)
    allocation_strategy: Literal["lowest-price", "diversified", "capacity-optimized", "price-capacity-optimized"] = (
        "lowest-price"
    )
    capacity_type: Literal["on-demand", "spot"] = "on-demand"

    @model_validator(mode="after")
    def _sizes(self) -> NodeGroup:
        if self.min_size > self.max_size:
            raise refuse((("min_size",), "must not be greater than max_size"))
        if self.role == "control":
            fault = _control_fault(self.min_size, self.max_size)
            if fault:
                raise refuse((("max_size",), fault))
        return self


def _control_fault(smallest: int, largest: int) -> str | None:
    if smallest != largest:
        return "a control plane has a fixed size: min_size and max_size must be equal"
    if largest in (3, 5):
        return f"a control plane of size {largest} is not built yet; only size 1 is"
    return None if largest == 1 else "the size of a control plane must be 1, 3 or 5"


def _groups(groups: list[NodeGroup]) -> list[NodeGroup]:
    """Names must be unique, and only one group may be the control group."""
    control = [index for index, group in enumerate(groups) if group.role == "control"]
    controls: list[Fault] = [((index, "role"), "only one group may have the role control") for index in control[1:]]
    check([*repeated([group.name for group in groups], "another group has this name", "name"), *controls])
    return groups


NodeGroups = Annotated[list[NodeGroup], Field(max_length=MAX_GROUPS), AfterValidator(_groups)]
Integrations = Annotated[
    list[Literal["jupyterhub", "slurm"]],
    AfterValidator(fields.distinct),
    Field(json_schema_extra={"uniqueItems": True}),
]


_PLACEMENT = ("vpc_cidr", "vpc_id", "subnet_id", "subnets", "zones", "nat_gateways")


class AwsSettings(ClusterSettings):
    """Settings of a cluster on AWS EC2. ``api_cidrs`` may reach the API endpoint, ``ssh_cidrs`` port 22.

    ``control_plane_instance_types`` are tried in this order, each in every zone, until EC2 has one;
    ``control_plane_instance_type`` is a list of one. ``vpc_cidr`` is the range of the cluster's own VPC.

    ``etcd_volume_gib`` is the size of the volume that outlives the control plane's machine, ``etcd_snapshots`` how many
    daily snapshots of it there are. ``cloud_controllers``: AWS's node controller, EBS driver and default StorageClass.
    ``image``: the control plane starts from it, instead of the current Ubuntu 24.04.

    ``zones`` are those that the cluster's own VPC has subnets in. ``nat_gateways``: one for all of them, or one in
    each; where zones are named, one in each. ``subnets`` are those of ``vpc_id``, by zone. ``bastion``: the single way
    in for SSH, which otherwise reaches the control plane's machines alone.
    """

    key_pair: aws_fields.KeyPair
    region_name: aws_fields.Region | None = None
    control_plane_instance_type: aws_fields.InstanceType | None = None
    control_plane_instance_types: aws_fields.InstanceTypes | None = None
    vpc_cidr: VpcCidr | None = None
    vpc_id: aws_fields.VpcId | None = None
    subnet_id: aws_fields.SubnetId | None = None
    subnets: Subnets = Field(default_factory=list)
    zones: Zones = Field(default_factory=list)
    nat_gateways: NatGateways | None = None
    bastion: Bastion | None = None
    autoscaler_node_groups: NodeGroups = Field(default_factory=list)
    integrations: Integrations = Field(default_factory=list)
    ssh_cidrs: fields.Cidrs = Field(default_factory=list)
    api_cidrs: fields.Cidrs = Field(default_factory=lambda: [EVERYWHERE], min_length=1)
    public_control_plane: bool = False
    etcd_volume_gib: Annotated[int, Field(ge=LEAST_ETCD_GIB, le=MOST_ETCD_GIB)] = ETCD_VOLUME_GIB
    etcd_snapshots: Annotated[int, Field(ge=0, le=MOST_SNAPSHOTS)] = ETCD_SNAPSHOTS
    cloud_controllers: bool = True
    image: aws_fields.ImageId | None = None

    @model_validator(mode="after")
    def _agree(self) -> AwsSettings:
        single, several = self.control_plane_instance_type, self.control_plane_instance_types
        faults: list[Fault] = []
        if single and several and several[0] != single:
            faults.append((("control_plane_instance_types",), "must begin with control_plane_instance_type"))
        placement = {name: getattr(self, name) for name in _PLACEMENT}
        faults += placement_faults({**placement, "region_name": self.region_name or DEFAULT_REGION})
        check(faults)
        return self

    def name_fault(self, name: str) -> str | None:
        """Slurm takes the cluster's name for its own, which has narrower rules."""
        if "slurm" in self.integrations and not _SLURM_NAME.fullmatch(name):
            return "with the slurm integration: lower-case letters, digits, dashes; a letter first, no trailing dash"
        return None

    def normal(self) -> dict[str, Any]:
        """The settings as the record keeps them: every field there, defaults filled in.

        The control group's instance types win over the others.
        """
        document = super().normal()
        control = next((group for group in self.autoscaler_node_groups if group.role == "control"), None)
        document["region_name"] = self.region_name or DEFAULT_REGION
        single = [self.control_plane_instance_type] if self.control_plane_instance_type else None
        types = (control.instance_types if control else self.control_plane_instance_types or single) or [*DEFAULT_TYPES]
        document["control_plane_instance_type"], document["control_plane_instance_types"] = types[0], types
        if not (self.vpc_id or self.subnet_id):
            document["vpc_cidr"] = self.vpc_cidr or DEFAULT_CIDR
            document["nat_gateways"] = self.nat_gateways or (PER_ZONE if self.zones else FOR_ALL)
        return document
