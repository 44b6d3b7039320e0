"""The settings of a toy cluster."""

from __future__ import annotations

from stockyard.domain.models.clusters.clusters import ClusterSettings


class ToySettings(ClusterSettings):
    """Place of the cluster."""

    region_name: str | None = None
