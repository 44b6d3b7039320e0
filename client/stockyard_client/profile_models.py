"""Answers of the API about cluster profiles, and about those of a cluster."""

from __future__ import annotations

from typing import Any

from stockyard_client.models import Model, Resource


class ClusterProfile(Resource):
    """A cluster profile in one of its versions. ``variables`` and ``packs`` are None in lists."""

    id: str
    name: str
    description: str = ""
    cloud: str = ""
    version: str = ""  # type: ignore[assignment]
    """Of what it says; its record's is in ``etag``."""
    versions: tuple[dict[str, Any], ...] = ()
    variables: tuple[dict[str, Any], ...] | None = None
    packs: tuple[dict[str, Any], ...] | None = None
    created_at: str | None = None
    updated_at: str | None = None


class PackStatus(Model):
    """A pack of a cluster; ``condition`` is Pending, Applying, Ready or Failed."""

    profile: str
    layer: str
    name: str
    tag: str = ""
    condition: str = ""
    message: str = ""
    started_at: str | None = None
    ended_at: str | None = None


class ClusterProfiles(Model):
    """The profiles of a cluster, and how their packs are."""

    profiles: tuple[dict[str, Any], ...] = ()
    packs: tuple[PackStatus, ...] = ()
    objects: int = 0
    drift: tuple[str, ...] = ()
    compared_at: str | None = None
