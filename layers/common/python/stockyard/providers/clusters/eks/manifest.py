"""EKSCluster of ``infrastructure.modelplane.ai/v1alpha1``: its model, and the way to a cluster's settings and back.

Bounds, defaults and the two messages about GPU pools are as Modelplane publishes them. What else we refuse is said of
the same fields in our own words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from stockyard.domain.clusters.change import SecretChoice, SecretRequest
from stockyard.domain.clusters.manifests import (
    ACCOUNT,
    DESCRIPTION,
    NAME,
    NO_SECRET,
    SECRET_CLUSTER,
    SECRET_ROLE,
    ClusterDocument,
)
from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Fault, check, read, repeated, without_nulls
from stockyard.domain.models.manifests.manifests import Manifest, Metadata
from stockyard.domain.models.nodes.node_fields import Camel
from stockyard.domain.models.patterns import worded
from stockyard.domain.nodes.manifests import FieldPath
from stockyard.domain.records import Cluster
from stockyard.domain.values.pointers import pointer
from stockyard.ports.clusters import ADMIN, OPERATOR, VIEWER
from stockyard.providers.clouds.aws import fields as aws_fields
from stockyard.providers.clusters.eks import KIND as CLUSTER_KIND
from stockyard.providers.clusters.eks.layout import USUAL_SUBNETS, public_cidrs
from stockyard.providers.clusters.eks.names import child_name
from stockyard.providers.clusters.eks.settings import (
    DEFAULT_VPC,
    FEWEST_ZONES,
    MAX_GROUPS,
    MOST_ZONES,
    RESERVATION,
    NodeCount,
)

API_VERSION, EKS_CLUSTER = "infrastructure.modelplane.ai/v1alpha1", "EKSCluster"
DEFAULT_NAMESPACE, DEFAULT_CREDENTIALS = "default", "default"
STORAGE_CLASS = "modelplane-rwx-efs"
_OF_SECRET = frozenset({SECRET_CLUSTER, SECRET_ROLE})
"""Annotations that the record of the cluster says by a field of its own."""
ROLES, USUAL_ROLE = (VIEWER, OPERATOR, ADMIN), OPERATOR
"""What a token in a Secret may do."""
MOST_DESCRIPTION = 1024
"""Characters, as of any cluster's description."""
KUBECONFIG = "kubeconfig"
_NAME = worded(
    r"^[a-z0-9]([a-z0-9-]{0,126}[a-z0-9])?$",
    "1 to 128 lower-case letters, digits and hyphens, starting and ending with a letter or digit",
)


class ClusterMetadata(Metadata):
    """Names may be as long as ours."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=_NAME)]

    @field_validator("annotations")
    @classmethod
    def _role_is_one(cls, annotations: dict[str, str]) -> dict[str, str]:
        if annotations.get(SECRET_ROLE, USUAL_ROLE) not in ROLES:
            check([((SECRET_ROLE,), f"must be {' or '.join(ROLES)}")])
        return annotations

    @field_validator("annotations")
    @classmethod
    def _description_fits(cls, annotations: dict[str, str]) -> dict[str, str]:
        """Check that the annotation fits as the cluster's description, which is as long as any other's."""
        if len(annotations.get(DESCRIPTION, "")) > MOST_DESCRIPTION:
            check([((DESCRIPTION,), f"must have at most {MOST_DESCRIPTION} characters")])
        return annotations


class Credentials(Camel):
    """Credentials of Modelplane's provider for AWS; here their name is that of a cloud account."""

    type: Literal["ProviderConfig", "ClusterProviderConfig"] = "ClusterProviderConfig"
    name: Annotated[str, StringConstraints(min_length=1, max_length=253)] = DEFAULT_CREDENTIALS


class Networking(Camel):
    """The VPC, and its public subnets: one for each zone."""

    vpc_cidr: fields.Cidr = DEFAULT_VPC
    subnet_cidrs: Annotated[list[fields.Cidr], Field(min_length=FEWEST_ZONES, max_length=MOST_ZONES)] | None = None


