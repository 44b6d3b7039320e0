"""One instant fleet: what EC2 is asked for, and what its answer means.

EC2 tries all ways of one request itself, so a zone without capacity costs no further call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.domain.nodes.node_types import ANY, SPOT
from stockyard.errors import InsufficientCapacity, VendorError
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.errors import classify

MOST_WAYS = 300
"""Overrides that one call takes."""
NOT_THERE = "InvalidFleetConfiguration"
"""What CreateFleet calls a type that a zone does not offer, among other things that are wrong."""
TOO_LOW = "SpotMaxPriceTooLow"
"""What CreateFleet calls a way that costs more than its bid."""
_NOT_IN_ZONE = re.compile(r"not supported in your requested Availability Zone", re.IGNORECASE)
DIVERSIFIED = "diversified"
SPOT_STRATEGY = "price-capacity-optimized"
"""What EC2 does with spot where the document says nothing."""
_MAX_NAMES = 5


@dataclass(frozen=True, slots=True)
class Way:
    """One type in one zone. ``anywhere``: its offering names no zones, nor does the claim ask for some of them, so a
    refusal of all ways holds for every zone."""

    type: str
    zone: str
    subnet: str
    image: str
    anywhere: bool = False
    max_price: str = ""
    """The most that it may cost as spot, in USD an hour; empty: whatever it costs."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted: ``count`` machines of any of the ``ways``, the first ones if they can be had."""

    token: str
    template: str
    capacity_type: str
    ways: tuple[Way, ...]
    tags: Mapping[str, str]
    strategy: str | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class LaunchedMachine:
    """A machine that was launched."""

    machine_id: str
    type: str
    zone: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The machines that were launched; ``short`` says why they are fewer than were asked for."""

    machines: list[LaunchedMachine]
    short: InsufficientCapacity | None = None


class AboveBid(InsufficientCapacity):
    """Every way that was left costs more than its bid. Nobody else is refused for that: nothing is remembered."""


def launch(calls: Calls, request: Request) -> Answer:
    """Call for the machines; at least one comes.

    Raises ``InsufficientCapacity`` with what was refused when none came, or another ``VendorError`` leaf when that has
    other reasons.
    """
    try:
        answer = calls.call("ec2", "create_fleet", **parameters(request))
    except InsufficientCapacity as error:
        raise _without(request, [way.type for way in request.ways], error.detail, error.code) from error
    machines = [
        LaunchedMachine(str(machine), str(entry["InstanceType"]), _zone(request, entry))
        for entry in answer.get("Instances") or ()
        for machine in entry["InstanceIds"]
    ]
    if len(machines) >= request.count:
        return Answer(machines)
    reason = _reason(request, answer.get("Errors") or ())
    if not machines:
        raise reason
    # For what else it may be, the next call for those without a machine has an answer of its own.
    return Answer(machines, reason if isinstance(reason, InsufficientCapacity) else InsufficientCapacity(reason.detail))


def parameters(request: Request) -> dict[str, Any]:
    """The call's parameters: the same for the same request."""
    spot = request.capacity_type == SPOT
    overrides = [
        {"InstanceType": way.type, "SubnetId": way.subnet, "ImageId": way.image}
        | ({} if spot else {"Priority": float(place)})
        | ({"MaxPrice": way.max_price} if spot and way.max_price else {})
        for place, way in enumerate(request.ways[:MOST_WAYS])
    ]
    template = {"LaunchTemplateName": request.template, "Version": "$Default"}
    # The order is ours: an explicit cost may differ from the price that EC2 would order by.
    strategy = (request.strategy or SPOT_STRATEGY) if spot else "prioritized"
    return {
        "Type": "instant",
        "ClientToken": request.token,
        "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": template, "Overrides": overrides}],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": request.count,
            "DefaultTargetCapacityType": request.capacity_type,
        },
        "TagSpecifications": tags.specification(["fleet", "instance", "volume"], request.tags),
        "SpotOptions" if spot else "OnDemandOptions": {"AllocationStrategy": strategy},
    }


def _zone(request: Request, entry: Mapping[str, Any]) -> str:
    override = (entry.get("LaunchTemplateAndOverrides") or {}).get("Overrides") or {}
    subnet = override.get("SubnetId")
    zones = {way.subnet: way.zone for way in request.ways}
    return str(zones.get(str(subnet)) or override.get("AvailabilityZone") or "")


def _scarce(error: Mapping[str, Any]) -> bool:
    """Whether an override was refused for what EC2 has, or has not, there."""
    code, message = str(error.get("ErrorCode", "")), str(error.get("ErrorMessage", ""))
    # Others are refused there too: it has none now, or never has.
    if code == "Unsupported" or classify(code, message, 400)[0] is InsufficientCapacity:
        return True
    return code == NOT_THERE and bool(_NOT_IN_ZONE.search(message))


def _reason(request: Request, errors: Sequence[Mapping[str, Any]]) -> VendorError:
    """Why no machine came. A type that failed for a reason of the account's own is remembered as refused only when
    all did: then another zone of it was scarce all the same, and a claim that could be had in a while does not fail.
    """
    dear = [error for error in errors if str(error.get("ErrorCode")) == TOO_LOW]
    if dear and len(dear) == len(errors):
        return AboveBid(str(dear[0].get("ErrorMessage") or "the bid is below the price"), code=TOO_LOW)
    errors = [error for error in errors if error not in dear]
    scarce: dict[str, None] = {}
    failed_types: dict[str, None] = {}
    failures: list[Mapping[str, Any]] = []
    for error in errors:
        kind = str(((error.get("LaunchTemplateAndOverrides") or {}).get("Overrides") or {}).get("InstanceType", ""))
        if _scarce(error):
            scarce[kind] = None
        else:
            failed_types[kind] = None
            failures.append(error)
    refused = [kind for kind in scarce if kind not in failed_types] or list(scarce)
    if refused or not errors:
        first = next((error for error in errors if _scarce(error)), {})
        code = str(first.get("ErrorCode") or "UnfulfillableCapacity")
        names = refused if any(refused) else [way.type for way in request.ways]
        return _without(request, names, str(first.get("ErrorMessage") or "EC2 had none of the types"), code)
    code, message = str(failures[0].get("ErrorCode", "")), str(failures[0].get("ErrorMessage", ""))
    leaf, hint = classify(code, message, 400)
    return leaf(f"ec2 create_fleet: {message or code}", code=code, hint=hint)


def _without(request: Request, types: Sequence[str], message: str, code: str) -> InsufficientCapacity:
    """The error that names every way of these types."""
    refused: dict[tuple[str, str, str], None] = {}
    for way in request.ways:
        if way.type in types:
            refused[(way.type, request.capacity_type, way.zone)] = None
            if way.anywhere:
                refused[(way.type, request.capacity_type, ANY)] = None
    names = list(dict.fromkeys(way.type for way in request.ways if way.type in types))
    more = f" and {len(names) - _MAX_NAMES} more types" if len(names) > _MAX_NAMES else ""
    return InsufficientCapacity(
        f"{request.capacity_type} {', '.join(names[:_MAX_NAMES])}{more}: {message}", code=code, refused=list(refused)
    )
