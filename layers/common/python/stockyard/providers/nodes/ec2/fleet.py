"""One instant fleet: what EC2 is asked for, and what its answer means.

EC2 tries all ways of one request itself, so a zone without capacity costs no further call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.nodes.node_types import ANY, SPOT
from stockyard.errors import InsufficientCapacity, VendorError
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.catalog import processor_quotas
from stockyard.providers.clouds.aws.errors import Scarcity, classify, scarcity

MOST_OVERRIDES = 300
"""Overrides that one call takes."""
NOT_THERE = "InvalidFleetConfiguration"
"""What CreateFleet calls a type that a zone does not offer, among other things that are wrong."""
TOO_LOW = "SpotMaxPriceTooLow"
"""What CreateFleet calls a way that costs more than its bid."""
_SUBNET = re.compile(r"subnet-[0-9A-Za-z]+")
_NOT_IN_ZONE = re.compile(r"not supported in your requested Availability Zone", re.IGNORECASE)
DIVERSIFIED = "diversified"
_PREFERENCES: Mapping[str, str] = {
    "price-capacity-optimized": "EC2 weighs the price against how likely it takes the machine back",
    "capacity-optimized": "EC2 takes the type of which it has most to spare, whatever it costs",
    DIVERSIFIED: "EC2 spreads machines over the types",
}
SPOT_STRATEGY = "price-capacity-optimized"
"""What EC2 does with spot where the document says nothing."""
_MAX_NAMES = 5


@dataclass(frozen=True, slots=True)
class Override:
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
    """Request for machines: ``count`` machines of any of the ``ways``, the first ones if they can be had."""

    token: str
    template: str
    capacity_type: str
    options: tuple[Override, ...]
    tags: Mapping[str, str]
    strategy: str | None = None
    count: int = 1
    machine_tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of the machines alone, besides ``tags``: what a controller knows them by."""


@dataclass(frozen=True, slots=True)
class LaunchedMachine:
    """A machine that was launched."""

    machine_id: str
    type: str
    zone: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The machines that were launched; ``short`` says why they are fewer than were asked for, and ``refused`` why
    types were not launched, by their names."""

    machines: list[LaunchedMachine]
    short: InsufficientCapacity | None = None
    refused: Mapping[str, str] = field(default_factory=dict)


class AboveBid(InsufficientCapacity):
    """Every way that was left costs more than its bid. Nobody else is refused for that: nothing is remembered."""


def launch(calls: Calls, request: Request) -> Answer:
    """Call for the machines; at least one comes.

    Raises ``InsufficientCapacity`` with what was refused when none came, or another ``VendorError`` leaf when that has
    other reasons.
    """
    try:
        answer = calls.call("ec2", "create_fleet", **parameters(request))
    except VendorError as error:
        if scarcity(error.code, error.detail) is None:
            raise
        raise _reason(request, [{"ErrorCode": error.code, "ErrorMessage": error.detail}]) from error
    machines = [
        LaunchedMachine(str(machine), str(entry["InstanceType"]), _zone(request, entry))
        for entry in answer.get("Instances") or ()
        for machine in entry["InstanceIds"]
    ]
    errors = answer.get("Errors") or ()
    if len(machines) >= request.count:
        return Answer(machines, refused=_refused_types(errors))
    reason = _reason(request, errors)
    if not machines:
        raise reason
    # For what else it may be, the next call for those without a machine has an answer of its own.
    short = reason if isinstance(reason, InsufficientCapacity) else InsufficientCapacity(reason.detail)
    return Answer(machines, short, _refused_types(errors))


def _refused_types(errors: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Reason of EC2 for each type that an error names."""
    return {
        str(_override(error)["InstanceType"]): f"EC2 had none: {error.get('ErrorCode') or 'no reason given'}"
        for error in errors
        if _override(error).get("InstanceType")
    }


def preference(capacity_type: str, strategy: str) -> str | None:
    """Reason why EC2 may take a type that is not the cheapest one on offer. ``strategy`` is the one of the claim or of
    the provider, empty for none. None where EC2 takes the cheapest."""
    named = strategy or (SPOT_STRATEGY if capacity_type == SPOT else "")
    return f"{_PREFERENCES[named]} ({named})" if named in _PREFERENCES else None


def parameters(request: Request) -> dict[str, Any]:
    """The call's parameters: the same for the same request."""
    spot = request.capacity_type == SPOT
    overrides = [
        {"InstanceType": option.type, "SubnetId": option.subnet, "ImageId": option.image}
        | ({} if spot else {"Priority": float(index)})
        | ({"MaxPrice": option.max_price} if spot and option.max_price else {})
        for index, option in enumerate(request.options[:MOST_OVERRIDES])
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
        # AWS does not say whether tags of one type in the template and in the call are merged: all are in the call.
        "TagSpecifications": [
            *tags.specification(["fleet", "volume"], request.tags),
            *tags.specification(["instance"], {**request.tags, **request.machine_tags}),
        ],
        "SpotOptions" if spot else "OnDemandOptions": {"AllocationStrategy": strategy},
    }


def _zone(request: Request, entry: Mapping[str, Any]) -> str:
    override = (entry.get("LaunchTemplateAndOverrides") or {}).get("Overrides") or {}
    subnet = override.get("SubnetId")
    zones = {option.subnet: option.zone for option in request.options}
    return str(zones.get(str(subnet)) or override.get("AvailabilityZone") or "")


