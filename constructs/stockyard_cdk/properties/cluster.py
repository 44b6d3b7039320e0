"""Typed properties of a Cluster, written of the contract by ``local.cloudformation.properties``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict


class ClusterProperties(TypedDict, total=False):
    """Properties of a Cluster."""

    name: str
    """The name of the cluster, unique in the tenant. It cannot be changed."""
    description: Required[str]
    """Free text for people, of one character at least."""
    cloud_account_id: Required[int]
    """The number of the cloud account that the cluster is made in."""
    driver: str | None
    """Who makes it, where the account's cloud has more than one driver; the cloud's first when none is given."""
    kubernetes_version: str | None
    """A minor; without one the stage's setting is taken, or the driver's where the cloud runs the control planes. Which
    minors such a cloud has the driver says."""
    keep_failed: int
    """Minutes for which a machine is kept that did not come up, at most a day. It is billed meanwhile."""
    expires_at: str | None
    """When its deletion begins by itself; null for never."""
    kubeconfig_secret: KubeconfigSecretChoice | None
    """A Secret with its kubeconfig that an agent keeps fresh; null for none."""
    settings: Required[AwsSettingsCreate | CudoSettings | EksSettings]
    """What the cluster is made of; which fields there are depends on the account's cloud and on `driver`."""
    tags: Mapping[str, str]
    """Tags by key, at most 30. What is made in the cloud carries them too."""
    limits: Mapping[str, str | int | float]
    """What the cluster may have with its nodes: `usd_month`, the most that it is to cost in a calendar month of UTC."""
    profiles: Sequence[ProfileChoice]
    """The profiles whose packs the cluster is to have."""


class KubeconfigSecretChoice(TypedDict, total=False):
    """The Secret that is wanted."""

    cluster: str | None
    """The cluster that it is to stand in, by its name; without one the cluster itself."""
    namespace: str | None
    """The namespace there; without one that of the cluster's manifest, else `default`."""
    role: Literal["viewer", "operator", "admin"]
    """What its token may do. An administrator alone may ask for `admin`."""


class AwsSettingsCreate(TypedDict, total=False):
    """Settings of a cluster on AWS EC2 as a request for a new one has to give them."""

    mirror: bool
    """Whether pools and their claims are shown in the cluster, as read-only NodePools and NodeClaims."""
    key_pair: Required[str]
    """The EC2 key pair whose owner may log in to the machines. Another one, or none, is for machines that are made from
    then on."""
    region_name: str | None
    """The region that the cluster is in; `us-east-1` where none is given."""
    control_plane_instance_type: str | None
    """The instance type of the control plane: a list of one."""
    control_plane_instance_types: Sequence[str] | None
    """Instance types of the control plane, tried in this order, each in every zone, until EC2 has one."""
    control_plane_size: Literal[1, 3, 5] | None
    """How many members the control plane has, each in another zone as far as there are so many; it only grows."""
    control_plane_workloads: bool
    """Whether members of the control plane take pods like any other node."""
    vpc_cidr: str | None
    """The range of the cluster's own VPC, between /16 and /24."""
    vpc_id: str | None
    """An existing VPC that the cluster is made in."""
    subnet_id: str | None
    """An existing subnet that everything stands in."""
    subnets: Sequence[ZoneSubnets]
    """Existing subnets of `vpc_id`, by zone."""
    zones: Sequence[str]
    """The zones that the cluster's own VPC has subnets in."""
    nat_gateways: Literal["one", "per_zone", "zone"] | None
    """One NAT gateway for all zones, or one in each: `per_zone`, or `zone` as on EKS. Where zones are named, one in
    each."""
    bastion: Bastion | None
    """A machine that is the single way in for SSH, which otherwise reaches the control plane's machines alone."""
    autoscaler_node_groups: Sequence[NodeGroup]
    """The groups of nodes, of which each of workers becomes a pool; that of the role `control` says what the control
    plane stands on."""
    integrations: Sequence[Literal["jupyterhub", "slurm"]]
    """What the cluster is prepared for besides: JupyterHub, Slurm."""
    ssh_cidrs: Sequence[str]
    """The ranges of addresses that may reach port 22."""
    api_cidrs: Sequence[str]
    """The ranges of addresses that may reach the API endpoint."""
    public_control_plane: bool
    """Whether the machines of the control plane have public addresses."""
    etcd_volume_gib: int
    """The size in GiB of the volume of etcd, which outlives the control plane's machine."""
    etcd_snapshots: int
    """How many daily snapshots of that volume there are."""
    etcd_backup: EtcdBackup | None
    """Snapshots of etcd in S3, by which the cluster can be restored."""
    cloud_controllers: bool
    """Whether the cluster has AWS's node controller, EBS driver and default StorageClass."""
    image: str | None
    """The image that the control plane starts from; the current Ubuntu 24.04 where none is given."""
    repave_approval: Literal["automatic", "required"]
    """Whether somebody has to approve of changes that replace nodes."""
    overlay: OverlayNetwork | None
    """An overlay, by which nodes of other networks can be in the cluster; null for none."""


