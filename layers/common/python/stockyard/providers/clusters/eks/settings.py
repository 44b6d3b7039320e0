"""The settings of a cluster on EKS, and the rules that they keep by themselves.

What the catalogue or the account has to say is in ``validation`` and ``inspection``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Fault, Input, check, repeated
from stockyard.domain.models.clusters.clusters import ClusterSettings
from stockyard.domain.models.clusters.group_fields import GroupTaints
from stockyard.domain.models.patterns import worded
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem
from stockyard.providers.clouds.aws import DEFAULT_REGION
from stockyard.providers.clouds.aws import fields as aws_fields
from stockyard.providers.clusters.eks import layout

SYSTEM = "system"
"""The role of groups for controllers, and the name of the group that a cluster has in any case."""
MAX_GROUPS, MAX_NODES = 8, 1000
FEWEST_ZONES, MOST_ZONES = 2, 6
DEFAULT_VPC = "10.0.0.0/16"
_PRIVATE = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))
RESERVATION = worded(r"^cr-[0-9a-f]+$", "the id of a capacity reservation: cr- and hexadecimal digits")
RESERVED_LABELS = ("kubernetes.io/", "k8s.io/", "eks.amazonaws.com/")
"""What the keys of a node group's labels must not contain: EKS refuses them, or the machine's kubelet does."""
_ADDON = worded(r"^[a-z0-9][a-z0-9-]{0,99}$", "the name of an add-on, such as vpc-cni")
_ADDON_VERSION = worded(r"^v[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]{0,40}$", "a version of an add-on: v1.21.1-eksbuild.1")
SET_BY_US = ("stockyard.dev", "karpenter.sh", "modelplane.ai")
"""Domains of labels that the product sets itself."""
NodeCount = Annotated[int, Field(ge=0, le=MAX_NODES)]
LogType = Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]
"""Logs of a control plane that EKS can write."""
AddonName = Annotated[str, StringConstraints(pattern=_ADDON)]
AddonVersion = Annotated[str, StringConstraints(pattern=_ADDON_VERSION)]


def _labels(labels: dict[str, str]) -> dict[str, str]:
    """EKS refuses labels of Kubernetes and its own, or with them a kubelet does not start; ours say whose the node
    is."""
    faults: list[Fault] = []
    for key in labels:
        domain = key.rpartition("/")[0]
        if any(domain == own or domain.endswith(f".{own}") for own in SET_BY_US):
            faults.append(((key,), "is set by Stockyard and cannot be given"))
        elif any(reserved in key for reserved in RESERVED_LABELS):
            text = f"must not be of {', '.join(RESERVED_LABELS)}: kubelets may not give themselves such labels"
            faults.append(((key,), text))
    check(faults)
    return labels


class EksNodeGroup(Input):
    """A group of equal nodes, between ``min_size`` and ``max_size`` as pods need them."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=patterns.LABEL)]
    """The name of the group, once in the cluster."""
    role: Literal["system", "gpu"]
    """What its nodes are for: controllers and ordinary pods, or GPUs."""
    instance_type: aws_fields.InstanceType
    """The instance type of its nodes."""
    disk_gib: Annotated[int, Field(ge=10, le=65_536)] | None = 100
    """The size of a node's root volume in GiB; null for what EKS has."""
    count: NodeCount = 1
    """How many nodes there are at first."""
    min_size: NodeCount = 0
    """How many nodes it has at least."""
    max_size: NodeCount = 8
    """How many nodes it has at most."""
    zones: Annotated[list[aws_fields.Zone], Field(max_length=8), AfterValidator(fields.distinct)] = Field(
        default_factory=list
    )
    """The zones where its nodes stand; without any, all of the cluster's."""
    fabric: Literal["none", "efa"] = "none"
    """The network between its nodes: the usual one, or EFA."""
    accelerator_type: Annotated[str, StringConstraints(max_length=63, pattern=patterns.LABEL_VALUE)] = ""
    """The GPUs of a group with the role ``gpu``."""
    capacity_reservation_id: (
        Annotated[str, StringConstraints(min_length=4, max_length=64, pattern=RESERVATION)] | None
    ) = None
    """The capacity block that its nodes come from."""
    labels: Annotated[fields.Labels, AfterValidator(_labels)] = Field(default_factory=dict)
    """Labels of the nodes."""
    taints: GroupTaints = Field(default_factory=list)
    builtin: Literal[True] | None = None
    """Of the group that nobody has named, in the settings of a cluster as they are read."""

    @model_validator(mode="after")
    def _agree(self) -> EksNodeGroup:
        faults: list[Fault] = []
        if not self.min_size <= self.count:
            faults.append((("min_size",), "must not be greater than count"))
        if not self.count <= self.max_size:
            faults.append((("max_size",), "must not be less than count"))
        if self.role == "gpu" and not self.accelerator_type:
            faults.append((("accelerator_type",), "is required when role is gpu"))
        if self.role == "gpu" and not self.zones:
            faults.append((("zones",), "is required when role is gpu"))
        if self.capacity_reservation_id and len(self.zones) != 1:
            faults.append((("zones",), "must be one zone, that of the capacity reservation"))
        if self.builtin and self.name != SYSTEM:
            faults.append((("builtin",), f"is said of the group {SYSTEM} alone"))
        check(faults)
        return self


