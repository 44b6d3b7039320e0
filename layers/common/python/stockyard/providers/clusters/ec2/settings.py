"""The settings of a cluster on AWS EC2. Field by field the table of the reference, as decided."""

from __future__ import annotations

import re
from ipaddress import IPv4Network
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from stockyard.domain.control_plane import POD_CIDR, SERVICE_CIDR
from stockyard.domain.models import fields
from stockyard.domain.models.base import Fault, check
from stockyard.domain.models.clusters import ClusterSettings
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
from stockyard.providers.clusters.ec2.node_group_settings import NodeGroups, zones_outside

_SLURM_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


Integrations = Annotated[
    list[Literal["jupyterhub", "slurm"]],
    AfterValidator(fields.distinct),
    Field(json_schema_extra={"uniqueItems": True}),
]


_PRIVATE = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
_INSIDE = ((POD_CIDR, "pods"), (SERVICE_CIDR, "services"))


def _vpc_cidr(text: str) -> str:
    """A range that the layout of our own network fits into, and that nothing inside the cluster uses."""
    network = IPv4Network(text)
    if not 16 <= network.prefixlen <= 24:
        raise ValueError("must be between /16 and /24: a VPC takes no more, and its subnets need no less")
    if not any(network.subnet_of(private) for private in _PRIVATE):
        raise ValueError("must be private: within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16")
    for cidr, users in _INSIDE:
        if network.overlaps(IPv4Network(cidr)):
            raise ValueError(f"overlaps {cidr}, which the {users} of the cluster have")
    return text


VpcCidr = Annotated[fields.Cidr, AfterValidator(_vpc_cidr)]


class AwsSettings(ClusterSettings):
    """Settings of a cluster on AWS EC2. ``api_cidrs`` may reach the API endpoint, ``ssh_cidrs`` port 22.

    ``control_plane_instance_types`` are tried in this order, each in every zone, until EC2 has one;
    ``control_plane_instance_type`` is a list of one. ``vpc_cidr`` is the range of the cluster's own VPC.

    ``etcd_volume_gib`` is the size of the volume that outlives the control plane's machine, ``etcd_snapshots`` how many
    daily snapshots of it there are. ``cloud_controllers``: AWS's node controller, EBS driver and default StorageClass.
    ``image``: the control plane starts from it, instead of the current Ubuntu 24.04.
    """

    key_pair: aws_fields.KeyPair
    region_name: aws_fields.Region | None = None
    control_plane_instance_type: aws_fields.InstanceType | None = None
    control_plane_instance_types: aws_fields.InstanceTypes | None = None
    vpc_cidr: VpcCidr | None = None
    vpc_id: aws_fields.VpcId | None = None
    subnet_id: aws_fields.SubnetId | None = None
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
        if self.vpc_cidr and (self.vpc_id or self.subnet_id):
            faults.append((("vpc_cidr",), "cannot be given beside vpc_id or subnet_id: that VPC has its range"))
        outside = zones_outside(self.autoscaler_node_groups, self.region_name or DEFAULT_REGION)
        faults += [(("autoscaler_node_groups", *place), text) for place, text in outside]
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
        return document
