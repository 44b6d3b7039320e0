"""EC2's calls for placement groups, and the one that tells an account's default key of volumes; moto has neither."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

from moto.core import responses
from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult
from moto.core.utils import method_names_from_class
from moto.ec2.models import ec2_backends
from moto.ec2.responses import EC2Response
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, EC2_RESOURCE_TO_PREFIX, convert_tag_spec
from moto.moto_api._internal import mock_random

AWS_KEY = "alias/aws/ebs"
"""EC2's answer where the default key is its own."""


class PlacementRefusal(ServiceException):  # type: ignore[misc]
    """A call for a placement group that is refused."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def set_volume_key(account: str, region: str, arn: str) -> None:
    """Make a key the account's default one for new volumes in a region; an ARN."""
    ec2_backends[account][region].volume_key = arn


def _groups(response: Any) -> dict[str, dict[str, Any]]:
    """The placement groups of a region, by name."""
    groups: dict[str, dict[str, Any]] = response.ec2_backend.__dict__.setdefault("placement_groups", {})
    return groups


def _create(response: Any) -> ActionResult:
    groups, name = _groups(response), response._get_param("GroupName")
    if name in groups:
        raise PlacementRefusal("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    group_id = f"pg-{mock_random.get_random_hex(17)}"
    groups[name] = {
        "GroupName": name,
        "GroupId": group_id,
        "State": "available",
        "Strategy": response._get_param("Strategy", "cluster"),
    }
    own_tags = convert_tag_spec(response._get_param("TagSpecifications", []))
    response.ec2_backend.create_tags([group_id], own_tags.get("placement-group", {}))
    return ActionResult({"PlacementGroup": _document(response, groups[name])})


def _document(response: Any, group: dict[str, Any]) -> dict[str, Any]:
    carried = response.ec2_backend.tags.get(group["GroupId"]) or {}
    return {**group, "Tags": [{"Key": key, "Value": value} for key, value in carried.items()]}


def _describe(response: Any) -> ActionResult:
    groups = _groups(response)
    documents = [_document(response, group) for group in groups.values()]
    for field, named in (("GroupId", "GroupIds"), ("GroupName", "GroupNames")):
        filter_names = response._get_param(named, [])
        present = {document[field] for document in documents}
        for name in filter_names:
            if name not in present:
                raise PlacementRefusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
        documents = [document for document in documents if not filter_names or document[field] in filter_names]
    for entry in response._get_param("Filters", []):
        documents = [document for document in documents if _meets(document, entry["Name"], entry["Values"])]
    return ActionResult({"PlacementGroups": documents})


def _meets(document: dict[str, Any], name: str, values: list[str]) -> bool:
    if name.startswith("tag:"):
        return any(tag["Key"] == name[4:] and tag["Value"] in values for tag in document["Tags"])
    return str(document.get("".join(part.title() for part in name.split("-")))) in values


def _delete(response: Any) -> ActionResult:
    """Groups go by their name alone, and not while a machine stands in one."""
    groups, name = _groups(response), response._get_param("GroupName")
    if name not in groups:
        raise PlacementRefusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    for instance in response.ec2_backend.all_instances():
        if instance.state != "terminated" and getattr(instance, "placement_group", "") == name:
            text = f"The placement group {name} is in use and may not be deleted."
            raise PlacementRefusal("InvalidPlacementGroup.InUse", text)
    response.ec2_backend.tags.pop(groups.pop(name)["GroupId"], None)
    return ActionResult({})


def _default_key(response: Any) -> ActionResult:
    return ActionResult({"KmsKeyId": getattr(response.ec2_backend, "volume_key", "") or AWS_KEY})


@contextmanager
def placement_groups() -> Iterator[None]:
    """Inside this context EC2 has placement groups, and tells the default key of volumes."""
    calls = {
        "create_placement_group": _create,
        "describe_placement_groups": _describe,
        "delete_placement_group": _delete,
        "get_ebs_default_kms_key_id": _default_key,
    }
    with ExitStack() as stack:
        # Who keeps the names of moto's methods has them without these.
        stack.enter_context(patch.dict(EC2_RESOURCE_TO_PREFIX, {"placement-group": "pg"}))
        stack.enter_context(patch.dict(EC2_PREFIX_TO_RESOURCE, {"pg": "placement-group"}))
        stack.enter_context(patch.object(responses, "method_names_from_class", cache(method_names_from_class)))
        for name, call in calls.items():
            stack.enter_context(patch.object(EC2Response, name, call, create=True))
        yield
