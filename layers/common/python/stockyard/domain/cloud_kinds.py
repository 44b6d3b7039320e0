"""Facts about clouds and cluster drivers from their documents alone, and the tables of both.

Each is described by its provider's own folder, as kinds of node providers are: see ``provider_kinds``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from stockyard.domain.nodes.provider_kinds import loaded
from stockyard.domain.values.frozen import dataclass

if TYPE_CHECKING:
    from stockyard.domain.clusters.manifests import ClusterForm
    from stockyard.domain.pools.group_mapping import GroupMapping


@dataclass(frozen=True, slots=True)
class CloudKind:
    """A kind of cloud account. ``name`` is the account's ``provider``, ``title`` is what people call it.

    ``attributes`` and ``attributes_patch`` name the models of an account's attributes and of a merge patch of them, as
    ``module:Class``. ``reserved_tags`` are beginnings of keys of tags that the cloud keeps for itself. ``secrets``
    names the attributes that are kept sealed and are never shown.
    """

    name: str
    title: str
    attributes: str
    attributes_patch: str
    reserved_tags: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ManifestKind:
    """Manifests of another product that clusters come as. ``form`` names the module that reads and writes them, a
    ``cluster_manifests.ClusterForm``."""

    api_version: str
    kind: str
    form: str


GROUP_QUOTA = "nodes_per_group"
"""The quota of the nodes of each node group and of each other pool, where a kind of clusters names no other."""


@dataclass(frozen=True, slots=True)
class ClusterKind:
    """Kind of cluster that a driver makes: clusters of a type in accounts of a kind of cloud. Where several drivers
    make clusters of one type in one cloud, the first one makes those that name none.

    ``settings`` names the model of their settings, as ``module:Class``: a ``models.clusters.ClusterSettings``.
    ``creation_settings`` names the model of the settings in a request for a new cluster, where a request has to give
    more than other documents have to; empty where both are the same.
    ``rows`` names the rows of the table of phases that their operations have; see ``lifecycle.phases``. Empty: those
    that hold for every driver. ``groups`` names the module that says how their node groups are pools, a
    ``group_mapping.GroupMapping``; empty for clusters without. ``default_version`` is the version of Kubernetes of
    clusters that name none, where the cloud runs the control planes and says which versions there are; empty where
    machines install one of ``kubernetes_versions.TESTED``. ``manifest`` is what they come as beside requests of ours.
    ``followed_groups`` is the setting whose groups their pools follow as long as they stand: then a group is changed
    there. None where groups are the settings' when a cluster is made, and pools like any other from then on.
    ``profile_cloud`` is what cluster profiles for these clusters name; empty where they can have none. ``image_family``
    is what their machines run, as the layer os of a profile names it. ``group_quota`` is the quota of the nodes of each
    of their node groups.
    """

    driver: str
    cloud: str
    cluster_type: str
    settings: str
    creation_settings: str = ""
    rows: str = ""
    groups: str = ""
    default_version: str = ""
    manifest: ManifestKind | None = None
    followed_groups: str | None = None
    profile_cloud: str = ""
    image_family: str = ""
    group_quota: str = GROUP_QUOTA

    def settings_model(self, *, creation: bool = False) -> type[Any]:
        """The model of the settings: of every document, or of a request for a new cluster."""
        return loaded((creation and self.creation_settings) or self.settings)


MANAGED = "managed"
"""The rows of drivers whose control plane is a service of the cloud, which has no machine that reports."""


class _Table:
    clouds: Mapping[str, CloudKind] = {}
    planned: Set[str] = frozenset()
    clusters: Mapping[str, ClusterKind] = {}


def use(clouds: Mapping[str, CloudKind], planned: Set[str], clusters: Mapping[str, ClusterKind]) -> None:
    """Take these as the clouds and the cluster drivers that there are, by their names; ``planned`` names clouds that
    are not built yet. Called once in a process, by who knows the providers."""
    _Table.clouds, _Table.planned, _Table.clusters = clouds, planned, clusters


def clouds() -> Mapping[str, CloudKind]:
    """The clouds that are built."""
    return _Table.clouds


def planned_clouds() -> Set[str]:
    """Names of clouds that are not built yet."""
    return _Table.planned


def rows_of(driver: str) -> str:
    """The rows of the table of phases that the driver's clusters have; empty for those of every driver."""
    kind = _Table.clusters.get(driver)
    return kind.rows if kind is not None else ""


def default_version(driver: str | None) -> str:
    """The version of Kubernetes of a driver's clusters that name none; empty for those that are installed by us."""
    kind = _Table.clusters.get(driver) if driver else None
    return kind.default_version if kind is not None else ""


def followed_groups(driver: str) -> str | None:
    """The setting that pools of the driver's clusters follow; None where they follow none."""
    kind = _Table.clusters.get(driver)
    return kind.followed_groups if kind is not None else None


def group_quota(driver: str) -> str:
    """The quota of the nodes of each node group of the driver's clusters."""
    kind = _Table.clusters.get(driver)
    return kind.group_quota if kind is not None else GROUP_QUOTA


