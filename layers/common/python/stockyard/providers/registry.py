"""The providers of this installation, one line each: the folder of a provider, loaded when it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stockyard.domain import cloud_kinds
from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.provider_kinds import ProviderKind

if TYPE_CHECKING:
    from stockyard.ports.nodes import NodeSource
    from stockyard.providers.descriptors import NodeSourceDescriptor, SourceTools

PROVIDERS = (
    "clouds.aws",
    "clouds.cudo",
    "clouds.kubernetes",
    "clouds.bcm",
    "clusters.ec2",
    "clusters.cudo",
    "clusters.eks",
    "nodes.terraform",
    "nodes.kubevirt",
    "nodes.bcm",
    "nodes.metal3",
    "nodes.cluster_api",
    "nodes.ec2",
    "nodes.cudo",
    "nodes.eks",
    "nodes.config_maps",
    "nodes.simulated",
)


PLANNED_CLOUDS: frozenset[str] = frozenset()
"""Clouds that accounts are refused for by name, until their folder is there."""


def introduce() -> None:
    """Tell the domain which kinds there are, before the first document is read."""
    provider_kinds.use(NodeKinds())
    cloud_kinds.use(Kinds("clouds"), PLANNED_CLOUDS, Kinds("clusters"))


def names(room: str) -> tuple[str, ...]:
    """The folders of ``clouds``, ``clusters`` or ``nodes``."""
    return tuple(line.partition(".")[2] for line in PROVIDERS if line.partition(".")[0] == room)


def descriptor(room: str, name: str) -> Any:
    """Descriptor of that folder, see ``descriptors``. ``KeyError`` when no line names it."""
    if name not in names(room):
        raise KeyError(name)
    return import_module(f"stockyard.providers.{room}.{name}").DESCRIPTOR


def driver_names() -> dict[tuple[str, str], tuple[str, ...]]:
    """The cluster drivers for each kind of cloud account and type of cluster, the one of clusters that name none
    first."""
    names_by_type: dict[tuple[str, str], tuple[str, ...]] = {}
    for kind in Kinds("clusters").values():
        key = (kind.cloud, kind.cluster_type)
        names_by_type[key] = (*names_by_type.get(key, ()), kind.driver)
    return names_by_type


class Kinds(Mapping[str, Any]):
    """Descriptions of their documents by the folders of a room. A folder is loaded when it is asked for."""

    def __init__(self, room: str) -> None:
        self._room = room

    def __getitem__(self, name: str) -> Any:
        return descriptor(self._room, name).kind

    def __iter__(self) -> Iterator[str]:
        return iter(names(self._room))

    def __len__(self) -> int:
        return len(names(self._room))


class NodeKinds(Mapping[str, ProviderKind]):
    """The kinds of node providers by their names in documents. The folders are loaded when one is asked for."""

    @cached_property
    def _kinds(self) -> Mapping[str, ProviderKind]:
        return {
            node_descriptor.kind.name: replace(node_descriptor.kind, built=node_descriptor.make is not None)
            for node_descriptor in _node_descriptors()
        }

    def __getitem__(self, name: str) -> ProviderKind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


def node_sources() -> dict[str, Callable[[SourceTools], NodeSource]]:
    """Makers of the sources of the kinds that are built, by the kinds' names."""
    return {described.kind.name: described.make for described in _node_descriptors() if described.make is not None}


def _node_descriptors() -> Iterator[NodeSourceDescriptor]:
    return (descriptor("nodes", name) for name in names("nodes"))
