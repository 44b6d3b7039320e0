"""The settings of a toy cluster."""

from __future__ import annotations

from stockyard.domain.models.clusters.clusters import ClusterSettings


class ToySettings(ClusterSettings):
    """Where it is."""

    region_name: str | None = None