class Gpu(Camel):
    """The GPUs of a pool."""

    accelerator_type: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=patterns.LABEL)]


class CapacityBlock(Camel):
    """The reservation that a pool's nodes come from."""

    capacity_reservation_id: Annotated[str, StringConstraints(min_length=4, max_length=64, pattern=RESERVATION)]


class NodePool(Camel):
    """A group of equal nodes."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=patterns.LABEL)]
    role: Literal["System", "GPU"]
    instance_type: aws_fields.InstanceType
    disk_size_gb: Annotated[int, Field(ge=10, le=65_536)] = 100
    node_count: NodeCount = 1
    min_node_count: NodeCount = 0
    max_node_count: NodeCount = 8
    zones: (
        Annotated[list[aws_fields.Zone], Field(min_length=1, max_length=8), AfterValidator(fields.distinct)] | None
    ) = None
    fabric: Literal["None", "EFA"] = "None"
    gpu: Gpu | None = None
    capacity_block: CapacityBlock | None = None

    @model_validator(mode="after")
    def _agree(self) -> NodePool:
        faults: list[Fault] = []
        if self.role == "GPU" and self.gpu is None:
            faults.append((("gpu",), "gpu is required when role is GPU."))
        if self.role == "GPU" and self.zones is None:
            faults.append((("zones",), "zones is required when role is GPU."))
        if self.min_node_count > self.node_count:
            faults.append((("minNodeCount",), "must not be greater than nodeCount"))
        if self.max_node_count < self.node_count:
            faults.append((("maxNodeCount",), "must not be less than nodeCount"))
        check(faults)
        return self


def _pools(pools: list[NodePool]) -> list[NodePool]:
    check(repeated([pool.name for pool in pools], "another pool has this name", "name"))
    return pools


class EksClusterSpec(Camel):
    """The cluster that is asked for."""

    region: aws_fields.Region
    kubernetes_version: Annotated[str, StringConstraints(min_length=1, max_length=16)] | None = None
    credentials: Credentials | None = None
    networking: Networking | None = None
    node_pools: Annotated[list[NodePool], Field(min_length=1, max_length=MAX_GROUPS), AfterValidator(_pools)]


EksClusterManifest = Manifest[ClusterMetadata, EksClusterSpec]


# --- from a manifest --------------------------------------------------------------------------------------------------


def read_cluster(document: Any, at: FieldPath) -> ClusterDocument:
    """See ``cluster_manifests.ClusterForm``."""
    manifest: Any = read(EksClusterManifest, without_nulls(document), at=at)
    metadata, spec = manifest.metadata, manifest.spec
    account, path = _account(metadata, spec, at)
    usual = f"{EKS_CLUSTER} {metadata.namespace or DEFAULT_NAMESPACE}/{metadata.name}"
    return ClusterDocument(
        name=metadata.name,
        kind=EKS_CLUSTER,
        cloud=CLUSTER_KIND.cloud,
        cluster_type=CLUSTER_KIND.cluster_type,
        driver=CLUSTER_KIND.driver,
        settings=_settings(spec),
        description=metadata.annotations.get(DESCRIPTION) or usual,
        is_described=DESCRIPTION in metadata.annotations,
        kubernetes_version=spec.kubernetes_version or "",
        namespace=metadata.namespace or "",
        default_namespace=DEFAULT_NAMESPACE,
        account=account,
        account_path=path,
        secret=_secret_request(metadata),
        document={
            "labels": dict(metadata.labels),
            "annotations": {name: text for name, text in metadata.annotations.items() if name not in _OF_SECRET},
            "networking": spec.networking is not None,
            "credentials": spec.credentials.model_dump() if spec.credentials else {},
        },
    )


def _secret_request(metadata: Metadata) -> SecretRequest | None:
    """The Secret that annotations ask for. One that is named like the manifest itself is that cluster."""
    name = metadata.annotations.get(SECRET_CLUSTER)
    if name is None or name == NO_SECRET:
        return None if name is None else SecretRequest(None)
    role = metadata.annotations.get(SECRET_ROLE) or USUAL_ROLE
    return SecretRequest(SecretChoice(None if name == metadata.name else name, metadata.namespace, role))


def _account(metadata: Metadata, spec: EksClusterSpec, at: FieldPath) -> tuple[str, FieldPath]:
    """Name of the cloud account, and its place. The default credentials name none."""
    label = metadata.labels.get(ACCOUNT, "")
    name = spec.credentials.name if spec.credentials else DEFAULT_CREDENTIALS
    if name == DEFAULT_CREDENTIALS or label:
        return label, (*at, "metadata", "labels", ACCOUNT)
    return name, (*at, "spec", "credentials", "name")


def _settings(spec: EksClusterSpec) -> dict[str, Any]:
    networking = spec.networking or Networking()
    subnets = {} if networking.subnet_cidrs is None else {"subnet_cidrs": list(networking.subnet_cidrs)}
    return {
        "region_name": spec.region,
        "vpc_cidr": networking.vpc_cidr,
        **subnets,
        "node_groups": [_group(pool) for pool in spec.node_pools],
    }


def _group(pool: NodePool) -> dict[str, Any]:
    return {
        "name": pool.name,
        "role": pool.role.lower(),
        "instance_type": pool.instance_type,
        "disk_gib": pool.disk_size_gb,
        "count": pool.node_count,
        "min_size": pool.min_node_count,
        "max_size": pool.max_node_count,
        "zones": list(pool.zones or ()),
        "fabric": pool.fabric.lower(),
        "accelerator_type": pool.gpu.accelerator_type if pool.gpu else "",
        "capacity_reservation_id": pool.capacity_block.capacity_reservation_id if pool.capacity_block else None,
    }


def wanted_settings(document: ClusterDocument, current: Mapping[str, Any] | None) -> dict[str, Any]:
    """See ``cluster_manifests.ClusterForm``. A new cluster has AWS's own default of support, which Modelplane leaves as
    it is: once a version is out of standard support, the cluster stays, and costs more."""
    if current is None:
        return {**document.settings, "support": "extended", "namespace": document.namespace or DEFAULT_NAMESPACE}
    groups = {group["name"]: group for group in current["node_groups"] if not group.get("builtin")}
    wanted_groups = [{**groups.get(group["name"], {}), **group} for group in document.settings["node_groups"]]
    settings = {**current, **document.settings, "node_groups": wanted_groups}
    if settings["vpc_cidr"] != current["vpc_cidr"] and "subnet_cidrs" not in document.settings:
        del settings["subnet_cidrs"]  # those of the former range say nothing of this one
    return settings


# --- to a manifest ----------------------------------------------------------------------------------------------------


def cluster_manifest(cluster: Cluster, profiles: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:  # noqa: ARG001
    """See ``cluster_manifests.ClusterForm``. What a manifest cannot say of the settings is left out."""
    stored, settings = cluster.document, cluster.settings
    networking = {"vpcCidr": settings["vpc_cidr"], "subnetCidrs": list(settings["subnet_cidrs"])}
    usual = {"vpcCidr": DEFAULT_VPC, "subnetCidrs": public_cidrs(DEFAULT_VPC, USUAL_SUBNETS)}
    optional = {
        "credentials": stored.get("credentials"),
        "networking": networking if stored.get("networking") or networking != usual else None,
    }
    metadata = {
        "namespace": settings["namespace"],
        "labels": dict(stored.get("labels") or {}),
        "annotations": {**(stored.get("annotations") or {}), **_of_secret(cluster)},
    }
    return {
        "apiVersion": API_VERSION,
        "kind": EKS_CLUSTER,
        "metadata": {"name": stored.get(NAME) or cluster.name, **_without_empty(metadata)},
        "spec": {
            "region": settings["region_name"],
            "kubernetesVersion": cluster.kubernetes_version,
            **_without_empty(optional),
            "nodePools": [_pool(group) for group in settings["node_groups"] if not group.get("builtin")],
        },
        "status": _status(cluster),
    }


def _of_secret(cluster: Cluster) -> dict[str, str]:
    """The annotations that ask for the cluster's Secret; empty for none."""
    secret = cluster.kubeconfig_secret
    return {SECRET_CLUSTER: secret["cluster"], SECRET_ROLE: secret["role"]} if secret else {}


