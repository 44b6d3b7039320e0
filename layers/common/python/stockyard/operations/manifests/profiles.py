"""Cluster profiles that documents ask for, compared with those that are there: checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from stockyard.domain import cloud_kinds
from stockyard.domain.nodes.manifests import FieldPath
from stockyard.domain.profiles.cluster_profiles import PROFILE_KIND, Content, ProfileDocument, content_changes
from stockyard.domain.profiles.records import ClusterProfile
from stockyard.domain.records import Record
from stockyard.domain.values import ids
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem, InvalidInput, NotFound
from stockyard.operations.profiles import profiles
from stockyard.operations.services import Services
from stockyard.ports import Store


@dataclass(frozen=True, slots=True)
class DesiredProfile:
    """A profile to make, or with ``current`` one that gets a version; nothing to do where that is there."""

    path: FieldPath
    document: ProfileDocument
    content: Content
    """With the text of each manifest."""
    current: ClusterProfile | None
    former: Content | None
    """What the newest version says."""
    rights: str
    """Of who makes the version."""

    @property
    def is_there(self) -> bool:
        """Whether the profile has the version."""
        return self.current is not None and _has(self.current, self.document.version)


def _has(profile: ClusterProfile, number: str) -> bool:
    return any(version.number == number for version in profile.versions)


def desired_profile(services: Services, path: FieldPath, document: ProfileDocument, rights: str) -> DesiredProfile:
    """The profile of a document of somebody who has these rights, compared with the one of its name. ``InvalidInput``
    has pointers into the document."""
    try:
        content = profiles.complete_content(services, document.content)
        current = _current(services, document.name)
        former = None
        if current is not None:
            former = profiles.content_of(services, current, profiles.version_of(current, None))
            _check_fits(current, document, content)
    except InvalidInput as refused:
        faults = [FieldProblem(pointer(*path, "spec") + fault.pointer, fault.detail) for fault in refused.errors]
        raise InvalidInput(refused.detail, errors=faults) from refused
    return DesiredProfile(path, document, content, current, former, rights)


def _current(services: Services, name: str) -> ClusterProfile | None:
    try:
        return profiles.find_profile(services, name)
    except NotFound:
        return None


def _check_fits(profile: ClusterProfile, document: ProfileDocument, content: Content) -> None:
    """``InvalidInput`` for another cloud, one version too many, and a version that says something else."""
    if document.cloud not in (None, profile.cloud):
        raise InvalidInput.at("/cloud", f"the profile is for {profile.cloud}, which cannot change")
    if not _has(profile, document.version):
        profiles.check_version(profile, document.version)
        return
    if document.description not in (None, profile.description):
        raise InvalidInput.at("/description", "changes with a new version alone")
    stored = profiles.version_of(profile, document.version)
    if profiles.content_digest(content) != stored.digest:
        text = f"the profile has a version {document.version} that says something else; give this one another number"
        raise InvalidInput.at("/version", text)


def with_drafts(services: Services, desired: Iterable[DesiredProfile]) -> Services:
    """The services as if the profiles were there already, so that clusters of the same documents can be checked."""
    records = [record for manifest in desired if not manifest.is_there for record in _records(services, manifest)]
    if not records:
        return services
    return replace(services, store=cast(Store, _DraftStore(services.store, records)))


def _records(services: Services, desired: DesiredProfile) -> Sequence[Record]:
    document = desired.document
    if desired.current is not None:
        return profiles.with_version(
            services, desired.current, document.version, desired.content, actor="", rights=desired.rights
        )
    return profiles.draft(
        services,
        id=f"{ids.CLUSTER_PROFILE}_{document.name}",
        name=document.name,
        description="",
        cloud=document.cloud or cloud_kinds.ANY_CLOUD,
        version=document.version,
        content=desired.content,
        actor="",
        rights=desired.rights,
    )


class _DraftStore:
    """A store that shows records which are not written yet by their ids; everything else is the store's own."""

    def __init__(self, store: Store, records: Iterable[Record]) -> None:
        self._store = store
        self._drafts: dict[tuple[type[Any], str], Any] = {(type(record), record.id): record for record in records}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, kind: type[Any], id: str) -> Any:
        return self._drafts.get((kind, id)) or self._store.get(kind, id)

    def get_all(self, kind: type[Any], ids: Sequence[str]) -> Sequence[Any]:
        lacking = [key for key in ids if (kind, key) not in self._drafts]
        stored = {record.id: record for record in self._store.get_all(kind, lacking)} if lacking else {}
        records = [self._drafts.get((kind, key)) or stored.get(key) for key in ids]
        return [record for record in records if record is not None]

    def get_together(self, *names: tuple[type[Any], str]) -> tuple[Any, ...]:
        return tuple(self.get(kind, key) for kind, key in names)


def plan_profile(desired: DesiredProfile) -> dict[str, list[Any]]:
    """The part of a dry run that is about this profile."""
    document, current = desired.document, desired.current
    plan: dict[str, list[Any]] = {"creates": [], "deletes": [], "changes": []}
    if current is None:
        plan["creates"].append({"kind": "cluster-profile", "name": f"{document.name} {document.version}"})
    elif not desired.is_there and desired.former is not None:
        diff = content_changes(desired.former, desired.content)
        version = {"pointer": "/version", "before": current.versions[-1].number, "after": document.version}
        at = pointer(*desired.path, "spec")
        plan = {
            **diff,
            "changes": [{**entry, "pointer": at + entry["pointer"]} for entry in (version, *diff["changes"])],
        }
    return plan


def apply_profile(services: Services, desired: DesiredProfile, actor: str, request_id: str) -> dict[str, Any]:
    """Bring the profile to the document, and tell the result: made, given a version, or as it was."""
    document, profile, action = desired.document, desired.current, "unchanged"
    if profile is None:
        profile, action = _created(services, desired, actor), "created"
    elif not desired.is_there:
        action = "changed"
        profile = profiles.add_version(
            services,
            profile.id,
            profile.version,
            version=document.version,
            description=document.description,
            content=desired.content,
            actor=actor,
            rights=desired.rights,
            request_id=request_id,
        )
    return {
        "kind": PROFILE_KIND,
        "name": profile.name,
        "id": profile.id,
        "action": action,
        "warnings": [],
        "operation_id": None,
    }


def _created(services: Services, desired: DesiredProfile, actor: str) -> ClusterProfile:
    document = desired.document
    return profiles.create_profile(
        services,
        name=document.name,
        description=document.description or "",
        cloud=document.cloud or cloud_kinds.ANY_CLOUD,
        version=document.version,
        content=desired.content,
        actor=actor,
        rights=desired.rights,
        id=services.new_id(ids.CLUSTER_PROFILE),
    )