def _groups(groups: list[EksNodeGroup]) -> list[EksNodeGroup]:
    check(repeated([group.name for group in groups], "another group has this name", "name"))
    return groups


def _vpc_cidr(text: str) -> str:
    """A range that a VPC may have, and that no others on the Internet have."""
    network = IPv4Network(text)
    if not layout.LARGEST <= network.prefixlen <= layout.SMALLEST:
        raise ValueError(f"must be between /{layout.LARGEST} and /{layout.SMALLEST}: a VPC takes no more and no less")
    if not any(network.subnet_of(private) for private in _PRIVATE):
        ranges = ", ".join(str(private) for private in _PRIVATE[:-1])
        raise ValueError(f"must be private: within {ranges} or {_PRIVATE[-1]}")
    return text


def _subnet_faults(vpc_cidr: str, subnet_cidrs: Sequence[str]) -> list[Fault]:
    """Subnets that AWS would not make in the VPC."""
    vpc, earlier = IPv4Network(vpc_cidr), list[IPv4Network]()
    faults: list[Fault] = []
    for index, subnet in enumerate(IPv4Network(text) for text in subnet_cidrs):
        other = next((other for other in earlier if other.overlaps(subnet)), None)
        if not layout.LARGEST <= subnet.prefixlen <= layout.SMALLEST:
            faults.append(((index,), f"must be between /{layout.LARGEST} and /{layout.SMALLEST}: AWS takes no others"))
        elif not subnet.subnet_of(vpc):
            faults.append(((index,), f"must lie in the VPC, which is {vpc}"))
        elif other is not None:
            faults.append(((index,), f"overlaps {other}"))
        earlier.append(subnet)
    return faults


def _zone(word: str) -> str:
    return "zone" if word == "per_zone" else word