def _pool(group: Mapping[str, Any]) -> dict[str, Any]:
    reservation, accelerator = group["capacity_reservation_id"], group["accelerator_type"]
    optional = {
        "diskSizeGb": group["disk_gib"],
        "zones": list(group["zones"]),
        "gpu": {"acceleratorType": accelerator} if accelerator else None,
        "capacityBlock": {"capacityReservationId": reservation} if reservation else None,
    }
    return {
        "name": group["name"],
        "role": "GPU" if group["role"] == "gpu" else "System",
        "instanceType": group["instance_type"],
        "nodeCount": group["count"],
        "minNodeCount": group["min_size"],
        "maxNodeCount": group["max_size"],
        "fabric": "EFA" if group["fabric"] == "efa" else "None",
        **_without_empty(optional),
    }


def _status(cluster: Cluster) -> dict[str, Any]:
    """The Secret is named before there is anything to log in to, as is the StorageClass: who waits for the cluster
    knows what to look for."""
    secret = {"type": "Kubeconfig", "name": child_name(cluster.name, KUBECONFIG), "key": KUBECONFIG}
    cache = {"cache": {"storageClassName": STORAGE_CLASS}} if cluster.settings["shared_storage"] else {}
    return {"secrets": [secret], **cache}


def _without_empty(optional: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in optional.items() if value}


