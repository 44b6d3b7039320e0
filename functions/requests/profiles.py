"""Cluster profiles by event: made, given versions, removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functions.requests.common import audit, deletion, outcome, until_changed
from stockyard import wiring
from stockyard.domain.profiles.records import ClusterProfile
from stockyard.domain.values import ids
from stockyard.edge.requests import EventRequest


def _outcome(profile: ClusterProfile) -> Mapping[str, Any]:
    return outcome(profile.id, profile.name, profile.versions[-1].number)


def create(request: EventRequest) -> Mapping[str, Any]:
    """A new profile with its first version."""
    from stockyard.operations.profiles import profiles

    body, services = request.body, wiring.services(request.tenant)
    profile = profiles.create_profile(
        services,
        name=body.name,
        description=body.description,
        cloud=body.cloud,
        version=body.version,
        content=body.content(),
        actor=request.actor,
        rights=request.rights,
        id=request.lease.stable_id(ids.CLUSTER_PROFILE),
    )
    audit(services, request, "CreateClusterProfile", profile.id)
    return _outcome(profile)


def add_version(request: EventRequest) -> Mapping[str, Any]:
    """The profile with one more version."""
    from stockyard.operations.profiles import profiles

    body, services = request.body, wiring.services(request.tenant)

    def added() -> ClusterProfile:
        profile = profiles.find_profile(services, request.names["profile"])
        own = (version.number == body.version and version.created_by == request.actor for version in profile.versions)
        if request.again and any(own):
            return profile
        return profiles.add_version(
            services,
            profile.id,
            profile.version,
            version=body.version,
            description=body.description,
            content=body.content(),
            actor=request.actor,
            rights=request.rights,
            request_id=request.request_id,
        )

    return _outcome(until_changed(added))


def delete(request: EventRequest) -> Mapping[str, Any]:
    """The removal of a profile that no cluster uses, which is over when it is answered."""
    from stockyard.operations.profiles import profiles

    services = wiring.services(request.tenant)

    def deleted() -> Mapping[str, Any]:
        profile = profiles.find_profile(services, request.names["profile"])
        profiles.check_may_delete(profile, request.rights)
        operation = profiles.delete_profile(services, profile.id, request.actor)
        audit(services, request, "DeleteClusterProfile", profile.id)
        return outcome(operation.subject, operation.subject_name, "deleted", operation.id)

    return deletion(request, deleted, request.names["profile"])
