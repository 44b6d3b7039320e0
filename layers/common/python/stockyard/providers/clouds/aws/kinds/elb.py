"""The kinds of load balancing. Their describe calls know no tag filter, so tags are read beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stockyard.errors import VendorNotFound
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds.base import Kind, State, TaggedThing

_BATCH = 20
"""ARNs that one DescribeTags takes."""


def with_tags(calls: Calls, arns: Sequence[str]) -> Iterator[TaggedThing]:
    """The things behind the ARNs with their tags; one that has just gone is left out."""
    for start in range(0, len(arns), _BATCH):
        batch = list(arns[start : start + _BATCH])
        try:
            answer = calls.call("elbv2", "describe_tags", ResourceArns=batch)
        except VendorNotFound:
            if len(batch) > 1:
                # One of the batch has gone and takes the others' answer with it: ask one by one.
                for arn in batch:
                    yield from with_tags(calls, [arn])
            continue
        for item in answer["TagDescriptions"]:
            yield TaggedThing(item["ResourceArn"], tags.mapping(item["Tags"]))


def _kind(name: str, plural: str, arn: str, describe: str, delete: str) -> Kind:
    def search(calls: Calls, required_tags: Mapping[str, str], named: str | None) -> Sequence[TaggedThing]:
        narrow: dict[str, Any] = {"Names": [named]} if named else {}
        try:
            arns = [item[arn] for item in calls.pages("elbv2", describe, plural, **narrow)]
        except VendorNotFound:
            return ()
        candidates = with_tags(calls, arns)
        return list(candidates) if named else [item for item in candidates if tags.carries(item.tags, required_tags)]

    def describe_one(calls: Calls, vendor_id: str) -> Mapping[str, Any] | None:
        parameters: dict[str, Any] = {arn + "s": [vendor_id]}
        return next(iter(calls.call("elbv2", describe, **parameters)[plural]), None)

    def remove(calls: Calls, vendor_id: str) -> None:
        calls.call("elbv2", delete, **{arn: vendor_id})

    return Kind(name, search, describe_one, remove, _state_of, repeatable=True, named=True)


def _state_of(item: Mapping[str, Any]) -> State:
    return State.FAILED if item.get("State", {}).get("Code") == "failed" else State.PRESENT


LOAD_BALANCER = _kind(
    "load_balancer", "LoadBalancers", "LoadBalancerArn", "describe_load_balancers", "delete_load_balancer"
)
TARGET_GROUP = _kind("target_group", "TargetGroups", "TargetGroupArn", "describe_target_groups", "delete_target_group")
