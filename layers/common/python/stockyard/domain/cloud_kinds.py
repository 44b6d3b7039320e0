"""What is known of clouds and of cluster drivers from their documents alone, and the tables of both.

Each is described by its provider's own folder, as kinds of node providers are: see ``provider_kinds``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from stockyard.domain.provider_kinds import loaded

if TYPE_CHECKING:
    from stockyard.domain.node_groups import GroupMapping


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
class ClusterKind:
    """What a cluster driver makes: clusters of a type in accounts of a kind of cloud.

    ``settings`` names the model of their settings, as ``module:Class``: a ``models.clusters.ClusterSettings``.
    ``rows`` names the rows of the table of phases that their operations have; see ``lifecycle.phases``. Empty: those
    that hold for every driver. ``groups`` names the module that says how their node groups are pools, a
    ``node_groups.GroupMapping``; empty for clusters without.
    """

    driver: str
    cloud: str
    cluster_type: str
    settings: str
    rows: str = ""
    groups: str = ""


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


def group_mappings(cloud: str | None = None, cluster_type: str | None = None) -> Sequence[GroupMapping]:
    """How the node groups of clusters of that type in that cloud are pools; None: of any."""
    return [
        cast("GroupMapping", import_module(kind.groups))
        for kind in _Table.clusters.values()
        if kind.groups and cloud in (None, kind.cloud) and cluster_type in (None, kind.cluster_type)
    ]


def attributes_models(cloud: str | None = None) -> Sequence[type[Any]]:
    """The models of accounts' attributes: of that cloud, or of every one."""
    return [loaded(kind.attributes) for name, kind in clouds().items() if cloud in (None, name)]


def attributes_patch_models(cloud: str | None = None) -> Sequence[type[Any]]:
    """The models of patches of accounts' attributes: of that cloud, or of every one."""
    return [loaded(kind.attributes_patch) for name, kind in clouds().items() if cloud in (None, name)]


def settings_models(cloud: str | None = None, cluster_type: str | None = None) -> Sequence[type[Any]]:
    """The models of the settings of clusters of that type in that cloud; None: of any."""
    return [
        loaded(kind.settings)
        for kind in _Table.clusters.values()
        if cloud in (None, kind.cloud) and cluster_type in (None, kind.cluster_type)
    ]