def group_quotas() -> Mapping[str, Set[str]]:
    """The drivers of each quota of the nodes of a node group, by the quota's name."""
    names = {kind.group_quota for kind in _Table.clusters.values()} | {GROUP_QUOTA}
    return {name: {kind.driver for kind in _Table.clusters.values() if kind.group_quota == name} for name in names}


def is_managed(driver: str) -> bool:
    """Whether the control planes of the driver's clusters are a service of their cloud. Such a service admits machines
    by itself and names their nodes."""
    return rows_of(driver) == MANAGED


def drivers() -> Sequence[str]:
    """The names of all cluster drivers."""
    return list(_Table.clusters)


def cluster_kind(cloud: str, cluster_type: str, driver: str | None = None) -> ClusterKind:
    """The kind of the clusters of that type in that cloud that the driver makes; the first one when there is none of
    that name. Raises ``KeyError`` where nobody makes such clusters."""
    kinds = [kind for kind in _Table.clusters.values() if (kind.cloud, kind.cluster_type) == (cloud, cluster_type)]
    if not kinds:
        raise KeyError(cloud, cluster_type)
    return next((kind for kind in kinds if kind.driver == driver), kinds[0])


def cluster_kind_of(driver: str) -> ClusterKind:
    """The kind of the clusters that the driver makes. Raises ``KeyError`` where there is no driver of that name."""
    return _Table.clusters[driver]


def manifest_kinds() -> Mapping[tuple[str, str], ManifestKind]:
    """The kinds of manifests that clusters come as, by API version and kind."""
    kinds = (kind.manifest for kind in _Table.clusters.values() if kind.manifest is not None)
    return {(kind.api_version, kind.kind): kind for kind in kinds}


def cluster_form(kind: ManifestKind) -> ClusterForm:
    """Reader and writer of manifests of the kind."""
    return cast("ClusterForm", import_module(kind.form))


def group_mapping(cloud: str, cluster_type: str, driver: str) -> GroupMapping | None:
    """Mapping of such clusters' node groups to pools; None where they have none."""
    groups = cluster_kind(cloud, cluster_type, driver).groups
    return cast("GroupMapping", import_module(groups)) if groups else None


def group_mappings() -> Sequence[GroupMapping]:
    """Mappings of node groups to pools, for every driver that has any."""
    return [cast("GroupMapping", import_module(kind.groups)) for kind in _Table.clusters.values() if kind.groups]


def usual_settings_models(cluster_type: str | None = None, *, creation: bool = False) -> Sequence[type[Any]]:
    """The models of the settings of clusters of that type that name no driver, one for each cloud. See
    ``ClusterKind.settings_model``."""
    usual: dict[tuple[str, str], ClusterKind] = {}
    for kind in _Table.clusters.values():
        usual.setdefault((kind.cloud, kind.cluster_type), kind)
    kinds = [kind for kind in usual.values() if cluster_type in (None, kind.cluster_type)]
    return [kind.settings_model(creation=creation) for kind in kinds]


def settings_owners(fields: Set[str]) -> Mapping[str, str]:
    """Clusters that have each of these fields of settings, in words, by the field's name: the first kind that has
    it."""
    usual = usual_settings_models()
    owners: dict[str, str] = {}
    for kind in _Table.clusters.values():
        if kind.cloud not in _Table.clouds:
            continue
        model = loaded(kind.settings)
        title = f"on {_Table.clouds[kind.cloud].title}" if model in usual else f"made by the driver {kind.driver}"
        for name in fields & set(model.model_fields):
            owners.setdefault(name, title)
    return owners


def attributes_models(cloud: str | None = None) -> Sequence[type[Any]]:
    """The models of accounts' attributes: of that cloud, or of every one."""
    return [loaded(kind.attributes) for name, kind in clouds().items() if cloud in (None, name)]


def attributes_patch_models(cloud: str | None = None) -> Sequence[type[Any]]:
    """The models of patches of accounts' attributes: of that cloud, or of every one."""
    return [loaded(kind.attributes_patch) for name, kind in clouds().items() if cloud in (None, name)]


def settings_models(
    cloud: str | None = None, cluster_type: str | None = None, driver: str | None = None, *, creation: bool = False
) -> Sequence[type[Any]]:
    """The models of the settings of clusters of that type in that cloud, by that driver; None: of any. See
    ``ClusterKind.settings_model``."""
    return [
        kind.settings_model(creation=creation)
        for kind in _Table.clusters.values()
        if cloud in (None, kind.cloud) and cluster_type in (None, kind.cluster_type) and driver in (None, kind.driver)
    ]


ANY_CLOUD = "any"
"""What a cluster profile names that is for all clusters."""


def profile_clouds(driver: str = "") -> tuple[str, ...]:
    """Names of clouds for profiles of the driver's clusters, or of any driver's where none is named; empty where they
    can have none."""
    kinds = [kind for name, kind in _Table.clusters.items() if driver in ("", name)]
    names = {kind.profile_cloud for kind in kinds if kind.profile_cloud}
    return (*sorted(names), ANY_CLOUD) if names else ()


def image_families(driver: str = "") -> tuple[str, ...]:
    """Image families of the machines of the driver's clusters, or of any driver's where none is named."""
    kinds = [kind for name, kind in _Table.clusters.items() if driver in ("", name)]
    return tuple(sorted({kind.image_family for kind in kinds if kind.image_family}))
