"""The kinds of IAM. A name is the identity there; our path tells what is ours in a listing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from stockyard.errors import VendorNotFound
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds.base import Kind, TaggedThing

PATH = "/stockyard/"


def _get(calls: Calls, thing: str, name: str) -> dict[str, Any]:
    operation = {"Role": "get_role", "InstanceProfile": "get_instance_profile"}[thing]
    description: dict[str, Any] = calls.call("iam", operation, **{f"{thing}Name": name})[thing]
    return description


def _kind(kind_name: str, thing: str, remove: Callable[[Calls, str], None]) -> Kind:
    def search(calls: Calls, required_tags: Mapping[str, str], named: str | None) -> Sequence[TaggedThing]:
        # Listings leave tags out, so each one is read by its name.
        listing = () if named else calls.pages("iam", f"list_{kind_name}s", f"{thing}s", PathPrefix=PATH)
        matches = []
        for name in [named] if named else [item[f"{thing}Name"] for item in listing]:
            with suppress(VendorNotFound):
                known_tags = None if named else calls.tags_of(kind_name, name)
                carried = tags.mapping(_get(calls, thing, name).get("Tags")) if known_tags is None else known_tags
                if named or tags.carries(carried, required_tags):
                    matches.append(TaggedThing(name, carried))
        return matches

    return Kind(kind_name, search, lambda calls, name: _get(calls, thing, name), remove, repeatable=True, named=True)


def _delete_role(calls: Calls, name: str) -> None:
    for policy in list(calls.pages("iam", "list_role_policies", "PolicyNames", RoleName=name)):
        calls.call("iam", "delete_role_policy", RoleName=name, PolicyName=policy)
    # A person may have attached one to look inside a node; it would keep the role for ever.
    for attached in list(calls.pages("iam", "list_attached_role_policies", "AttachedPolicies", RoleName=name)):
        calls.call("iam", "detach_role_policy", RoleName=name, PolicyArn=attached["PolicyArn"])
    calls.call("iam", "delete_role", RoleName=name)


def _delete_profile(calls: Calls, name: str) -> None:
    for role in _get(calls, "InstanceProfile", name).get("Roles", ()):
        calls.call("iam", "remove_role_from_instance_profile", InstanceProfileName=name, RoleName=role["RoleName"])
    calls.call("iam", "delete_instance_profile", InstanceProfileName=name)


def profile_roles(calls: Calls, name: str) -> list[str]:
    """Names of the roles in a profile; none when there is no such profile."""
    with suppress(VendorNotFound):
        return [role["RoleName"] for role in _get(calls, "InstanceProfile", name).get("Roles", ())]
    return []


ROLE = _kind("role", "Role", _delete_role)
INSTANCE_PROFILE = _kind("instance_profile", "InstanceProfile", _delete_profile)
