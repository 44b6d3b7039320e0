"""A ``Cluster`` of ``stockyard/v1``: a cluster of any driver, with all that a request for one can say, and its pools.

The fields are those of the routes in camel case, those of the settings too. What a manifest does not say of a cluster
that is there stays as it is: an empty list takes away what a list has, ``null`` a setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel, to_snake

from stockyard.domain import cloud_kinds
from stockyard.domain.clusters.change import Expiry, SecretChoice, SecretRequest
from stockyard.domain.clusters.manifests import ClusterDocument
from stockyard.domain.models import fields
from stockyard.domain.models.base import check, read, repeated, without_nulls
from stockyard.domain.models.camel_documents import camel_document, camel_path, snake_document
from stockyard.domain.models.clusters.clusters import ClusterSettings, Driver, KubernetesVersion
from stockyard.domain.models.clusters.kubeconfig_secrets import KubeconfigSecretChoice
from stockyard.domain.models.clusters.limits import ClusterLimits
from stockyard.domain.models.clusters.profiles import MAX_PROFILES, ProfileChoice, choice_documents
from stockyard.domain.models.manifests.manifests import without_servers_fields
from stockyard.domain.models.nodes.node_fields import Camel
from stockyard.domain.models.pools.own_pools import CamelPool
from stockyard.domain.nodes.manifests import OWN, FieldPath
from stockyard.domain.nodes.provider_kinds import loaded
from stockyard.domain.pools.manifests import own_pool_spec
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem, InvalidInput

KIND = "Cluster"
MAX_POOLS = 200
"""Pools of one manifest; the quota of a cluster is lower."""
_SETTINGS = ("spec", "settings")


class CamelChoice(ProfileChoice):
    """A profile of the cluster, in a manifest."""

    model_config = ConfigDict(alias_generator=to_camel)


def _each_once(pools: list[CamelPool]) -> list[CamelPool]:
    check(repeated([pool.name for pool in pools], "another pool has this name", "name"))
    return pools


class CamelSecret(KubeconfigSecretChoice):
    """The Secret with the cluster's kubeconfig, in a manifest."""

    model_config = ConfigDict(alias_generator=to_camel)


class OwnClusterSpec(Camel):
    """The cluster that is asked for. A request has the same fields, and says the account by its number."""

    driver: Driver
    """Who makes the cluster."""
    cloud_account: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = None
    """The cloud account, by its name or its number; without one the tenant's only account of the driver's cloud."""
    description: fields.Description | None = None
    kubernetes_version: KubernetesVersion | None = None
    keep_failed: fields.KeepFailed | None = None
    expires_at: fields.ExpiresAt | None = None
    """When its deletion begins by itself; null for never."""
    kubeconfig_secret: CamelSecret | None = None
    """A Secret with its kubeconfig that an agent keeps fresh; null for none."""
    tags: fields.Tags | None = None
    limits: ClusterLimits | None = None
    profiles: Annotated[list[CamelChoice], Field(max_length=MAX_PROFILES)] | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    """The settings of the driver, in camel case."""
    pools: Annotated[list[CamelPool], Field(max_length=MAX_POOLS), AfterValidator(_each_once)] = Field(
        default_factory=list
    )
    """The pools that are no node groups of the settings."""


class OwnClusterMetadata(Camel):
    """The name. What else a cluster is called or marked by stands in its specification."""

    name: fields.Name

    @model_validator(mode="before")
    @classmethod
    def _sent(cls, document: Any) -> Any:
        return without_servers_fields(document)


class OwnCluster(Camel):
    """The document."""

    api_version: str
    kind: str
    metadata: OwnClusterMetadata
    spec: OwnClusterSpec
    status: Any = None


# --- from a manifest --------------------------------------------------------------------------------------------------


def read_own_cluster(document: Mapping[str, Any], at: FieldPath) -> ClusterDocument:
    """Read the manifest at that place. ``InvalidInput`` with every fault below the place."""
    plain = _without_nulls(document)
    faults = _settings_faults(plain, (*at, *_SETTINGS))
    try:
        manifest = read(OwnCluster, plain, at=at)
    except InvalidInput as refused:
        raise InvalidInput.of([*refused.errors, *faults]) from refused
    if faults:
        raise InvalidInput.of(faults)
    spec = manifest.spec
    kind = cloud_kinds.cluster_kind_of(spec.driver)
    settings, _ = snake_document(loaded(kind.settings), spec.settings)
    return ClusterDocument(
        name=manifest.metadata.name,
        kind=KIND,
        cloud=kind.cloud,
        cluster_type=kind.cluster_type,
        driver=kind.driver,
        settings=settings,
        description=spec.description or "",
        is_described=spec.description is not None,
        kubernetes_version=spec.kubernetes_version or "",
        keep_failed=spec.keep_failed,
        expiry=Expiry(spec.expires_at) if _says(document, "expires_at") else None,
        secret=SecretRequest(_choice(spec)) if _says(document, "kubeconfig_secret") else None,
        account=spec.cloud_account or "",
        account_path=(*at, "spec", "cloudAccount"),
        tags=None if spec.tags is None else dict(spec.tags),
        limits=None if spec.limits is None else {name: str(amount) for name, amount in spec.limits.items()},
        profiles=None if spec.profiles is None else choice_documents(list(spec.profiles)),
        pools=tuple(pool.new_pool() for pool in spec.pools),
    )


