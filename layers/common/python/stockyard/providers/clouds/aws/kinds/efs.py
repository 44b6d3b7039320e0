"""The kinds of EFS: file systems, and their mount targets, which take no tags and are known by their file system's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from stockyard.errors import VendorNotFound
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds.base import Kind, State, TaggedThing
from stockyard.providers.clouds.aws.kinds.eks import of_parent

_STATES = {
    "creating": State.PENDING,
    "error": State.FAILED,
    "deleting": State.LEAVING,
    "deleted": State.ABSENT,
}


def state_of(item: Mapping[str, Any]) -> State:
    """The state that EFS tells."""
    return _STATES.get(str(item.get("LifeCycleState")), State.PRESENT)


def _file_systems(calls: Calls, required_tags: Mapping[str, str], _name: str | None) -> Sequence[TaggedThing]:
    items = calls.once("file systems", lambda: calls.pages("efs", "describe_file_systems", "FileSystems"))
    living = (item for item in items if state_of(item) is not State.ABSENT)
    things = (TaggedThing(item["FileSystemId"], tags.mapping(item.get("Tags"))) for item in living)
    return [thing for thing in things if tags.carries(thing.tags, required_tags)]


def _file_system(calls: Calls, vendor_id: str) -> Mapping[str, Any] | None:
    systems = calls.call("efs", "describe_file_systems", FileSystemId=vendor_id)["FileSystems"]
    return next(iter(systems), None)


def _delete_file_system(calls: Calls, vendor_id: str) -> None:
    calls.call("efs", "delete_file_system", FileSystemId=vendor_id)


def targets(calls: Calls, file_system: str) -> list[dict[str, Any]]:
    """The mount targets of a file system; none when it is gone."""
    with suppress(VendorNotFound):
        return list(calls.call("efs", "describe_mount_targets", FileSystemId=file_system)["MountTargets"])
    return []


def _mount_targets(calls: Calls, required_tags: Mapping[str, str], _name: str | None) -> Sequence[TaggedThing]:
    things = []
    for system in _file_systems(calls, of_parent(required_tags), None):
        if calls.rests(system.tags.get(tags.RESOURCE, "")):
            continue
        for item in targets(calls, system.vendor_id):
            if state_of(item) is not State.ABSENT:
                # One a zone, so that the zone tells which line of the ledger it is of.
                marks = {**system.tags, tags.KEY: f"mount_target/{item['AvailabilityZoneName']}"}
                things.append(TaggedThing(item["MountTargetId"], marks))
    return [thing for thing in things if tags.carries(thing.tags, required_tags)]


def _mount_target(calls: Calls, vendor_id: str) -> Mapping[str, Any] | None:
    items = calls.call("efs", "describe_mount_targets", MountTargetId=vendor_id)["MountTargets"]
    return next(iter(items), None)


def _delete_mount_target(calls: Calls, vendor_id: str) -> None:
    calls.call("efs", "delete_mount_target", MountTargetId=vendor_id)


FILE_SYSTEM = Kind(
    "file_system", _file_systems, _file_system, _delete_file_system, state_of, repeatable=True, later=True
)
"""Its creation token makes it one, however often it is asked for."""
MOUNT_TARGET = Kind(
    "mount_target", _mount_targets, _mount_target, _delete_mount_target, state_of, repeatable=True, later=True
)