class EksSettings(ClusterSettings):
    """Settings of a cluster on AWS EKS."""

    REFUSED: ClassVar[Mapping[str, str]] = {
        "overlay": "is not for clusters on EKS: AWS runs their control plane, and it can join no overlay"
    }

    CHANGEABLE: ClassVar[frozenset[str]] = frozenset(
        {
            "node_groups",
            "addon_versions",
            "public_access_cidrs",
            "endpoint",
            "private_access_cidrs",
            "support",
            "block_storage",
            "control_plane_logs",
            "deletion_protection",
        }
    )

    region_name: aws_fields.Region = DEFAULT_REGION
    """The region that the cluster is in."""
    vpc_cidr: Annotated[fields.Cidr, AfterValidator(_vpc_cidr)] = DEFAULT_VPC
    """The range of the cluster's own VPC."""
    subnet_cidrs: Annotated[list[fields.Cidr], Field(min_length=FEWEST_ZONES, max_length=MOST_ZONES)] | None = None
    """The public subnets, one for each zone; those of the machines are computed beside them. Without any: as many as
    there are ``zones``, or three."""
    zones: Annotated[list[aws_fields.Zone], Field(max_length=MOST_ZONES), AfterValidator(fields.distinct)] = Field(
        default_factory=list
    )
    """The zones that the VPC has subnets in."""
    nat_gateways: Annotated[Literal["one", "zone", "per_zone"], AfterValidator(_zone)] = "one"
    """One NAT gateway for all zones, or one in each (``zone``, or ``per_zone`` as on EC2)."""
    public_access_cidrs: fields.Cidrs = Field(default_factory=list)
    """The ranges of addresses that may reach the API from outside; without any, everybody may."""
    endpoint: Literal["public", "private"] = "public"
    """Who reaches the API: everybody or ``public_access_cidrs``, or private networks alone."""
    private_access_cidrs: fields.Cidrs = Field(default_factory=list)
    """The private ranges outside of the VPC that may reach the API inside it, as over peering: people's, and the
    stage's network where the endpoint is private."""
    support: Literal["standard", "extended"] = "standard"
    """How long AWS supports the cluster's version."""
    addon_versions: dict[AddonName, AddonVersion] = Field(default_factory=dict)
    """Versions of add-ons that shall not be EKS's default, by name."""
    shared_storage: bool = True
    """Whether there is a file system and a StorageClass for volumes that many pods write."""
    block_storage: bool = False
    """Whether there is a driver of EBS with a role of its own, and a default StorageClass of gp3 volumes. It can be
    switched on later, and not off."""
    control_plane_logs: Annotated[list[LogType], Field(max_length=5), AfterValidator(fields.distinct)] = Field(
        default_factory=list
    )
    """The logs of the control plane that EKS writes to CloudWatch in the account, which bills them."""
    deletion_protection: bool = False
    """Whether EKS refuses to delete the cluster. A deletion by Stockyard takes the protection away first."""
    namespace: Annotated[str, StringConstraints(max_length=63)] = ""
    """The namespace of the manifest that the cluster came from."""
    node_groups: Annotated[list[EksNodeGroup], Field(max_length=MAX_GROUPS), AfterValidator(_groups)] = Field(
        default_factory=list
    )
    """The groups of nodes; one called ``system`` is there in any case."""

    @model_validator(mode="after")
    def _agree(self) -> EksSettings:
        check([*self._network_faults(), *self._zone_faults(), *self._access_faults()])
        return self

    def _access_faults(self) -> list[Fault]:
        """Faults of access to the API: addresses outside are public, and those of rules private."""
        if self.endpoint == "private" and self.public_access_cidrs:
            return [(("public_access_cidrs",), "cannot be given where the endpoint is private")]
        faults: list[Fault] = []
        for name, is_public in (("public_access_cidrs", True), ("private_access_cidrs", False)):
            for index, text in enumerate(getattr(self, name)):
                within = any(IPv4Network(text).subnet_of(private) for private in _PRIVATE)
                if within and is_public:
                    faults.append(((name, index), "must be public: machines in the VPC reach the API inside it"))
                elif not within and not is_public:
                    faults.append(((name, index), "must be private: public addresses are public_access_cidrs"))
        return faults

    def _network_faults(self) -> list[Fault]:
        """Faults of subnets, and of a VPC that has no room for them."""
        if self.subnet_cidrs is not None:
            faults = _subnet_faults(self.vpc_cidr, self.subnet_cidrs)
            if faults:
                return [(("subnet_cidrs", *path), text) for path, text in faults]
        try:
            layout.private_cidrs(self.vpc_cidr, self.public_cidrs())
        except ValueError as error:
            path = "vpc_cidr" if self.subnet_cidrs is None else "subnet_cidrs"
            return [((path,), str(error) if self.subnet_cidrs is not None else "has no room for all subnets")]
        return []

    def _zone_faults(self) -> list[Fault]:
        """Faults of zones that are not the region's, and of groups outside the cluster's zones."""
        faults: list[Fault] = []
        subnets = len(self.subnet_cidrs) if self.subnet_cidrs is not None else None
        if self.zones and subnets not in (None, len(self.zones)):
            faults.append((("zones",), "must name as many zones as there are subnets"))
        elif len(self.zones) == 1:
            faults.append((("zones",), f"must name {FEWEST_ZONES} to {MOST_ZONES} zones"))
        faults += [(("zones", index), self._foreign) for index, zone in enumerate(self.zones) if not self._own(zone)]
        for number, group in enumerate(self.node_groups):
            for index, zone in enumerate(group.zones):
                if not self._own(zone):
                    faults.append((("node_groups", number, "zones", index), self._foreign))
                elif self.zones and zone not in self.zones:
                    text = f"must be one of the cluster's zones, {', '.join(self.zones)}"
                    faults.append((("node_groups", number, "zones", index), text))
        return faults

    @property
    def _foreign(self) -> str:
        return f"must be a zone of region {self.region_name}"

    def _own(self, zone: str) -> bool:
        return zone.startswith(self.region_name)

    def public_cidrs(self) -> list[str]:
        """The public subnets. ``ValueError`` where the VPC has no room for those that nobody has named."""
        if self.subnet_cidrs is not None:
            return list(self.subnet_cidrs)
        return layout.public_cidrs(self.vpc_cidr, len(self.zones) or layout.USUAL_SUBNETS)

    def change_faults(self, before: Mapping[str, Any]) -> Sequence[FieldProblem]:
        """See ``ClusterSettings.change_faults``. A group of another role is another group: its image differs."""
        roles = {group["name"]: group["role"] for group in before["node_groups"]}
        faults = [
            FieldProblem(pointer("node_groups", index, "role"), "cannot change; give the group another name")
            for index, group in enumerate(self.node_groups)
            if roles.get(group.name, group.role) != group.role
        ]
        if before.get("block_storage") and not self.block_storage:
            text = "cannot be switched off: volumes of pods need their driver"
            faults.append(FieldProblem(pointer("block_storage"), text))
        return faults

    @classmethod
    def written(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """See ``ClusterSettings.written``. The group that every cluster has is not among those that are asked for."""
        groups = [group for group in settings["node_groups"] if not group.get("builtin")]
        return super().written({**settings, "node_groups": groups})

    def normal(self) -> dict[str, Any]:
        """The settings as the record keeps them: with the group of the name ``system`` that every cluster has, behind
        those that were sent, so that pointers to these hold."""
        document = super().normal()
        document["subnet_cidrs"] = self.public_cidrs()
        for group in document["node_groups"]:
            # One that was read and sent with another size or type is asked for like any other.
            if group != builtin_group():
                del group["builtin"]
        if not any(group.name == SYSTEM for group in self.node_groups):
            document["node_groups"] = [*document["node_groups"], builtin_group()]
        return document


def builtin_group() -> dict[str, Any]:
    """The group of a cluster that names none called ``system``."""
    return {
        "name": SYSTEM,
        "role": SYSTEM,
        "instance_type": "m6i.xlarge",
        "disk_gib": None,
        "count": 1,
        "min_size": 1,
        "max_size": 2,
        "zones": [],
        "fabric": "none",
        "accelerator_type": "",
        "capacity_reservation_id": None,
        "labels": {},
        "taints": [],
        "builtin": True,
    }
