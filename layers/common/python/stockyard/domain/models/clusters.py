"""What a caller sends to create a cluster on AWS. Field by field the table of the reference, as decided."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Input, refuse

MAX_GROUPS = 20
MAX_NODES = 100
DEFAULT_REGION = "us-east-1"
DEFAULT_CONTROL_PLANE = "t3.xlarge"
EVERYWHERE = "0.0.0.0/0"
_SLURM_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")

Faults = list[tuple[tuple[str | int, ...], str]]


class Taint(Input):
    """A Kubernetes node taint."""

    key: fields.LabelKey
    value: fields.LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


def _taints(taints: list[Taint]) -> list[Taint]:
    seen = [(taint.key, taint.effect) for taint in taints]
    twice = [((index,), "same key and effect as another") for index, one in enumerate(seen) if one in seen[:index]]
    if twice:
        raise refuse(*twice)
    return taints


class NodeGroup(Input):
    """A group of equal nodes. The ``control`` group gives size and type of the control plane."""

    name: Annotated[str, StringConstraints(max_length=63, pattern=patterns.LABEL)]
    role: Literal["control", "worker"]
    min_size: Annotated[int, Field(ge=0, le=MAX_NODES)]
    max_size: Annotated[int, Field(ge=0, le=MAX_NODES)]
    instance_types: fields.InstanceTypes
    labels: fields.Labels = Field(default_factory=dict)
    taints: Annotated[list[Taint], Field(max_length=50), AfterValidator(_taints)] = Field(default_factory=list)
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


def group_faults(groups: list[NodeGroup]) -> Faults:
    """Faults of groups beside each other, at their index: names twice, more than one control group."""
    names = [group.name for group in groups]
    faults: Faults = [
        ((index, "name"), "another group has this name") for index, name in enumerate(names) if name in names[:index]
    ]
    control = [index for index, group in enumerate(groups) if group.role == "control"]
    faults.extend(((index, "role"), "only one group may have the role control") for index in control[1:])
    return faults


def _groups(groups: list[NodeGroup]) -> list[NodeGroup]:
    faults = group_faults(groups)
    if faults:
        raise refuse(*faults)
    return groups


def _integrations(names: list[str]) -> list[str]:
    twice = [((index,), "is listed twice") for index, name in enumerate(names) if name in names[:index]]
    if twice:
        raise refuse(*twice)
    return names


NodeGroups = Annotated[list[NodeGroup], Field(max_length=MAX_GROUPS), AfterValidator(_groups)]
Integrations = Annotated[
    list[Literal["jupyterhub", "slurm"]],
    AfterValidator(_integrations),
    Field(json_schema_extra={"uniqueItems": True}),
]


class AwsSettings(Input):
    """Settings of a cluster on AWS EC2. ``api_cidrs`` may reach the API endpoint, ``ssh_cidrs`` port 22."""

    key_pair: fields.KeyPair
    region_name: fields.Region | None = None
    control_plane_instance_type: fields.InstanceType | None = None
    vpc_id: fields.VpcId | None = None
    subnet_id: fields.SubnetId | None = None
    autoscaler_node_groups: NodeGroups = Field(default_factory=list)
    integrations: Integrations = Field(default_factory=list)
    ssh_cidrs: fields.Cidrs = Field(default_factory=list)
    api_cidrs: fields.Cidrs = Field(default_factory=lambda: [EVERYWHERE], min_length=1)
    public_control_plane: bool = False

    def normal(self) -> dict[str, Any]:
        """The settings as the record keeps them: every field there, defaults filled in.

        The control group's first instance type wins over ``control_plane_instance_type``.
        """
        document = self.model_dump(mode="json")
        control = next((group for group in self.autoscaler_node_groups if group.role == "control"), None)
        document["region_name"] = self.region_name or DEFAULT_REGION
        document["control_plane_instance_type"] = (
            control.instance_types[0] if control else self.control_plane_instance_type or DEFAULT_CONTROL_PLANE
        )
        return document


class ClusterCreate(Input):
    """A cluster to create. ``secret`` is the Keycloak client's secret; made when it is not given."""

    name: fields.Name
    description: fields.Description
    cloud_account_id: Annotated[int, Field(ge=1, le=2**53 - 1)]
    cluster_type: Literal["k8s"]
    secret: fields.ClientSecret | None = None
    settings: AwsSettings
    tags: fields.Tags = Field(default_factory=dict)

    @model_validator(mode="after")
    def _slurm_name(self) -> ClusterCreate:
        if "slurm" in self.settings.integrations and not _SLURM_NAME.fullmatch(self.name):
            fault = "with the slurm integration: lower-case letters, digits, dashes; a letter first, no trailing dash"
            raise refuse((("name",), fault))
        return self
