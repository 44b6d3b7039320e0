"""The kinds of IAM. A name is the identity there; our path tells what is ours in a listing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from stockyard.errors import VendorNotFound
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds import Kind, State, TaggedThing

PATH = "/stockyard/"


def _get(calls: Calls, thing: str, name: str) -> dict[str, Any] | None:
    operation = {"Role": "get_role", "InstanceProfile": "get_instance_profile"}[thing]
    try:
        description: dict[str, Any] = calls.call("iam", operation, **{f"{thing}Name": name})[thing]
    except VendorNotFound:
        return None
    return description


def _search(
    calls: Calls, thing: str, listing: tuple[str, str], required_tags: Mapping[str, str], named: str | None
) -> Sequence[TaggedThing]:
    operation, plural = listing
    # Listings leave tags out, so each one is read by its name.
    names = (
        [named] if named else [item[f"{thing}Name"] for item in calls.pages("iam", operation, plural, PathPrefix=PATH)]
    )
    matches = []
    for name in names:
        item = _get(calls, thing, name)
        carried = tags.mapping(item.get("Tags")) if item else {}
        if item and (named or tags.carries(carried, required_tags)):
            matches.append(TaggedThing(name, carried))
    return matches


def _delete_role(calls: Calls, name: str) -> None:
    with suppress(VendorNotFound):
        for policy in list(calls.pages("iam", "list_role_policies", "PolicyNames", RoleName=name)):
            calls.call("iam", "delete_role_policy", RoleName=name, PolicyName=policy)
        # A person may have attached one to look inside a node; it would keep the role for ever.
        for attached in list(calls.pages("iam", "list_attached_role_policies", "AttachedPolicies", RoleName=name)):
            calls.call("iam", "detach_role_policy", RoleName=name, PolicyArn=attached["PolicyArn"])
        calls.call("iam", "delete_role", RoleName=name)


def _delete_profile(calls: Calls, name: str) -> None:
    profile = _get(calls, "InstanceProfile", name)
    if profile is None:
        return
    with suppress(VendorNotFound):
        for role in profile.get("Roles", ()):
            calls.call("iam", "remove_role_from_instance_profile", InstanceProfileName=name, RoleName=role["RoleName"])
        calls.call("iam", "delete_instance_profile", InstanceProfileName=name)


def profile_roles(calls: Calls, name: str) -> list[str]:
    """Names of the roles in a profile; none when there is no such profile."""
    profile = _get(calls, "InstanceProfile", name) or {}
    return [role["RoleName"] for role in profile.get("Roles", ())]


ROLE = Kind(
    "role",
    lambda calls, required_tags, named: _search(calls, "Role", ("list_roles", "Roles"), required_tags, named),
    lambda calls, name: State.PRESENT if _get(calls, "Role", name) else State.ABSENT,
    _delete_role,
    repeatable=True,
)
INSTANCE_PROFILE = Kind(
    "instance_profile",
    lambda calls, required_tags, named: _search(
        calls, "InstanceProfile", ("list_instance_profiles", "InstanceProfiles"), required_tags, named
    ),
    lambda calls, name: State.PRESENT if _get(calls, "InstanceProfile", name) else State.ABSENT,
    _delete_profile,
    repeatable=True,
)