class CudoSettings(TypedDict, total=False):
    """Settings of a cluster on Cudo."""

    mirror: bool
    """Whether pools and their claims are shown in the cluster, as read-only NodePools and NodeClaims."""
    autoscaler_node_groups: Sequence[CudoNodeGroup]
    """The groups of machines; that of the role `control` is the control plane's."""
    control_plane_size: Literal["sm", "md", "lg"] | None
    """The size of the control plane: 4 vCPUs, 8 GiB of memory and 50 GiB of disk for `sm`, 8, 16 and 100 for `md`, 16,
    32 and 200 for `lg`."""
    instance_type: Literal["vantage-k8s-control-sm", "vantage-k8s-control-md", "vantage-k8s-control-lg"] | None
    """The same size by the name of its profile."""
    ssh_public_key: str | None
    """A public key that may log in to the machines."""
    dev_mode: bool
    """Whether machines start from images of the development channel."""
    no_vault: bool
    """True: the data disk of the control plane is not encrypted."""
    api_cidrs: Sequence[str]
    """The ranges of addresses that may reach the API endpoint."""
    ssh_cidrs: Sequence[str]
    """The ranges of addresses that may reach port 22."""
    overlay: OverlayNetwork | None
    """An overlay, by which nodes of other networks can be in the cluster; null for none."""


class EksSettings(TypedDict, total=False):
    """Settings of a cluster on AWS EKS."""

    mirror: bool
    """Whether pools and their claims are shown in the cluster, as read-only NodePools and NodeClaims."""
    region_name: str
    """The region that the cluster is in."""
    vpc_cidr: str
    """The range of the cluster's own VPC."""
    subnet_cidrs: Sequence[str] | None
    """The public subnets, one for each zone; those of the machines are computed beside them. Without any: as many as
    there are `zones`, or three."""
    zones: Sequence[str]
    """The zones that the VPC has subnets in."""
    nat_gateways: Literal["one", "zone", "per_zone"]
    """One NAT gateway for all zones, or one in each (`zone`, or `per_zone` as on EC2)."""
    public_access_cidrs: Sequence[str]
    """The ranges of addresses that may reach the API from outside; without any, everybody may."""
    endpoint: Literal["public", "private"]
    """Who reaches the API: everybody or `public_access_cidrs`, or private networks alone."""
    private_access_cidrs: Sequence[str]
    """The private ranges outside of the VPC that may reach the API inside it, as over peering: people's, and the
    stage's network where the endpoint is private."""
    support: Literal["standard", "extended"]
    """How long AWS supports the cluster's version."""
    addon_versions: Mapping[str, Any]
    """Versions of add-ons that shall not be EKS's default, by name."""
    shared_storage: bool
    """Whether there is a file system and a StorageClass for volumes that many pods write."""
    block_storage: bool
    """Whether there is a driver of EBS with a role of its own, and a default StorageClass of gp3 volumes. It can be
    switched on later, and not off."""
    control_plane_logs: Sequence[Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]]
    """The logs of the control plane that EKS writes to CloudWatch in the account, which bills them."""
    deletion_protection: bool
    """Whether EKS refuses to delete the cluster. A deletion by Stockyard takes the protection away first."""
    namespace: str
    """The namespace of the manifest that the cluster came from."""
    node_groups: Sequence[EksNodeGroup]
    """The groups of nodes; one called `system` is there in any case."""


class ProfileChoice(TypedDict, total=False):
    """A profile of a cluster: which, in which version, and what is different there."""

    name: Required[str]
    """The name or id of the profile."""
    version: str | None
    """The version; the newest where none is given."""
    variables: Mapping[str, str | int | float | bool]
    """Values of the variables of the profile, by name."""
    pack_values: Mapping[str, Mapping[str, Any] | str]
    """Values that are laid over those of a pack, by the name of the pack."""


class ZoneSubnets(TypedDict, total=False):
    """Subnets of an existing VPC in one zone."""

    zone: Required[str]
    """The zone of the subnets."""
    private: Required[str]
    """The subnet for machines."""
    public: str | None
    """The subnet for what the internet reaches."""


class Bastion(TypedDict, total=False):
    """The machine that is the single way in for SSH, from ``ssh_cidrs``."""

    enabled: bool
    """Whether there is one."""
    instance_type: str
    """The instance type of the machine."""
    image: str | None
    """The image that it starts from; the current Ubuntu 24.04 where none is given."""
    protocol: Literal["ssh"]
    """How people log in."""


