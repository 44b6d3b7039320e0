"""The create body of a cluster of Spectro Cloud's Palette on AWS, as a document: its fields, and what of them is not
supported.

Names, bounds and defaults are those of Palette's API. ``docs/spectro.md`` says what each field becomes.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    ModelWrapValidatorHandler,
    StringConstraints,
    field_validator,
    model_validator,
)

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Fault, Input, check, repeated
from stockyard.domain.models.clusters.clusters import beside
from stockyard.domain.models.clusters.profiles import MAX_PROFILES, Scalar, Values
from stockyard.domain.models.nodes.node_fields import Camel
from stockyard.providers.clouds.aws import fields as aws_fields

API_VERSION, SPECTRO_CLUSTER = "spectrocloud.com/v1", "SpectroAwsCluster"
BARE_TAG = "spectro__tag"
"""The value of a label that stands for a tag without a value."""
SCALE_OUT, SCALE_IN, OVERRIDE = "RollingUpdateScaleOut", "RollingUpdateScaleIn", "OverrideScaling"
MAX_POOLS = 200
MOST_NODES = 10_000
CONTROL_PLANE, WORKER = "control-plane", "worker"
Unsupported = dict[str, str]
_PERCENT = re.compile(r"[1-9][0-9]{0,3}%")
_PRICE = re.compile(r"[0-9]{1,4}(\.[0-9]{1,6})?")
_COUNT = re.compile(r"[0-9]{1,5}%?")


class Part(Camel):
    """A part of the document. What Palette knows and Stockyard does not do is refused by its name."""

    UNSUPPORTED: ClassVar[Unsupported] = {}
    """Fields of Palette's that are refused, each with the reason and what to do instead."""

    @model_validator(mode="wrap")
    @classmethod
    def _supported(cls, document: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(document, dict):
            return handler(document)
        # An empty value asks for nothing: bodies that other tools write are full of them.
        nonempty = {
            name: value for name, value in document.items() if name not in cls.UNSUPPORTED or value not in _NOTHING
        }
        return beside(
            cls, {name: text for name, text in cls.UNSUPPORTED.items() if name in nonempty}, nonempty, handler
        )


_NOTHING: tuple[Any, ...] = (None, "", [], {}, False)


class SpectroMetadata(Input):
    """The cluster's name, and its tags as labels."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=patterns.NAME)]
    labels: fields.Tags = Field(default_factory=dict)
    annotations: dict[str, Annotated[str, StringConstraints(max_length=1024)]] = Field(default_factory=dict)

    @field_validator("labels", mode="before")
    @classmethod
    def _bare(cls, labels: Any) -> Any:
        if not isinstance(labels, dict):
            return labels
        return {key: "" if value == BARE_TAG else value for key, value in labels.items()}


class PackValues(Part):
    """The values of one pack of a profile that differ from the profile's own. ``tag`` is that of the profile's pack;
    ``type`` says nothing here."""

    UNSUPPORTED: ClassVar[Unsupported] = {"manifests": "is not supported: put the manifests into the profile"}

    name: Annotated[str, StringConstraints(min_length=1, max_length=63)]
    tag: Annotated[str, StringConstraints(max_length=63)] = ""
    type: Annotated[str, StringConstraints(max_length=63)] = ""
    values: Values = Field(default_factory=dict)


class ProfileReference(Part):
    """A cluster profile. ``uid`` is its id or its name here, with ``@`` and a version after it for another one than the
    latest."""

    UNSUPPORTED: ClassVar[Unsupported] = {
        "replaceWithProfile": "is not supported: name the profile that the cluster is to have"
    }

    uid: Annotated[str, StringConstraints(min_length=1, max_length=160)]
    pack_values: Annotated[list[PackValues], Field(max_length=40)] = Field(default_factory=list)
    variables: Annotated[dict[str, Scalar], Field(max_length=64)] = Field(default_factory=dict)

    @field_validator("variables", mode="before")
    @classmethod
    def _listed(cls, variables: Any) -> Any:
        """Palette's API lists them, its Terraform provider has a map."""
        if isinstance(variables, list) and all(isinstance(variable, dict) for variable in variables):
            return {str(variable.get("name", "")): variable.get("value", "") for variable in variables}
        return variables

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        faults = repeated([pack.name for pack in self.pack_values], "is the name of another one", "name")
        check([(("packValues", *path), text) for path, text in faults])
        return self


class CloudConfig(Part):
    """Place of the cluster."""

    UNSUPPORTED: ClassVar[Unsupported] = {
        "hybridConfig": "is not supported: nodes of other places join by node providers",
        "overrideClusterApiConfig": "is not supported: Stockyard does not use Cluster API",
    }

    region: aws_fields.Region
    ssh_key_name: aws_fields.KeyPair
    vpc_id: aws_fields.VpcId | Literal[""] = ""
    control_plane_load_balancer: Literal["", "Internet-facing", "internal"] = ""
    bastion_disabled: bool = False

    @field_validator("control_plane_load_balancer")
    @classmethod
    def _reachable(cls, scheme: str) -> str:
        if scheme == "internal":
            raise ValueError(
                "internal is not supported: the load balancer is internal where a given VPC has no public"
                " subnet, and faces the internet elsewhere"
            )
        return scheme


def _max_price(text: Any) -> Any:
    if not isinstance(text, str) or not (_PERCENT.fullmatch(text) or (_PRICE.fullmatch(text) and float(text) > 0)):
        raise ValueError("must be USD an hour such as 0.035, or percent of the on-demand price such as 150%, as text")
    return text


class SpotMarketOptions(Part):
    """Price that a spot node may cost."""

    max_price: Annotated[str, AfterValidator(_max_price)]


class PoolSubnet(Part):
    """The subnets of a zone: one, or a public and a private one as a list with a comma."""

    az: Annotated[str, StringConstraints(min_length=1, max_length=32)]
    id: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class PoolCloudConfig(Part):
    """The machines of a pool."""

    UNSUPPORTED: ClassVar[Unsupported] = {
        "additionalSecurityGroups": "is not supported: nodes have the security groups of the cluster",
        "hostResourceGroupArn": "is not supported: there are no dedicated hosts",
        "licenseConfigurationArns": "is not supported: there are no dedicated hosts",
    }

    azs: Annotated[list[str], Field(max_length=6), AfterValidator(fields.distinct)] = Field(default_factory=list)
    subnets: Annotated[list[PoolSubnet], Field(max_length=6)] = Field(default_factory=list)
    instance_type: aws_fields.InstanceType
    capacity_type: Literal["on-demand", "spot"] = "on-demand"
    root_device_size: Annotated[int, Field(ge=1, le=2000)] | None = None
    spot_market_options: SpotMarketOptions | None = None

    @field_validator("capacity_type", mode="before")
    @classmethod
    def _no_hosts(cls, capacity_type: Any) -> Any:
        if capacity_type == "host-resource-group":
            raise ValueError("host-resource-group is not supported: there are no dedicated hosts")
        return capacity_type or "on-demand"

    @model_validator(mode="after")
    def _agree(self) -> Self:
        faults: list[Fault] = []
        if self.spot_market_options is not None and self.capacity_type != "spot":
            faults.append((("spotMarketOptions",), "is only for a pool whose capacityType is spot"))
        zones = [subnet.az for subnet in self.subnets]
        faults += [(("subnets", *path), text) for path, text in repeated(zones, "another entry has this zone", "az")]
        check(faults)
        return self


class SpectroTaint(Part):
    """A taint. When it was added is Palette's own note."""

    key: fields.LabelKey
    value: fields.LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    time_added: Any = None


class UpdateStrategy(Part):
    """In which order nodes are replaced."""

    type: Literal["RollingUpdateScaleOut", "RollingUpdateScaleIn", "OverrideScaling"] = "RollingUpdateScaleOut"
    max_surge: Annotated[str, StringConstraints(pattern=_COUNT)] | None = None
    max_unavailable: Annotated[str, StringConstraints(pattern=_COUNT)] | None = None

    @field_validator("max_surge", "max_unavailable", mode="before")
    @classmethod
    def _text(cls, count: Any) -> Any:
        return str(count) if isinstance(count, int) and not isinstance(count, bool) else count or None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        counts = {"maxSurge": self.max_surge, "maxUnavailable": self.max_unavailable}
        if self.type == OVERRIDE:
            missing = [name for name, count in counts.items() if count is None]
            check([((name,), f"is needed where the type is {OVERRIDE}") for name in missing])
            if set(counts.values()) <= {"0", "0%"}:
                check([(("maxUnavailable",), "must not be 0 together with maxSurge: then no node could be replaced")])
        return self


class PoolConfig(Part):
    """Purpose of a pool, and its number of nodes."""

    UNSUPPORTED: ClassVar[Unsupported] = {
        "additionalAnnotations": "is not supported: give the pool labels",
        "additionalTags": "is not supported: tags are the cluster's, and all of its machines have them",
        "machinePoolProperties": "is not supported: the instance type says the architecture",
        "overrideKubeadmConfiguration": "is not supported: kubeadm's configuration is Stockyard's",
        "healthCheck": "is not supported: nodes that are lost are replaced",
        "nodeRepaveInterval": "must be 0: give a pool of ours expire_after instead",
    }

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=patterns.LABEL)]
    size: Annotated[int, Field(ge=0, le=MOST_NODES)]
    labels: list[str] = Field(default_factory=list)
    min_size: Annotated[int, Field(ge=0, le=MOST_NODES)] | None = None
    max_size: Annotated[int, Field(ge=0, le=MOST_NODES)] | None = None
    is_control_plane: bool = False
    use_control_plane_as_worker: bool = False
    taints: Annotated[list[SpectroTaint], Field(max_length=50)] = Field(default_factory=list)
    additional_labels: fields.Labels = Field(default_factory=dict)
    update_strategy: UpdateStrategy = Field(default_factory=UpdateStrategy)
    skip_k8s_upgrade: Annotated[Literal["", "disabled", "enabled"], Field(alias="skipK8sUpgrade")] = ""

    @model_validator(mode="before")
    @classmethod
    def _no_interval(cls, document: Any) -> Any:
        if isinstance(document, dict) and document.get("nodeRepaveInterval") == 0:
            return {name: value for name, value in document.items() if name != "nodeRepaveInterval"}
        return document

    @model_validator(mode="after")
    def _agree(self) -> Self:
        faults: list[Fault] = []
        smallest, largest = self.least, self.most
        if not smallest <= self.size <= largest:
            faults.append((("size",), "must be between minSize and maxSize"))
        if self.is_control_plane and self.size not in (1, 3, 5):
            faults.append((("size",), "the size of a control plane must be 1, 3 or 5"))
        if self.is_control_plane and (smallest, largest) != (self.size, self.size):
            faults.append((("maxSize",), "a control plane has a fixed size: minSize and maxSize must be equal to size"))
        if self.is_control_plane and self.taints:
            faults.append((("taints",), "is not supported on a control plane: its own taint says what it takes"))
        if not self.is_control_plane and self.use_control_plane_as_worker:
            faults.append((("useControlPlaneAsWorker",), "is only for the control plane"))
        if self.skip_k8s_upgrade == "enabled":
            faults.append((("skipK8sUpgrade",), "enabled is not supported: nodes follow their control plane"))
        check(faults)
        return self

    @property
    def least(self) -> int:
        """The size that the pool never goes below."""
        return self.size if self.min_size is None else self.min_size

    @property
    def most(self) -> int:
        """The size that the pool never goes above."""
        return self.size if self.max_size is None else self.max_size


