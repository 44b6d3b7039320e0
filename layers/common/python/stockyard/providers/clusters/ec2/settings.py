"""The settings of a cluster on AWS EC2. Field by field the table of the reference, as decided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from stockyard.domain.clusters.control_plane import size_fault
from stockyard.domain.clusters.snapshots import KEEP, MOST_KEEP
from stockyard.domain.models import fields
from stockyard.domain.models.base import Fault, Input, check
from stockyard.domain.models.clusters.clusters import ClusterSettings
from stockyard.domain.models.clusters.overlay import OverlayNetwork, overlap_fault
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem
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
from stockyard.providers.clusters.ec2.members import control_group
from stockyard.providers.clusters.ec2.network.network_configuration import FOR_ALL, PER_ZONE
from stockyard.providers.clusters.ec2.network.network_settings import (
    Bastion,
    NatGateways,
    Subnets,
    VpcCidr,
    Zones,
    placement_changes,
    placement_faults,
)
from stockyard.providers.clusters.ec2.node_group_settings import NodeGroup, NodeGroups, zones_outside

_SLURM_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


Integrations = Annotated[
    list[Literal["jupyterhub", "slurm"]],
    AfterValidator(fields.distinct),
    Field(json_schema_extra={"uniqueItems": True}),
]
"""What the cluster is prepared for besides: JupyterHub, Slurm."""


class EtcdBackup(Input):
    """Snapshots of etcd in S3."""

    interval_hours: Literal[1, 2, 3, 4, 6, 8, 12, 24] = 6
    """How many hours lie between two snapshots."""
    keep: Annotated[int, Field(ge=1, le=MOST_KEEP)] = KEEP
    """How many snapshots stay, the newest."""
    bucket: aws_fields.Bucket | None = None
    """A bucket of the account's own in the cluster's region, in place of one that is made for the cluster."""
    on_deletion: Literal["remove", "keep"] = "remove"
    """Whether the snapshots go with the cluster."""


_PLACEMENT = ("vpc_cidr", "vpc_id", "subnet_id", "subnets", "zones", "nat_gateways")


class AwsSettings(ClusterSettings):
    """Settings of a cluster on AWS EC2."""

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset(
        {
            "autoscaler_node_groups",
            "api_cidrs",
            "ssh_cidrs",
            "bastion",
            "repave_approval",
            "control_plane_size",
            "control_plane_instance_type",
            "control_plane_instance_types",
            "etcd_backup",
            "etcd_snapshots",
            "key_pair",
            "nat_gateways",
            "subnets",
            "zones",
        }
    )

    CALLED_HERE: ClassVar[Mapping[str, str]] = {"node_groups": "autoscaler_node_groups"}
    REMOVABLE: ClassVar[frozenset[str]] = frozenset({"etcd_backup", "key_pair"})
    AGREEING: ClassVar[frozenset[str]] = control_group.AGREEING
    MADE_WITH: ClassVar[Mapping[str, frozenset[str]]] = {
        **dict.fromkeys(("vpc_cidr", "vpc_id", "subnet_id"), frozenset({"network"})),
        "public_control_plane": frozenset({"network", "control_plane"}),
        "key_pair": frozenset({"bastion", "control_plane"}),
        **dict.fromkeys(
            (
                "cloud_controllers",
                "overlay",
                "control_plane_instance_type",
                "control_plane_instance_types",
                "control_plane_workloads",
                "etcd_volume_gib",
                "image",
            ),
            frozenset({"control_plane"}),
        ),
        "integrations": frozenset(),
    }

    key_pair: aws_fields.KeyPair | None = None
    """The EC2 key pair whose owner may log in to the machines; without one nobody may. Another one, or none, is for
    machines that are made from then on."""
    region_name: aws_fields.Region | None = None
    """The region that the cluster is in; ``us-east-1`` where none is given."""
    control_plane_instance_type: aws_fields.InstanceType | None = None
    """The instance type of the control plane: a list of one."""
    control_plane_instance_types: aws_fields.InstanceTypes | None = None
    """Instance types of the control plane, tried in this order, each in every zone, until EC2 has one."""
    control_plane_size: Literal[1, 3, 5] | None = None
    """How many members the control plane has, each in another zone as far as there are so many; it only grows."""
    control_plane_workloads: bool = False
    """Whether members of the control plane take pods like any other node."""
    vpc_cidr: VpcCidr | None = None
    vpc_id: aws_fields.VpcId | None = None
    """An existing VPC that the cluster is made in."""
    subnet_id: aws_fields.SubnetId | None = None
    """An existing subnet that everything stands in."""
    subnets: Subnets = Field(default_factory=list)
    """Existing subnets of ``vpc_id``, by zone."""
    zones: Zones = Field(default_factory=list)
    """The zones that the cluster's own VPC has subnets in."""
    nat_gateways: NatGateways | None = None
    """One NAT gateway for all zones, or one in each: ``per_zone``, or ``zone`` as on EKS. Where zones are named, one in
    each."""
    bastion: Bastion | None = None
    """A machine that is the single way in for SSH, which otherwise reaches the control plane's machines alone."""
    autoscaler_node_groups: NodeGroups = Field(default_factory=list)
    """The groups of nodes, of which each of workers becomes a pool; that of the role ``control`` says what the control
    plane stands on."""
    integrations: Integrations = Field(default_factory=list)
    ssh_cidrs: fields.Cidrs = Field(default_factory=list)
    """The ranges of addresses that may reach port 22."""
    api_cidrs: fields.Cidrs = Field(default_factory=lambda: [EVERYWHERE], min_length=1)
    """The ranges of addresses that may reach the API endpoint."""
    public_control_plane: bool = False
    """Whether the machines of the control plane have public addresses."""
    etcd_volume_gib: Annotated[int, Field(ge=LEAST_ETCD_GIB, le=MOST_ETCD_GIB)] = ETCD_VOLUME_GIB
    """The size in GiB of the volume of etcd, which outlives the control plane's machine."""
    etcd_snapshots: Annotated[int, Field(ge=0, le=MOST_SNAPSHOTS)] = ETCD_SNAPSHOTS
    """How many daily snapshots of that volume there are."""
    etcd_backup: EtcdBackup | None = None
    """Snapshots of etcd in S3, by which the cluster can be restored."""
    cloud_controllers: bool = True
    """Whether the cluster has AWS's node controller, EBS driver and default StorageClass."""
    image: aws_fields.ImageId | None = None
    """The image that the control plane starts from; the current Ubuntu 24.04 where none is given."""
    repave_approval: Literal["automatic", "required"] = "automatic"
    """Whether somebody has to approve of changes that replace nodes."""
    overlay: OverlayNetwork | None = None
    """An overlay, by which nodes of other networks can be in the cluster; null for none."""

    @model_validator(mode="after")
    def _agree(self) -> AwsSettings:
        single, several = self.control_plane_instance_type, self.control_plane_instance_types
        faults: list[Fault] = []
        if single and several and several[0] != single:
            faults.append((("control_plane_instance_types",), "must begin with control_plane_instance_type"))
        if self.etcd_backup is not None and not self.cloud_controllers:
            text = "needs cloud_controllers: without them nodes have the role of the control plane"
            faults.append((("etcd_backup",), text))
        faults += self._overlay_faults()
        if self.bastion is not None and self.bastion.enabled and self.key_pair is None:
            faults.append((("key_pair",), "is needed by the bastion: without a key pair nobody could log in to it"))
        placement = {name: getattr(self, name) for name in _PLACEMENT}
        faults += placement_faults({**placement, "region_name": self.region_name or DEFAULT_REGION})
        control = self._control_group()
        if control is not None and self.control_plane_size not in (None, control.max_size):
            faults.append((("control_plane_size",), f"must be {control.max_size}, as the control group says"))
        zones = [*self.zones, *(entry.zone for entry in self.subnets)]
        outside = zones_outside(self.autoscaler_node_groups, self.region_name or DEFAULT_REGION, zones)
        faults += [(("autoscaler_node_groups", *path), text) for path, text in outside]
        check(faults)
        return self

    def _overlay_faults(self) -> Iterator[Fault]:
        if self.overlay is None:
            return
        if self.cloud_controllers:
            text = "must be false beside overlay: AWS's controller takes no node whose address is of an overlay"
            yield ("cloud_controllers",), text
        if not (self.vpc_id or self.subnet_id):
            fault = overlap_fault(self.overlay.range, self.vpc_cidr or DEFAULT_CIDR)
            if fault:
                yield ("overlay", "range"), fault

    @classmethod
    def written(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """See ``ClusterSettings.written``. What the control group says is said there alone, and the first of the types
        by their list."""
        return control_group.said_once(super().written(settings))

    @classmethod
    def patched(cls, before: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
        """See ``ClusterSettings.patched``. The control group and the settings beside it follow each other."""
        return control_group.brought_to_agree(super().patched(before, patch), patch)

    def name_fault(self, name: str) -> str | None:
        """Slurm takes the cluster's name for its own, which has narrower rules."""
        if "slurm" in self.integrations and not _SLURM_NAME.fullmatch(name):
            return "with the slurm integration: lower-case letters, digits, dashes; a letter first, no trailing dash"
        return None

    def change_faults(self, before: Mapping[str, Any]) -> Sequence[FieldProblem]:
        """Changes that a ready cluster cannot make: another role of a group, or a control plane by another group."""
        fault = size_fault(int(before.get("control_plane_size") or 1), self._size())
        sizes = [FieldProblem(pointer("control_plane_size"), fault)] if fault else []
        placement = placement_changes(before, self.zones, self.subnets)
        return [*sizes, *placement, *self._group_changes(before.get("autoscaler_node_groups") or ())]

    def _control_group(self) -> NodeGroup | None:
        return next((group for group in self.autoscaler_node_groups if group.role == "control"), None)

    def _size(self) -> int:
        control = self._control_group()
        return control.max_size if control is not None else self.control_plane_size or 1

    def _group_changes(self, groups_before: Sequence[Mapping[str, Any]]) -> Iterator[FieldProblem]:
        roles = {group["name"]: group.get("role") for group in groups_before}
        fixed = next((group for group in groups_before if group.get("role") == "control"), None)
        control = next((group for group in self.autoscaler_node_groups if group.role == "control"), None)
        for index, group in enumerate(self.autoscaler_node_groups):
            if roles.get(group.name, group.role) != group.role:
                text = "cannot change; give the group another name"
                yield FieldProblem(pointer("autoscaler_node_groups", index, "role"), text)
            elif group is control and fixed is None:
                text = "cannot be changed after creation: it says what the control plane stands on"
                yield FieldProblem(pointer("autoscaler_node_groups", index), text)
        if fixed is not None and control is None:
            text = f"must keep the group {fixed['name']}, which is the control plane's"
            yield FieldProblem(pointer("autoscaler_node_groups"), text)

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
        document["control_plane_size"] = self._size()
        if not (self.vpc_id or self.subnet_id):
            document["vpc_cidr"] = self.vpc_cidr or DEFAULT_CIDR
            document["nat_gateways"] = self.nat_gateways or (PER_ZONE if self.zones else FOR_ALL)
        return document


class AwsSettingsCreate(AwsSettings):
    """Settings of a cluster on AWS EC2 as a request for a new one has to give them."""

    key_pair: aws_fields.KeyPair
    """The EC2 key pair whose owner may log in to the machines. Another one, or none, is for machines that are made from
    then on."""