def _scarcity(error: Mapping[str, Any]) -> Scarcity | None:
    """Scarcity for which an override was refused, and which another one may not have; None for another reason."""
    code, message = str(error.get("ErrorCode", "")), str(error.get("ErrorMessage", ""))
    # The zone never has the type.
    if code == "Unsupported" or (code == NOT_THERE and _NOT_IN_ZONE.search(message)):
        return "capacity"
    return scarcity(code, message)


@dataclass(slots=True)
class _Refusals:
    """The ways that an answer refuses: to everybody, to this account, and for a fault that nothing else mends."""

    everybody: dict[Override, None] = field(default_factory=dict)
    account: dict[Override, None] = field(default_factory=dict)
    faulty: dict[Override, None] = field(default_factory=dict)

    def add(self, request: Request, error: Mapping[str, Any]) -> None:
        """Sort in the ways that one error of the answer is about."""
        match _scarcity(error):
            case "capacity":
                self.everybody.update(dict.fromkeys(_of_type(request, error)))
            case "quota":
                self.account.update(dict.fromkeys(_of_quota(request, error)))
            case "addresses":
                self.account.update(dict.fromkeys(_of_subnet(request, error)))
            case None:
                self.faulty.update(dict.fromkeys(_of_type(request, error)))


def _override(error: Mapping[str, Any]) -> Mapping[str, Any]:
    return (error.get("LaunchTemplateAndOverrides") or {}).get("Overrides") or {}


def _of_type(request: Request, error: Mapping[str, Any]) -> list[Override]:
    """The ways of the type that an error names; all when it names none. EC2 has tried all zones before it gives up."""
    kind = str(_override(error).get("InstanceType", ""))
    return [option for option in request.options if option.type == kind] if kind else list(request.options)


def _of_quota(request: Request, error: Mapping[str, Any]) -> list[Override]:
    """The ways that count in the quota that an error names: one is used up for all the types of its family, and EC2 has
    launched none of them."""
    kind = str(_override(error).get("InstanceType", ""))
    family = processor_quotas.family(kind)
    return [
        option
        for option in request.options
        if not kind or option.type == kind or processor_quotas.family(option.type) == family
    ]


def _of_subnet(request: Request, error: Mapping[str, Any]) -> list[Override]:
    """The ways in the subnet that an error names, of all types; those of its type when it names no subnet."""
    named = {str(_override(error).get("SubnetId", ""))} | set(_SUBNET.findall(str(error.get("ErrorMessage", ""))))
    return [option for option in request.options if option.subnet in named] or _of_type(request, error)


def _reason(request: Request, errors: Sequence[Mapping[str, Any]]) -> VendorError:
    """Reason why no machine came. A way with a fault that nothing else mends is remembered as refused only when all
    have one: then another zone of it was scarce all the same, and a claim that could be had in a while does not fail.
    """
    dear = [error for error in errors if str(error.get("ErrorCode")) == TOO_LOW]
    if dear and len(dear) == len(errors):
        return AboveBid(str(dear[0].get("ErrorMessage") or "the bid is below the price"), code=TOO_LOW)
    errors = [error for error in errors if error not in dear]
    refusals = _Refusals()
    for error in errors:
        refusals.add(request, error)
    scarce = {**refusals.everybody, **refusals.account}
    refused = [option for option in request.options if option in scarce and option not in refusals.faulty] or list(
        scarce
    )
    if refused or not errors:
        first = next((error for error in errors if _scarcity(error) is not None), {})
        code = str(first.get("ErrorCode") or "UnfulfillableCapacity")
        options = refused or list(request.options)
        return _without(request, options, str(first.get("ErrorMessage") or "EC2 had none of the types"), code, refusals)
    failure = next(error for error in errors if _scarcity(error) is None)
    code, message = str(failure.get("ErrorCode", "")), str(failure.get("ErrorMessage", ""))
    leaf, hint = classify(code, message, 400)
    return leaf(f"ec2 create_fleet: {message or code}", code=code, hint=hint)


def _without(
    request: Request, options: Sequence[Override], message: str, code: str, refusals: _Refusals | None = None
) -> InsufficientCapacity:
    """The error that names these ways as refused. What holds in all zones of a type holds in those that its offering
    does not name, too."""
    own_overrides = refusals.account if refusals is not None else {}
    refused: dict[tuple[str, str, str], None] = {}
    own: dict[tuple[str, str, str], None] = {}
    for option in options:
        names = [(option.type, request.capacity_type, option.zone)]
        if option.anywhere and all(other in options for other in request.options if other.type == option.type):
            names.append((option.type, request.capacity_type, ANY))
        refused.update(dict.fromkeys(names))
        own.update(dict.fromkeys(names if option in own_overrides else ()))
    types = list(dict.fromkeys(option.type for option in options))
    more = f" and {len(types) - _MAX_NAMES} more types" if len(types) > _MAX_NAMES else ""
    hint = classify(code, message, 400)[1] if own else ""
    text = f"{request.capacity_type} {', '.join(types[:_MAX_NAMES])}{more}: {message}"
    return InsufficientCapacity(
        f"{text}. {hint}" if hint else text, code=code, hint=hint, refused=list(refused), own=list(own)
    )