class NodeGroup(TypedDict, total=False):
    """A group of equal nodes."""

    name: Required[str]
    """The name of the group, once in the cluster; its pool is called so."""
    role: Required[Literal["control", "worker"]]
    """What its nodes are: the control plane, or workers."""
    min_size: Required[int]
    """How many nodes it has at least."""
    max_size: Required[int]
    """How many nodes it has at most."""
    instance_types: Required[Sequence[str]]
    """The instance types that its nodes may have; those of a control plane are tried in this order."""
    labels: Mapping[str, str]
    """Labels of the nodes."""
    taints: Sequence[Taint]
    """The taints of a group's nodes: each key and effect once."""
    allocation_strategy: Literal["lowest-price", "diversified", "capacity-optimized", "price-capacity-optimized"]
    """How EC2 chooses among the instance types."""
    capacity_type: Literal["on-demand", "spot"]
    """Whether its nodes are on demand or spot."""
    zones: Sequence[str]
    """The zones over which its nodes are spread evenly. Without any, workers stand where they are cheapest, and members
    of the control plane in all zones of the cluster."""
    max_price: MaxPrice | None
    """The most that a node may cost as spot."""
    root_disk_gib: int
    """The size of the one disk that a node has, in GiB. Without a size that is asked for, a node with GPUs has 100."""
    update_strategy: UpdateStrategy
    """How nodes are replaced that are not as they would be made now."""


class EtcdBackup(TypedDict, total=False):
    """Snapshots of etcd in S3."""

    interval_hours: Literal[1, 2, 3, 4, 6, 8, 12, 24]
    """How many hours lie between two snapshots."""
    keep: int
    """How many snapshots stay, the newest."""
    bucket: str | None
    """A bucket of the account's own in the cluster's region, in place of one that is made for the cluster."""
    on_deletion: Literal["remove", "keep"]
    """Whether the snapshots go with the cluster."""


class OverlayNetwork(TypedDict, total=False):
    """A network of WireGuard tunnels between all machines of a cluster, so that nodes of other networks can be in
    it."""

    range: str
    """The addresses of its machines. No network that a machine is in may have them."""
    node_to_node: Literal[True]
    """Nodes reach each other, not the control plane alone."""


class CudoNodeGroup(TypedDict, total=False):
    """A group of equal machines."""

    id: Required[str]
    """The name of the group, once in the cluster."""
    role: Required[Literal["control", "worker"]]
    """What its machines are: the control plane, or workers."""
    min_size: Required[int]
    """How many machines it has at least."""
    max_size: Required[int]
    """How many machines it has at most."""
    vcpus: Required[int]
    """Virtual CPUs of a machine."""
    memory_gib: Required[int]
    """Memory of a machine in GiB."""
    boot_disk_size_gib: Required[int]
    """The boot disk of a machine in GiB."""
    data_center_id: Required[str]
    """The data center where its machines stand."""
    machine_type: Required[str]
    """The machine type that Cudo offers there."""
    gpus: int
    """GPUs of a machine."""
    gpu_model: str | None
    """The model of the GPUs."""
    labels: Mapping[str, str]
    """Labels of the nodes."""


class EksNodeGroup(TypedDict, total=False):
    """A group of equal nodes, between ``min_size`` and ``max_size`` as pods need them."""

    name: Required[str]
    """The name of the group, once in the cluster."""
    role: Required[Literal["system", "gpu"]]
    """What its nodes are for: controllers and ordinary pods, or GPUs."""
    instance_type: Required[str]
    """The instance type of its nodes."""
    disk_gib: int | None
    """The size of a node's root volume in GiB; null for what EKS has."""
    count: int
    """How many nodes there are at first."""
    min_size: int
    """How many nodes it has at least."""
    max_size: int
    """How many nodes it has at most."""
    zones: Sequence[str]
    """The zones where its nodes stand; without any, all of the cluster's."""
    fabric: Literal["none", "efa"]
    """The network between its nodes: the usual one, or EFA."""
    accelerator_type: str
    """The GPUs of a group with the role `gpu`."""
    capacity_reservation_id: str | None
    """The capacity block that its nodes come from."""
    labels: Mapping[str, str]
    """Labels of the nodes."""
    taints: Sequence[Taint]
    """The taints of a group's nodes: each key and effect once."""
    builtin: Literal[True] | None
    """Of the group that nobody has named, in the settings of a cluster as they are read."""


class Taint(TypedDict, total=False):
    """A Kubernetes node taint."""

    key: Required[str]
    """The key of the taint."""
    value: str
    """The value of the taint; empty for none."""
    effect: Required[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]]
    """What the taint does to pods that do not tolerate it."""


class MaxPrice(TypedDict, total=False):
    """The most that a node may cost as spot, in one of two forms."""

    percent: float | None
    """Percent of what the node type costs on demand in its region; it may be more than 100."""
    usd_hour: float | None
    """USD an hour."""


class UpdateStrategy(TypedDict, total=False):
    """Strategy to replace nodes that are not as they would be made now."""

    type: Literal["add_first", "remove_first", "custom"]
    """`add_first` makes the next node before one leaves, `remove_first` lets one leave before, `custom` has the two
    figures."""
    max_surge: int | str | None
    """How many nodes more than wanted there may be at a time, as a number or in percent; for `custom` only."""
    max_unavailable: int | str | None
    """How many nodes fewer than wanted there may be at a time, as a number or in percent; for `custom` only."""
