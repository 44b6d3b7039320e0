"""The kinds of EC2: one row each, since AWS describes and deletes nearly all of them in the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.errors import classify
from stockyard.providers.clouds.aws.kinds.base import Kind, State, TaggedThing

_STATES = {
    "pending": State.PENDING,
    "failed": State.FAILED,
    "error": State.FAILED,
    "deleting": State.LEAVING,
    "shutting-down": State.LEAVING,
    "deleted": State.ABSENT,
    "terminated": State.ABSENT,
    "cancelled": State.ABSENT,
    "closed": State.ABSENT,
}


_WITHOUT_PAGES = ("Addresses", "PlacementGroups")


def _items(answer: Mapping[str, Any], plural: str) -> list[dict[str, Any]]:
    if plural == "Instances":
        return [item for group in answer.get("Reservations", ()) for item in group["Instances"]]
    return list(answer.get(plural, ()))


def state_of(item: Mapping[str, Any]) -> State:
    """The state that a described thing tells; things without one are present."""
    state = item.get("State")
    name = state.get("Name") if isinstance(state, Mapping) else state
    # AWS documents those of endpoints with capitals, and answers without.
    return _STATES.get(str(name).lower(), State.PRESENT)


def _kind(
    name: str,
    plural: str,
    describe: str,
    remove: Callable[[Calls, str], None],
    repeatable: bool = False,
    **narrow: Any,
) -> Kind:
    own_names = {"Addresses": "AllocationId", "PlacementGroups": "GroupId", "SecurityGroups": "GroupId"}
    identity = own_names.get(plural, plural[:-1] + "Id")
    ids = identity + "s"

    def search(calls: Calls, required_tags: Mapping[str, str], _name: str | None) -> Sequence[TaggedThing]:
        # The filters narrow the answer; it is checked again, because a deletion must not rest on a filter alone.
        key = "Reservations" if plural == "Instances" else plural
        page = (
            calls.call("ec2", describe, Filters=tags.filters(required_tags))[key]
            if plural in _WITHOUT_PAGES
            else list(calls.pages("ec2", describe, key, Filters=tags.filters(required_tags), **narrow))
        )
        living = (item for item in _items({key: page}, plural) if state_of(item) is not State.ABSENT)
        # Interfaces spell it otherwise.
        things = (TaggedThing(item[identity], tags.mapping(item.get("Tags") or item.get("TagSet"))) for item in living)
        return [thing for thing in things if tags.carries(thing.tags, required_tags)]

    def describe_one(calls: Calls, vendor_id: str) -> Mapping[str, Any] | None:
        parameters: dict[str, Any] = {ids: [vendor_id]}
        return next(iter(_items(calls.call("ec2", describe, **parameters), plural)), None)

    return Kind(name, search, describe_one, remove, state_of, repeatable)


def _detach_and_delete_gateway(calls: Calls, vendor_id: str) -> None:
    answer = calls.call("ec2", "describe_internet_gateways", InternetGatewayIds=[vendor_id])
    for gateway in answer["InternetGateways"]:
        for attachment in gateway.get("Attachments", ()):
            calls.call("ec2", "detach_internet_gateway", InternetGatewayId=vendor_id, VpcId=attachment["VpcId"])
    calls.call("ec2", "delete_internet_gateway", InternetGatewayId=vendor_id)


def _disassociate_and_delete_table(calls: Calls, vendor_id: str) -> None:
    for table in calls.call("ec2", "describe_route_tables", RouteTableIds=[vendor_id])["RouteTables"]:
        for association in table.get("Associations", ()):
            if not association.get("Main"):
                association_id = association["RouteTableAssociationId"]
                calls.call("ec2", "disassociate_route_table", AssociationId=association_id)
    calls.call("ec2", "delete_route_table", RouteTableId=vendor_id)


def _by(operation: str, parameter: str) -> Callable[[Calls, str], None]:
    def delete(calls: Calls, vendor_id: str) -> None:
        calls.call("ec2", operation, **{parameter: vendor_id})

    return delete


def _delete_placement_group(calls: Calls, vendor_id: str) -> None:
    """Delete a placement group, which is described by its id, and deleted by its name."""
    for group in calls.call("ec2", "describe_placement_groups", GroupIds=[vendor_id])["PlacementGroups"]:
        calls.call("ec2", "delete_placement_group", GroupName=group["GroupName"])


def _delete_endpoint(calls: Calls, vendor_id: str) -> None:
    """Delete an endpoint. EC2 takes several, and refuses each within its answer."""
    answer = calls.call("ec2", "delete_vpc_endpoints", VpcEndpointIds=[vendor_id])
    for refusal in answer.get("Unsuccessful") or ():
        error = refusal.get("Error") or {}
        code, message = str(error.get("Code") or ""), str(error.get("Message") or "")
        kind, hint = classify(code, message, 400)
        raise kind(f"ec2 delete_vpc_endpoints: {message or code}", code=code, hint=hint)


def _terminate(calls: Calls, vendor_id: str) -> None:
    calls.call("ec2", "terminate_instances", InstanceIds=[vendor_id])


def _goes_with_instance(_: Calls, __: str) -> None:
    """EC2 itself removes it with its instance."""


VPC = _kind("vpc", "Vpcs", "describe_vpcs", _by("delete_vpc", "VpcId"))
SUBNET = _kind("subnet", "Subnets", "describe_subnets", _by("delete_subnet", "SubnetId"), repeatable=True)
INTERNET_GATEWAY = _kind(
    "internet_gateway", "InternetGateways", "describe_internet_gateways", _detach_and_delete_gateway
)
ADDRESS = _kind("address", "Addresses", "describe_addresses", _by("release_address", "AllocationId"))
NAT_GATEWAY = _kind("nat_gateway", "NatGateways", "describe_nat_gateways", _by("delete_nat_gateway", "NatGatewayId"))
ROUTE_TABLE = _kind("route_table", "RouteTables", "describe_route_tables", _disassociate_and_delete_table)
SECURITY_GROUP = _kind(
    "security_group",
    "SecurityGroups",
    "describe_security_groups",
    _by("delete_security_group", "GroupId"),
    repeatable=True,
)
INSTANCE = _kind("instance", "Instances", "describe_instances", _terminate)
VOLUME = _kind("volume", "Volumes", "describe_volumes", _by("delete_volume", "VolumeId"))
NETWORK_INTERFACE = _kind("network_interface", "NetworkInterfaces", "describe_network_interfaces", _goes_with_instance)
SPOT_REQUEST = _kind("spot_request", "SpotInstanceRequests", "describe_spot_instance_requests", _goes_with_instance)
SNAPSHOT = _kind("snapshot", "Snapshots", "describe_snapshots", _by("delete_snapshot", "SnapshotId"), OwnerIds=["self"])
VPC_ENDPOINT = replace(
    _kind("vpc_endpoint", "VpcEndpoints", "describe_vpc_endpoints", _delete_endpoint),
    later=True,
)
PLACEMENT_GROUP = replace(
    _kind("placement_group", "PlacementGroups", "describe_placement_groups", _delete_placement_group, repeatable=True),
    later=True,
)
_TEMPLATE = _kind(
    "launch_template",
    "LaunchTemplates",
    "describe_launch_templates",
    _by("delete_launch_template", "LaunchTemplateId"),
    repeatable=True,
)


def _templates(calls: Calls, required_tags: Mapping[str, str], name: str | None) -> Sequence[TaggedThing]:
    if name is None:
        return _TEMPLATE.search(calls, required_tags, None)
    templates = calls.described_items("describe_launch_templates", "LaunchTemplates", LaunchTemplateNames=[name])
    return [TaggedThing(item["LaunchTemplateId"], tags.mapping(item.get("Tags"))) for item in templates]


LAUNCH_TEMPLATE = replace(_TEMPLATE, search=_templates)
"""Its name is unique in a region, so it is found by its name too."""
