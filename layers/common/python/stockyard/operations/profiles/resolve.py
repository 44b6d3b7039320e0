"""From the profiles that a cluster names to the packs that are to stand in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stockyard.domain import cloud_kinds
from stockyard.domain.profiles.cluster_profiles import (
    K8S,
    MAX_OBJECTS,
    OS,
    Content,
    Pack,
    identity,
    packs_of,
    reference,
    spoken,
    variables_of,
)
from stockyard.domain.profiles.pack_rights import (
    MOST_FAULTS,
    RIGHTS,
    removal_fault,
    rights_faults,
    settled_rights,
    stored_choices,
)
from stockyard.domain.profiles.records import ClusterPacks, ClusterProfile, PackStatus, ProfileUse
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem, InvalidInput, NotFound
from stockyard.operations.profiles.profiles import content_of, find_profile, version_of
from stockyard.operations.services import Services
from stockyard.ports import Create, Remove, Replace, Write

Choice = Mapping[str, Any]
"""``name``, and what is said beside it: ``version``, ``variables``, ``pack_values``, ``pack_tags`` that packs of
``pack_values`` are taken to have, and the ``rights`` of who chooses, see ``pack_rights``."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Result of the choices of profiles. ``profiles`` has each with its id, version and effective variables."""

    profiles: tuple[dict[str, Any], ...]
    packs: tuple[Pack, ...]
    kubernetes_version: str
    """The minor that a layer k8s gives; empty without one."""


def resolve(services: Services, choices: Sequence[Choice], driver: str, current: Sequence[Choice] = ()) -> Resolved:
    """``InvalidInput`` with every fault, below ``/profiles``. ``current`` is what is chosen for the cluster now."""
    faults: list[FieldProblem] = []
    profiles: list[dict[str, Any]] = []
    packs: list[Pack] = []
    for index, choice in enumerate(choices):
        try:
            profile = find_profile(services, choice["name"])
        except NotFound as missing:
            faults.append(FieldProblem(pointer("profiles", index, "name"), missing.detail))
            continue
        try:
            version = version_of(profile, choice.get("version"))
            content = content_of(services, profile, version)
        except NotFound as missing:
            faults.append(FieldProblem(pointer("profiles", index, "version"), missing.detail))
            continue
        if any(profile.id == earlier["id"] for earlier in profiles):
            faults.append(FieldProblem(pointer("profiles", index, "name"), "is listed twice"))
            continue
        faults_here, own_packs, variables = _of_one(profile, content, choice, driver)
        faults += [FieldProblem(pointer("profiles", index, *path), text) for path, text in faults_here]
        effective = {
            "id": profile.id,
            "name": profile.name,
            "version": version.number,
            "variables": {name: variables[name] for name in choice.get("variables") or {} if name in variables},
            "pack_values": dict(choice.get("pack_values") or {}),
            "effective_variables": variables,
        }
        asked_for = {**effective, RIGHTS: choice.get(RIGHTS)}
        is_named, declared = bool(choice.get("version")), content["variables"]
        rights = settled_rights(asked_for, version.rights, declared, stored_choices(current), is_named=is_named)
        packs += [replace(pack, rights=rights) for pack in own_packs]
        profiles.append({**effective, RIGHTS: rights})
    faults += _together(packs)
    if faults:
        raise InvalidInput.of(faults)
    minor = next((pack.tag for pack in packs if pack.layer == K8S), "")
    return Resolved(tuple(profiles), tuple(packs), minor)


def _of_one(
    profile: ClusterProfile, content: Content, choice: Choice, driver: str
) -> tuple[list[tuple[tuple[str | int, ...], str]], list[Pack], dict[str, Any]]:
    faults: list[tuple[tuple[str | int, ...], str]] = []
    if profile.cloud not in cloud_kinds.profile_clouds(driver):
        faults.append((("name",), f"the profile is for {profile.cloud}, and not for clusters of the driver {driver}"))
    family = next((pack["name"] for pack in content["packs"] if pack["layer"] == OS), "")
    if family and family not in cloud_kinds.image_families(driver):
        faults.append((("name",), f"the layer os is {family}; machines of the driver {driver} have another image"))
    variables, faults_here = variables_of(content, choice.get("variables") or {})
    faults += [(("variables", *path), text) for path, text in faults_here]
    pack_values = choice.get("pack_values") or {}
    names = [pack["name"] for pack in content["packs"]]
    lacking = f"the profile has no such pack; it has {', '.join(names)}"
    faults += [(("pack_values", name), lacking) for name in pack_values if name not in names]
    tags = {pack["name"]: pack["tag"] for pack in content["packs"]}
    faults += [
        (("pack_values", name), f"is {tags[name]} in this version of the profile, not {tag}")
        for name, tag in (choice.get("pack_tags") or {}).items()
        if name in tags and tag != tags[name]
    ]
    if faults:
        return faults, [], variables
    packs, faults_here = packs_of(content, profile.name, variables, pack_values)
    faults += [(("pack_values", content["packs"][int(path[0])]["name"]), text) for path, text in faults_here]
    return faults, packs, variables


