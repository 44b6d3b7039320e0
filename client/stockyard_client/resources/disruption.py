"""Disruption of a cluster's nodes as Python calls: what is done, what would be done, and the switches."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from stockyard_client.base_models import Model
from stockyard_client.resources.base import Collection, parsed, path


class PoolSaving(Model):
    """Change of a pool's price by the decisions of this month, in USD a month."""

    pool: str
    usd_month: float = 0.0


class ClusterDisruption(Model):
    """The decision that is being carried out in a cluster, or the last one."""

    cluster_id: str = ""
    state: str
    reason: str | None = None
    message: str = ""
    paused: bool = False
    paused_by: str | None = None
    paused_pools: tuple[str, ...] = ()
    """Pools whose own switch is set."""
    nodes: tuple[str, ...] = ()
    replacements: tuple[str, ...] = ()
    decided_at: str | None = None
    usd_month_possible: float | None = None
    usd_month_saved: float = 0.0
    savings: tuple[PoolSaving, ...] = ()


class PreviewedNode(Model):
    """A node: whether it would leave now and for which reason, or which rule keeps it."""

    name: str
    pool: str = ""
    type: str = ""
    usd_hour: float | None = None
    leaves: bool = False
    why: str = ""
    until: str | None = None


class DisruptionPreview(Model):
    """Nodes that would leave now, and what comes in their place; ``decision`` is None for nothing."""

    message: str = ""
    observed_at: str | None = None
    decision: dict[str, Any] | None = None
    nodes: tuple[PreviewedNode, ...] = Field(default_factory=tuple)


class DisruptionSwitch(Model):
    """Whether the disruption of all clusters is paused."""

    paused: bool


class Disruption(Collection):
    """Clusters are named by id or name."""

    name = "disruption"

    def get(self, cluster: str) -> ClusterDisruption:
        """Decisions about the cluster's nodes that are under way, and their saving."""
        return parsed(ClusterDisruption, self._transport.send("GET", _path(cluster)).object())

    def preview(self, cluster: str) -> DisruptionPreview:
        """Nodes that would leave now, with reason and saving; nothing is done."""
        return parsed(DisruptionPreview, self._transport.send("GET", f"{_path(cluster)}/preview").object())

    def pause(self, cluster: str, *, paused: bool = True) -> ClusterDisruption:
        """Pauses the cluster's disruption, or lets it go on."""
        answer = self._transport.send("PUT", _path(cluster), body={"paused": paused})
        return parsed(ClusterDisruption, answer.object())

    def switch(self) -> DisruptionSwitch:
        """The switch of all clusters."""
        return parsed(DisruptionSwitch, self._transport.send("GET", path(self.name)).object())

    def pause_all(self, *, paused: bool = True) -> DisruptionSwitch:
        """Pauses the disruption of all clusters, or lets it go on."""
        answer = self._transport.send("PUT", path(self.name), body={"paused": paused})
        return parsed(DisruptionSwitch, answer.object())


def _path(cluster: str) -> str:
    return path("clusters", cluster, "disruption")
