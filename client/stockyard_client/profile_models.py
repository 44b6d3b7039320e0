"""Answers of the API about cluster profiles, and about those of a cluster.

Made from the contract by ``local.openapi``.
"""

from __future__ import annotations

from typing import Any

from stockyard_client.base_models import Model, Resource


class ClusterProfile(Resource):
    """A cluster profile, and what one of its versions says."""

    id: str
    """The id of the profile."""
    name: str
    """The name of the profile, unique in the tenant."""
    description: str = ""
    """Free text for people."""
    cloud: str = ""
    """The cloud that the profile is for, or `all`."""
    version: str = ""  # type: ignore[assignment]
    """The number of the version that is shown."""
    versions: tuple[dict[str, Any], ...] = ()
    """All versions, the oldest first."""
    variables: tuple[dict[str, Any], ...] | None = None
    """The variables of the version that is shown; null in lists."""
    packs: tuple[dict[str, Any], ...] | None = None
    """The packs of the version that is shown; null in lists."""
    created_at: str | None = None
    """When it was made: RFC 3339 in UTC."""
    updated_at: str | None = None
    """When it was changed last: RFC 3339 in UTC."""


class PackStatus(Model):
    """A pack of a cluster, and how it is."""

    profile: str
    """The name of the profile that has the pack."""
    layer: str
    """The layer of the pack."""
    name: str
    """The name of the pack."""
    tag: str = ""
    """The version of the pack."""
    condition: str = ""
    """`Pending`, `Applying`, `Ready` or `Failed`."""
    message: str = ""
    """What goes on, or why it failed."""
    started_at: str | None = None
    """When it was begun to apply the pack; null before."""
    ended_at: str | None = None
    """When that had ended; null before."""


class ClusterProfiles(Model):
    """The profiles of a cluster, how their packs are, and what has drifted."""

    profiles: tuple[dict[str, Any], ...] = ()
    """The profiles of the cluster, as they were chosen."""
    packs: tuple[PackStatus, ...] = ()
    """All packs of these profiles and how they are."""
    objects: int = 0
    """How many objects stand in the cluster by these packs."""
    drift: tuple[str, ...] = ()
    """Objects that were not as they were applied when somebody looked last; nothing changes them by itself."""
    compared_at: str | None = None
    """When somebody looked last; null for never."""