class MachinePool(Part):
    """A pool of equal machines."""

    cloud_config: PoolCloudConfig
    pool_config: PoolConfig


def _pools(pools: list[MachinePool]) -> list[MachinePool]:
    text = "only one pool may be the control plane"
    control = [index for index, pool in enumerate(pools) if pool.pool_config.is_control_plane]
    faults = repeated([pool.pool_config.name for pool in pools], "another pool has this name", "poolConfig", "name")
    faults += [((index, "poolConfig", "isControlPlane"), text) for index in control[1:]]
    check(faults)
    return pools


class ClusterConfig(Part):
    """Upkeep of the cluster. Pools are always updated side by side, each by its own strategy."""

    UNSUPPORTED: ClassVar[Unsupported] = {
        "machineManagementConfig": "is not supported: nodes are replaced, not patched",
        "resources": "is not supported: put namespaces and roles into a profile",
        "hostClusterConfig": "is not supported: Stockyard makes no virtual clusters",
        "location": "is not supported: the region says it",
        "timezone": "is not supported: machines run in UTC",
        "controlPlaneHealthCheckTimeout": "is not supported: the phases of an operation have limits of their own",
    }

    update_worker_pools_in_parallel: bool = False


class SpectroSpec(Part):
    """The cluster that is asked for. Without pools it has a control plane of one and one worker."""

    UNSUPPORTED: ClassVar[Unsupported] = {
        "clusterTemplate": "is not supported: name profiles",
        "policies": "is not supported: backups of etcd are etcd_backups of our own settings, and there are no scans",
    }

    cloud_account_uid: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    cloud_config: CloudConfig
    cluster_type: Literal["", "PureManage"] = ""
    profiles: Annotated[list[ProfileReference], Field(max_length=MAX_PROFILES)] = Field(default_factory=list)
    machinepoolconfig: Annotated[
        list[MachinePool], Field(alias="machinepoolconfig", max_length=MAX_POOLS), AfterValidator(_pools)
    ] = Field(default_factory=list)
    cluster_config: ClusterConfig = Field(default_factory=ClusterConfig)

    @field_validator("cluster_type", mode="before")
    @classmethod
    def _managed(cls, cluster_type: Any) -> Any:
        if cluster_type == "PureAttach":
            raise ValueError("PureAttach is not supported: Stockyard manages only clusters that it has made")
        return cluster_type


class SpectroDocument(Camel):
    """The document."""

    api_version: Literal["spectrocloud.com/v1"]
    kind: Literal["SpectroAwsCluster"]
    metadata: SpectroMetadata
    spec: SpectroSpec
