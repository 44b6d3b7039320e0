"""Toy clusters: a driver as a test writes it into a copy of the tree, for ``test_new_provider``."""

from __future__ import annotations

from stockyard.domain.cloud_kinds import ClusterKind
from stockyard.ports import ClusterDriver
from stockyard.providers.descriptors import ClusterDriverDescriptor, ProviderTools


def _make(tools: ProviderTools) -> ClusterDriver:
    from stockyard.providers.clusters.toy.driver import ToyClusterDriver  # type: ignore[import-not-found,import-untyped,unused-ignore]  # in the copy

    return ToyClusterDriver(tools.settings.name_prefix)


KIND = ClusterKind("toy", cloud="aws", cluster_type="toy", settings=f"{__name__}.settings:ToySettings")
DESCRIPTOR = ClusterDriverDescriptor(KIND, _make)
