"""Cluster profiles: make, change by a new version, read, delete."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stockyard.domain.profiles.cluster_profiles import MAX_CONTENT, Content, Pack, digest, packs_of, reference, spoken
from stockyard.domain.profiles.pack_rights import MOST_FAULTS, rights_faults, secret_faults
from stockyard.domain.profiles.records import ClusterProfile, ProfilePart, ProfileUse, ProfileVersion
from stockyard.domain.records import Name, Operation
from stockyard.domain.values import ids
from stockyard.domain.values.pointers import pointer
from stockyard.domain.values.rights import ADMIN
from stockyard.errors import (
    Conflict,
    FieldProblem,
    Forbidden,
    IllegalTransition,
    InUse,
    InvalidInput,
    NotFound,
    PreconditionFailed,
    VendorError,
)
from stockyard.lifecycle.change import Transition
from stockyard.operations.engine.tell import tell
from stockyard.operations.listing import every
from stockyard.operations.quotas.limits import limit_of, refusal
from stockyard.operations.services import Services
from stockyard.ports import Add, Create, Remove, Replace, Write

PART_BYTES = 300_000
"""Of one record: below what an item may have."""
MAX_VERSIONS = 100
MAX_BYTES = 20 * 1024 * 1024
"""Of all versions of a profile together, as they are stored."""
QUOTA = "cluster_profiles"


def find_profile(services: Services, id_or_name: str) -> ClusterProfile:
    """The profile by id or name, else ``NotFound``."""
    profile_id = id_or_name
    if not id_or_name.startswith(f"{ids.CLUSTER_PROFILE}_"):
        name = services.store.get(Name, _name(id_or_name))
        profile_id = name.owner if name else ""
    profile = services.store.get(ClusterProfile, profile_id) if profile_id else None
    if profile is None:
        raise NotFound(f"There is no cluster profile {id_or_name}.")
    return profile


def version_of(profile: ClusterProfile, number: str | None) -> ProfileVersion:
    """The version of that number, without one the newest; else ``NotFound``."""
    if number is None:
        return profile.versions[-1]
    version = next((version for version in profile.versions if version.number == number), None)
    if version is None:
        latest = ", ".join(version.number for version in profile.versions[-5:])
        raise NotFound(f"The cluster profile {profile.name} has no version {number}; its latest are {latest}.")
    return version


def content_of(services: Services, profile: ClusterProfile, version: ProfileVersion) -> Content:
    """Content of a version."""
    keys = [_part(profile.id, version.number, index) for index in range(version.parts)]
    parts = {part.id: part.data for part in services.store.get_all(ProfilePart, keys)}
    if len(parts) != len(keys):
        raise NotFound(f"Version {version.number} of {profile.name} is being removed.")
    content: dict[str, Any] = json.loads(gzip.decompress(b"".join(parts[key] for key in keys)))
    return content


def complete_content(services: Services, content: Content) -> Content:
    """The content with the text of each manifest, fetched where it is named by its address, and checked as a whole.

    ``InvalidInput`` with every fault.
    """
    faults: list[FieldProblem] = []
    packs = []
    for index, pack in enumerate(content["packs"]):
        manifests = []
        for number, manifest in enumerate(pack["manifests"]):
            text, fault = _text(services, manifest)
            if fault:
                faults.append(FieldProblem(pointer("packs", index, "manifests", number, *fault[0]), fault[1]))
            manifests.append({**manifest, "content": text})
        packs.append({**pack, "manifests": manifests})
    complete = {**content, "packs": packs}
    if not faults and len(json.dumps(complete)) > MAX_CONTENT:
        faults.append(FieldProblem("/packs", f"all content together has more than {MAX_CONTENT} bytes"))
    if not faults:
        # Variables without a default stand for a word or a number, so that the rest can be read.
        samples = {
            variable["name"]: variable.get("default", {"string": "x", "number": 1, "boolean": False}[variable["type"]])
            for variable in content["variables"]
        }
        packs_here, template_faults = packs_of(complete, "", samples, {})
        faults += [FieldProblem(pointer("packs", *path), text) for path, text in template_faults]
        faults += _held_faults(complete, packs_here)
    if faults:
        raise InvalidInput.of(faults)
    return complete


def _held_faults(content: Content, packs: Sequence[Pack]) -> list[FieldProblem]:
    """Faults of packs that hold what no pack may hold, whoever chooses it: what is Stockyard's own in a cluster, and
    secret values."""
    indexes = {pack["name"]: index for index, pack in enumerate(content["packs"])}
    return [
        FieldProblem(pointer("packs", indexes[pack.name], "manifests"), f"{spoken(reference('', item))}: {text}")
        for pack in packs
        for item in pack.objects
        for text in (*rights_faults(item, ADMIN), *secret_faults(item))
    ][:MOST_FAULTS]


def _text(services: Services, manifest: dict[str, Any]) -> tuple[str, tuple[tuple[str, ...], str] | None]:
    url = manifest.get("url")
    if "content" in manifest or not url:
        return manifest["content"], None  # written out, or fetched before
    try:
        data = services.documents.fetch(url)
    except VendorError as error:
        return "", (("url",), f"could not be fetched: {error.detail}")
    actual = f"sha256:{digest(data)}"
    if actual != manifest["digest"]:
        return "", (("digest",), f"what stands there has the digest {actual}")
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return "", (("url",), "is no text")


def create_profile(
    services: Services,
    *,
    name: str,
    description: str,
    cloud: str,
    version: str,
    content: Content,
    actor: str,
    rights: str,
    id: str,
) -> ClusterProfile:
    """A new profile with its first version, of somebody who has these ``rights``, see ``pack_rights``. A second try of
    a request finds what the first one made."""
    earlier = services.store.get(ClusterProfile, id)
    if earlier is not None:
        return earlier
    check_name(services, name)
    complete = complete_content(services, content)
    profile, named, *parts = draft(
        services,
        id=id,
        name=name,
        description=description,
        cloud=cloud,
        version=version,
        content=complete,
        actor=actor,
        rights=rights,
    )
    transition = Transition("ClusterProfile", None, version, "Created", f"Cluster profile {name} was made.")
    writes = tell(services, actor, profile, transition)
    limit = limit_of(services, QUOTA)
    count = Add(f"quota/{QUOTA}", 1, limit=limit)
    try:
        services.store.commit(Create(named), count, Create(profile), *map(Create, parts), *writes)
    except Conflict as conflict:
        if conflict.index == 1:
            raise refusal(QUOTA, limit) from conflict
        raise IllegalTransition(f"There is a cluster profile called {name}.") from conflict
    return profile


def draft(
    services: Services,
    *,
    id: str,
    name: str,
    description: str,
    cloud: str,
    version: str,
    content: Content,
    actor: str,
    rights: str,
) -> tuple[ClusterProfile, Name, *tuple[ProfilePart, ...]]:
    """The records of a new profile."""
    now = services.now()
    first, parts = _version(services, id, version, content, actor, rights)
    profile = ClusterProfile(
        id=id,
        name=name,
        description=description,
        cloud=cloud,
        versions=(first,),
        created_at=now,
        updated_at=now,
        sequence=1,
    )
    return profile, Name(_name(name), id), *parts


def with_version(
    services: Services, profile: ClusterProfile, version: str, content: Content, *, actor: str, rights: str
) -> tuple[ClusterProfile, *tuple[ProfilePart, ...]]:
    """The records of a profile that has got a version. ``InvalidInput`` for one that has too much already."""
    added, parts = _version(services, profile.id, version, content, actor, rights)
    if sum(each.size for each in profile.versions) + added.size > MAX_BYTES:
        text = f"the versions of a profile have at most {MAX_BYTES // 2**20} MiB together; make another profile"
        raise InvalidInput.at("/packs", text)
    return replace(profile, versions=(*profile.versions, added)), *parts


def check_name(services: Services, name: str) -> None:
    """``IllegalTransition`` for the name of another profile."""
    if services.store.get(Name, _name(name)) is not None:
        raise IllegalTransition(f"There is a cluster profile called {name}.")


def add_version(
    services: Services,
    id_or_name: str,
    match: int,
    *,
    version: str,
    description: str | None,
    content: Content,
    actor: str,
    rights: str,
    request_id: str,
) -> ClusterProfile:
    """The profile with one more version. ``PreconditionFailed`` unless it stands at ``match``."""
    profile = find_profile(services, id_or_name)
    if profile.version != match:
        raise PreconditionFailed(f"The cluster profile is at version {profile.version}, not {match}.")
    check_version(profile, version)
    complete = complete_content(services, content)
    changed, *parts = with_version(services, profile, version, complete, actor=actor, rights=rights)
    changed = replace(
        changed,
        description=profile.description if description is None else description,
        updated_at=services.now(),
        version=profile.version + 1,
        sequence=profile.sequence + 1,
    )
    before = profile.versions[-1].number
    transition = Transition("ClusterProfile", before, version, "Changed", f"Version {version} was added.")
    audit = services.audit_record(actor, "ChangeClusterProfile", profile.id, request_id, transition.message)
    try:
        writes = [*map(Create, parts), Create(audit), *tell(services, actor, changed, transition)]
        services.store.commit(Replace(changed), *writes)
    except Conflict as conflict:
        raise PreconditionFailed("The cluster profile was changed by someone else just now.") from conflict
    return changed


def check_version(profile: ClusterProfile, number: str) -> None:
    """``InvalidInput`` for a version that the profile has already, or one too many."""
    if any(version.number == number for version in profile.versions):
        raise InvalidInput.at("/version", f"the profile has a version {number}; what it says never changes")
    if len(profile.versions) >= MAX_VERSIONS:
        raise InvalidInput.at("/version", f"a profile has at most {MAX_VERSIONS} versions")


def delete_profile(services: Services, id_or_name: str, actor: str) -> Operation:
    """Remove a profile that no cluster uses, with all its versions; ``InUse`` names the clusters. The operation is over
    when it is returned.

    Parts that do not fit into one commit go before the record: a second call takes the rest.
    """
    profile = find_profile(services, id_or_name)
    check_unused(services, profile)
    removed = replace(profile, version=profile.version + 1, sequence=profile.sequence + 1)
    transition = Transition("ClusterProfile", profile.versions[-1].number, None, "Deleted", "It was removed.")
    parts: list[Write] = [Remove(ProfilePart, part.id) for part in every(services.store, ProfilePart, f"{profile.id}/")]
    # as many as one commit takes go with the record; the rest before it
    while len(parts) > 50:
        services.store.commit(*parts[:50])
        parts = parts[50:]
    now = services.now()
    operation = Operation(
        services.new_id(ids.OPERATION),
        "delete_cluster_profile",
        profile.id,
        "succeeded",
        (),
        now,
        now,
        actor,
        profile.name,
    )
    try:
        services.store.commit(
            Remove(ClusterProfile, profile.id, version=profile.version),
            Remove(Name, _name(profile.name)),
            Add(f"quota/{QUOTA}", -1),
            *parts,
            Create(operation),
            *tell(services, actor, removed, transition),
        )
    except Conflict as conflict:
        raise IllegalTransition("The cluster profile was changed or used just now.") from conflict
    return operation


def check_may_delete(profile: ClusterProfile, rights: str) -> None:
    """``Forbidden`` for a profile with a version that an administrator has made, without an administrator's rights: a
    version of the same number could take its place, and administrators choose by name and number."""
    if rights != ADMIN and any(version.rights == ADMIN for version in profile.versions):
        raise Forbidden(f"Cluster profile {profile.name} has versions of an administrator, who alone may remove it.")


def check_unused(services: Services, profile: ClusterProfile) -> None:
    """``InUse`` with the clusters that name the profile."""
    users = [use.cluster_id for use in every(services.store, ProfileUse, f"{profile.id}/")]
    if users:
        raise InUse(f"Cluster profile {profile.name} is used by {', '.join(users)}.")


def _version(
    services: Services, profile_id: str, number: str, content: Content, actor: str, rights: str
) -> tuple[ProfileVersion, list[ProfilePart]]:
    data = gzip.compress(_text_of(content).encode(), mtime=0)
    pieces = [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]
    parts = [ProfilePart(id=_part(profile_id, number, index), data=piece) for index, piece in enumerate(pieces)]
    return ProfileVersion(number, content_digest(content), len(pieces), services.now(), actor, rights, len(data)), parts


def content_digest(content: Content) -> str:
    """The digest of a version with this complete content."""
    return f"sha256:{digest(_text_of(content))}"


def _text_of(content: Content) -> str:
    return json.dumps(content, sort_keys=True)


def _part(profile_id: str, number: str, index: int) -> str:
    return f"{profile_id}/{number}/{index:03}"


def _name(name: str) -> str:
    return f"cluster-profile/{name}"
