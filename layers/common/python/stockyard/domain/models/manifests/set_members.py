"""Members of sets of manifests, for callers."""

from __future__ import annotations

from typing import Any, Literal

from stockyard.domain.models.base import View


class SetMemberView(View):
    """One thing that a set of manifests has applied."""

    set: str
    """The name of the set."""
    kind: Literal["os-image", "node-provider", "cluster-profile", "cluster", "pool", "node-claim"]
    """The kind of the thing, as plans call it."""
    id: str
    """The id of the thing."""
    name: str
    """The name of the thing."""
    cluster: str | None
    """Of a pool the name of its cluster; null for anything else."""
    labels: dict[str, str]
    """By which a part of the set is selected: labels of the manifest, tags of a Cluster, labels of a Pool."""
    fields: dict[str, Any]
    """Names of the fields that its manifest said when it was applied last, as a tree; null at each value. A later
    manifest of the set that leaves one out takes it away; what none has said stays."""
    applied_at: str
    """When it was applied last with anything new: RFC 3339 in UTC."""
