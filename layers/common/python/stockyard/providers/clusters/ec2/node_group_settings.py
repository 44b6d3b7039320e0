"""The node groups of a cluster on AWS EC2, as its settings have them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Fault, Input, check, refuse, repeated
from stockyard.domain.models.clusters.group_fields import GroupTaints
from stockyard.domain.models.pools.bid_fields import MaxPrice, UpdateStrategy, Zones
from stockyard.domain.pools.records import CONTROL_PLANE
from stockyard.providers.clouds.aws import fields as aws_fields
from stockyard.providers.clouds.aws.catalog import images
from stockyard.providers.clouds.aws.catalog.images import GPU_DISK_GIB, IMAGE_GIB
from stockyard.providers.clouds.aws.catalog.reserved import DISK_GIB

MAX_GROUPS = 200
MAX_NODES = 10_000
"""What a document may say at all; a tenant's quotas ``node_groups`` and ``nodes_per_group`` allow less."""
MOST_DISK_GIB = 2000
WORKER_FIELDS = ("max_price", "update_strategy")
"""What only groups of workers say."""


class NodeGroup(Input):
    """A group of equal nodes. The ``control`` group gives size and type of the control plane."""

    name: Annotated[str, StringConstraints(max_length=63, pattern=patterns.LABEL)]
    """The name of the group, once in the cluster; its pool is called so."""
    role: Literal["control", "worker"]
    """What its nodes are: the control plane, or workers."""
    min_size: Annotated[int, Field(ge=0, le=MAX_NODES)]
    """How many nodes it has at least."""
    max_size: Annotated[int, Field(ge=0, le=MAX_NODES)]
    """How many nodes it has at most."""
    instance_types: aws_fields.InstanceTypes
    """The instance types that its nodes may have; those of a control plane are tried in this order."""
    labels: fields.Labels = Field(default_factory=dict)
    """Labels of the nodes."""
    taints: GroupTaints = Field(default_factory=list)
    allocation_strategy: Literal["lowest-price", "diversified", "capacity-optimized", "price-capacity-optimized"] = (
        "lowest-price"
    )
    """How EC2 chooses among the instance types."""
    capacity_type: Literal["on-demand", "spot"] = "on-demand"
    """Whether its nodes are on demand or spot."""
    zones: Zones = Field(default_factory=list)
    """The zones over which its nodes are spread evenly. Without any, workers stand where they are cheapest, and members
    of the control plane in all zones of the cluster."""
    max_price: MaxPrice | None = None
    """The most that a node may cost as spot."""
    root_disk_gib: Annotated[int, Field(ge=1, le=MOST_DISK_GIB)] = DISK_GIB
    """The size of the one disk that a node has, in GiB. Without a size that is asked for, a node with GPUs has 100."""
    update_strategy: UpdateStrategy = Field(default_factory=UpdateStrategy)
    """How nodes are replaced that are not as they would be made now."""

    @model_validator(mode="after")
    def _sizes(self) -> NodeGroup:
        if self.min_size > self.max_size:
            raise refuse((("min_size",), "must not be greater than max_size"))
        if self.role == "control":
            fault = _control_fault(self.min_size, self.max_size)
            if fault:
                raise refuse((("max_size",), fault))
        return self

    @model_validator(mode="after")
    def _of_workers(self) -> NodeGroup:
        faults: list[Fault] = []
        if self.role == "control":
            faults += [
                ((name,), "is for groups of workers only")
                for name in WORKER_FIELDS
                if getattr(self, name) != _usual(name)
            ]
        elif self.max_price is not None and self.capacity_type != "spot":
            faults.append((("max_price",), "is a bid for spot: this group is on demand"))
        if self.root_disk_gib < IMAGE_GIB:
            faults.append((("root_disk_gib",), f"must be at least {IMAGE_GIB}: the image of the nodes needs as much"))
        elif self.root_disk_gib != DISK_GIB and self.root_disk_gib < least_disk_gib(self.instance_types):
            text = f"must be at least {GPU_DISK_GIB} for types with GPUs: the image with their driver needs as much"
            faults.append((("root_disk_gib",), text))
        check(faults)
        return self


def _usual(name: str) -> Any:
    return NodeGroup.model_fields[name].get_default(call_default_factory=True)


def _control_fault(smallest: int, largest: int) -> str | None:
    if smallest != largest:
        return "a control plane has a fixed size: min_size and max_size must be equal"
    return None if largest in (1, 3, 5) else "the size of a control plane must be 1, 3 or 5"


def _groups(groups: list[NodeGroup]) -> list[NodeGroup]:
    """Names must be unique, only one group may be the control group, and the pool of its members has a name."""
    control = [index for index, group in enumerate(groups) if group.role == "control"]
    controls: list[Fault] = [((index, "role"), "only one group may have the role control") for index in control[1:]]
    text = "is the name of the pool of the control plane's members"
    reserved = [
        ((index, "name"), text)
        for index, group in enumerate(groups)
        if (group.name, group.role) == (CONTROL_PLANE, "worker")
    ]
    check([*repeated([group.name for group in groups], "another group has this name", "name"), *controls, *reserved])
    return groups


NodeGroups = Annotated[list[NodeGroup], Field(max_length=MAX_GROUPS), AfterValidator(_groups)]


def zones_outside(groups: list[NodeGroup], region: str, cluster_zones: Container[str]) -> list[Fault]:
    """The zones of groups that are not of the region, and those of the control group that are not the cluster's."""
    outside_network: list[Fault] = [
        ((number, "zones", position), "is none of the cluster's zones, which the settings have to name")
        for number, group in enumerate(groups)
        for position, zone in enumerate(group.zones)
        if group.role == "control" and zone.startswith(region) and zone not in cluster_zones
    ]
    return outside_network + [
        ((number, "zones", position), f"is no zone of {region}")
        for number, group in enumerate(groups)
        for position, zone in enumerate(group.zones)
        if not zone.startswith(region)
    ]


def least_disk_gib(instance_types: Iterable[str]) -> int:
    """Smallest disk of machines of a group with these types."""
    return GPU_DISK_GIB if any(map(images.has_gpu_image, instance_types)) else DISK_GIB


def written(group: Mapping[str, Any]) -> dict[str, Any]:
    """The group of a record with what its release did not have yet."""
    usual: dict[str, Any] = {
        "zones": [],
        "max_price": None,
        "root_disk_gib": DISK_GIB,
        "update_strategy": {"type": "add_first"},
    }
    return {**usual, **group}