def _together(packs: Sequence[Pack]) -> list[FieldProblem]:
    """Faults of the packs of all profiles together."""
    lines = [reference(pack.key, item) for pack in packs for item in pack.objects]
    things = [identity(line) for line in lines]
    things_before: set[str] = set()
    faults = []
    for line, thing in zip(lines, things, strict=True):
        if thing in things_before:
            faults.append(FieldProblem("/profiles", f"{spoken(line)} is in two packs"))
        things_before.add(thing)
    if len(lines) > MAX_OBJECTS:
        faults.append(FieldProblem("/profiles", f"all packs together have more than {MAX_OBJECTS} objects"))
    if len({pack.tag for pack in packs if pack.layer == K8S}) > 1:
        faults.append(FieldProblem("/profiles", "two profiles have different layers k8s"))
    return faults


def check_rights(resolved: Resolved) -> None:
    """``InvalidInput`` with the objects that packs may not hold with the rights of who has chosen them."""
    names = [profile["name"] for profile in resolved.profiles]
    faults = [
        FieldProblem(
            pointer("profiles", names.index(pack.profile)),
            f"pack {pack.name}: {spoken(reference('', item))}: {text}",
        )
        for pack in resolved.packs
        for item in pack.objects
        for text in rights_faults(item, pack.rights)
    ]
    if faults:
        raise InvalidInput.of(faults[:MOST_FAULTS])


def check_removal(record: ClusterPacks, after: Resolved, rights: str) -> None:
    """``InvalidInput`` with what stands in the cluster, would go with its profile, and is not for these rights."""
    profile_names = {profile["name"] for profile in after.profiles}
    things = {identity(reference(pack.key, item)) for pack in after.packs for item in pack.objects}
    faults = []
    for line in record.objects:
        key, api_version, kind, namespace, _ = line.split("|", 4)
        if key.partition("/")[0] not in profile_names and identity(line) not in things:
            text = removal_fault(kind, api_version, namespace, rights)
            faults += [FieldProblem("/profiles", f"{spoken(line)} would be removed: {text}")] if text else []
    if faults:
        raise InvalidInput.of(faults[:MOST_FAULTS])


def statuses(packs: Sequence[Pack]) -> tuple[PackStatus, ...]:
    """The status of each pack before it is applied."""
    return tuple(PackStatus(pack.profile, pack.layer, pack.name, pack.tag) for pack in packs)


def uses(services: Services, cluster_id: str, before: Sequence[Choice], after: Sequence[Choice]) -> list[Write]:
    """Writes that record which profiles a cluster names. A profile that comes to be used gets a new version of its
    record, so that a deletion at the same moment notices."""
    earlier, later = {profile["id"] for profile in before}, {profile["id"] for profile in after}
    writes: list[Write] = [Remove(ProfileUse, f"{profile}/{cluster_id}") for profile in sorted(earlier - later)]
    for profile_id in sorted(later - earlier):
        profile = find_profile(services, profile_id)
        writes.append(Replace(replace(profile, version=profile.version + 1)))
        writes.append(Create(ProfileUse(f"{profile_id}/{cluster_id}", cluster_id=cluster_id)))
    return writes


def removal_writes(services: Services, cluster_id: str) -> list[Write]:
    """Writes that go with the removal of a cluster's record: what is known of its packs, and that it used their
    profiles."""
    record = services.store.get(ClusterPacks, cluster_id)
    if record is None:
        return []
    return [Remove(ClusterPacks, cluster_id), *uses(services, cluster_id, record.profiles, ())]