# --- pointers ---------------------------------------------------------------------------------------------------------

_PATHS: Mapping[str, tuple[str, ...]] = {
    "kubeconfig_secret": ("metadata", "annotations", SECRET_CLUSTER),
    "name": ("metadata", "name"),
    "description": ("metadata", "annotations", DESCRIPTION),
    "cloud_account_id": ("metadata", "labels", ACCOUNT),
    "kubernetes_version": ("spec", "kubernetesVersion"),
    "settings/region_name": ("spec", "region"),
    "settings/vpc_cidr": ("spec", "networking", "vpcCidr"),
    "settings/subnet_cidrs": ("spec", "networking", "subnetCidrs"),
    "settings/node_groups": ("spec", "nodePools"),
    "settings/support": ("spec", "kubernetesVersion"),
    "settings/namespace": ("metadata", "namespace"),
}
_POOL_PATHS: Mapping[str, tuple[str, ...]] = {
    "instance_type": ("instanceType",),
    "disk_gib": ("diskSizeGb",),
    "count": ("nodeCount",),
    "min_size": ("minNodeCount",),
    "max_size": ("maxNodeCount",),
    "accelerator_type": ("gpu", "acceleratorType"),
    "capacity_reservation_id": ("capacityBlock", "capacityReservationId"),
}


def path_of(pointer_of_request: str) -> str:
    """See ``cluster_manifests.ClusterForm``. What no field says is at ``/spec``."""
    parts = pointer_of_request.split("/")[1:]
    length = 2 if parts[:1] == ["settings"] else 1
    start, below = _PATHS.get("/".join(parts[:length])), parts[length:]
    if start is None:
        return "/spec"
    if start[-1] == "nodePools" and len(below) > 1:
        below = [below[0], *_POOL_PATHS.get(below[1], (below[1],)), *below[2:]]
    return pointer(*start, *below)