def _choice(spec: OwnClusterSpec) -> SecretChoice | None:
    return None if spec.kubeconfig_secret is None else spec.kubeconfig_secret.choice()


def _says(document: Mapping[str, Any], name: str) -> bool:
    """Whether the document says a field of the specification, be it by ``null``."""
    spec = document.get("spec")
    return isinstance(spec, Mapping) and to_camel(name) in spec


def _without_nulls(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document without fields that are null, but for those of the settings: there ``null`` takes one away."""
    spec = document.get("spec")
    settings = spec.get("settings") if isinstance(spec, Mapping) else None
    plain: dict[str, Any] = without_nulls(document)
    if isinstance(settings, Mapping):
        plain["spec"]["settings"] = dict(settings)
    return plain


def _settings_faults(document: Mapping[str, Any], at: FieldPath) -> list[FieldProblem]:
    """The fields of the settings that the driver's clusters have not, below ``at``; none where the driver is not known.
    One of another driver's clusters is refused by whose it is."""
    spec = document.get("spec")
    driver, sent = (spec.get("driver"), spec.get("settings")) if isinstance(spec, Mapping) else (None, None)
    if not isinstance(driver, str) or driver not in cloud_kinds.drivers() or not isinstance(sent, Mapping):
        return []
    model: type[ClusterSettings] = loaded(cloud_kinds.cluster_kind_of(driver).settings)
    _, faults = snake_document(model, dict(sent))
    names = {to_snake(str(path[0])): path for path, _ in faults if len(path) == 1}
    foreign = names.keys() - model.model_fields.keys()
    owners = {names[name]: owner for name, owner in cloud_kinds.settings_owners(foreign).items()}
    return [
        FieldProblem(pointer(*at, *path), f"is a field of clusters {owners[path]}" if path in owners else text)
        for path, text in faults
    ]


@dataclass(frozen=True, slots=True)
class OwnForm:
    """The form of a driver's clusters; see ``domain.clusters.manifests.ClusterForm``."""

    driver: str

    @property
    def _model(self) -> type[ClusterSettings]:
        return loaded(cloud_kinds.cluster_kind_of(self.driver).settings)

    def read_cluster(self, document: Any, at: FieldPath) -> ClusterDocument:
        """Read the manifest at that place."""
        return read_own_cluster(document, at)

    def wanted_settings(self, document: ClusterDocument, current: Mapping[str, Any] | None) -> dict[str, Any]:
        """The settings of a request. Of a cluster that is there those that the manifest does not say stay, and one
        that it says counts as a whole."""
        if current is None:
            return {name: value for name, value in document.settings.items() if value is not None}
        written = self._model.written(current)
        untouched = {name: value for name, value in written.items() if name not in document.settings}
        return self._model.patched(untouched, document.settings)

    def cluster_manifest(self, cluster: Cluster, profiles: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """The cluster, with all that can be asked for; defaults of settings are left out."""
        return own_cluster_manifest(cluster, profiles)

    def path_of(self, pointer_of_request: str) -> str:
        """The pointer into a manifest to what is at this pointer into a request."""
        parts = pointer_of_request.split("/")[1:]
        if parts[:1] == ["name"]:
            return pointer("metadata", "name")
        if parts[:1] == ["cloud_account_id"]:
            return pointer("spec", "cloudAccount")
        if parts[:1] == ["settings"]:
            return pointer(*_SETTINGS, *camel_path(self._model, parts[1:]))
        return pointer("spec", *camel_path(OwnClusterSpec, parts))


# --- to a manifest ----------------------------------------------------------------------------------------------------


def _secret(cluster: Cluster) -> dict[str, str]:
    """The Secret as a manifest asks for it; empty for none."""
    secret = cluster.kubeconfig_secret
    return {name: secret[name] for name in ("cluster", "namespace", "role")} if secret else {}


def own_cluster_manifest(
    cluster: Cluster, profiles: Sequence[Mapping[str, Any]] = (), pools: Sequence[Pool] = (), account: str = ""
) -> dict[str, Any]:
    """The cluster as a ``Cluster``. ``pools`` are those that no node group of its settings makes; ``account`` is what
    the cloud account is called, its number where no name is given."""
    model: type[ClusterSettings] = loaded(cloud_kinds.cluster_kind_of(cluster.driver).settings)
    optional = {
        "description": cluster.description,
        "keepFailed": cluster.keep_failed,
        "expiresAt": cluster.expires_at,
        "kubeconfigSecret": _secret(cluster),
        "tags": dict(cluster.tags),
        "limits": dict(cluster.limits),
        "profiles": [camel_document(ProfileChoice, profile) for profile in profiles],
        "settings": camel_document(model, model.written(cluster.settings)),
        "pools": [{"name": pool.name, **own_pool_spec(pool)} for pool in pools],
    }
    return {
        "apiVersion": OWN,
        "kind": KIND,
        "metadata": {"name": cluster.name},
        "spec": {
            "driver": cluster.driver,
            "cloudAccount": account or str(cluster.cloud_account_id),
            "kubernetesVersion": cluster.kubernetes_version,
            **{name: value for name, value in optional.items() if value},
        },
    }
