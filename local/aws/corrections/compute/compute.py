"""EC2 and load balancing: client tokens and names are idempotent, new resources stay hidden for a while, and an instant
fleet takes the first override with capacity."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult
from moto.ec2.models import EC2Backend
from moto.ec2.responses import EC2Response
from moto.ec2.utils import convert_tag_spec, random_fleet_id
from moto.elbv2.exceptions import DuplicateLoadBalancerName, DuplicateTargetGroupName
from moto.elbv2.responses import ELBV2Response

from local.aws.corrections.compute.key_pairs import UnknownKeyPair
from local.aws.corrections.compute.reservations import ReservationRefusal
from local.aws.corrections.compute.spot_prices import market_price
from local.aws.corrections.refusals import CHECKED, unknown_thing
from local.aws.corrections.scarcity import OUTAGE, InsufficientInstanceCapacity, limited, zones_of


class IdempotentParameterMismatch(ServiceException):  # type: ignore[misc]
    """The client token was used with other parameters."""

    code = "IdempotentParameterMismatch"
    message = "The client token was used with other parameters"


@contextmanager
def idempotent_calls() -> Iterator[None]:
    """A repeated client token (EC2) or name (load balancers, target groups) gives the same resource, or a refusal."""
    with ExitStack() as stack:
        for action in ("run_instances", "create_nat_gateway", "create_volume"):
            stack.enter_context(patch.object(EC2Response, action, _by_token(action, getattr(EC2Response, action))))
        for action, plural, refusal in (
            ("create_load_balancer", "load_balancers", DuplicateLoadBalancerName),
            ("create_target_group", "target_groups", DuplicateTargetGroupName),
        ):
            original = getattr(ELBV2Response, action)
            stack.enter_context(patch.object(ELBV2Response, action, _by_name(original, plural, refusal)))
        yield


def _digest(response: Any, *, without: str) -> str:
    parameters = {name: value for name, value in response.data.items() if name != without}
    return hashlib.sha256(json.dumps(parameters, sort_keys=True, default=str).encode()).hexdigest()


def _by_token(action: str, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    earlier_calls: dict[tuple[str, ...], tuple[str, Any]] = {}
    lock = threading.RLock()

    def call(response: Any) -> Any:
        token = response._get_param("ClientToken")
        if not token:
            return original(response)
        key = (response.current_account, response.region, action, token)
        digest = _digest(response, without="ClientToken")
        with lock:
            if key not in earlier_calls:
                earlier_calls[key] = (digest, original(response))
            if earlier_calls[key][0] != digest:
                raise IdempotentParameterMismatch
            return earlier_calls[key][1]

    return call


def _by_name(original: Callable[[Any], Any], plural: str, refusal: Callable[[], Exception]) -> Callable[[Any], Any]:
    earlier_calls: dict[tuple[str, str, str], tuple[str, Any]] = {}
    lock = threading.RLock()

    def call(response: Any) -> Any:
        name = str(response._get_param("Name"))
        key = (response.current_account, response.region, name)
        digest = _digest(response, without="")
        with lock:
            alive = any(thing.name == name for thing in getattr(response.elbv2_backend, plural).values())
            if not alive:
                earlier_calls[key] = (digest, original(response))
            elif key not in earlier_calls or earlier_calls[key][0] != digest:
                raise refusal()
            return earlier_calls[key][1]

    return call


CREATES = (
    "create_vpc",
    "create_subnet",
    "create_internet_gateway",
    "create_nat_gateway",
    "create_route_table",
    "create_security_group",
    "allocate_address",
    "run_instances",
    "create_launch_template",
    "create_volume",
    "create_vpc_endpoint",
)
DESCRIBES = {
    "describe_vpcs": "vpc_ids",
    "describe_subnets": "subnet_ids",
    "describe_nat_gateways": "nat_gateway_ids",
    "describe_route_tables": "route_table_ids",
    "describe_security_groups": "group_ids",
    "describe_addresses": "allocation_ids",
    "describe_instances": "",
    "describe_launch_templates": "template_names",
    "describe_volumes": "volume_ids",
    "describe_vpc_endpoints": "vpc_end_point_ids",
}
"""Method of moto's backend -> its parameter with ids. Internet gateways are left out: moto finds them by describing."""


@contextmanager
def hidden_at_first(seconds: Callable[[], float], now: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """A new resource is missing from a Describe by filter for ``seconds()``, called once each, by the clock ``now``.

    A Describe by id and calls that use the resource see it; the product's retries for those are tested elsewhere.
    moto's own checks (is this range in use, does anything use this network) see everything, as those of AWS do.
    """
    call_context = threading.local()
    with ExitStack() as stack:
        for name in CREATES:
            stack.enter_context(patch.object(EC2Backend, name, _marking(getattr(EC2Backend, name), seconds, now)))
        for name, ids in DESCRIBES.items():
            stack.enter_context(patch.object(EC2Response, name, _asking(getattr(EC2Response, name), call_context)))
            stack.enter_context(
                patch.object(EC2Backend, name, _hiding(getattr(EC2Backend, name), ids, now, call_context))
            )
        yield


def _asking(original: Callable[[Any], Any], call_context: threading.local) -> Callable[[Any], Any]:
    def describe(response: Any) -> Any:
        call_context.by_caller = True
        try:
            return original(response)
        finally:
            call_context.by_caller = False

    return describe


def _marking(
    original: Callable[..., Any], seconds: Callable[[], float], now: Callable[[], float]
) -> Callable[..., Any]:
    def create(*args: Any, **kwargs: Any) -> Any:
        resource = original(*args, **kwargs)
        resource.visible_at = now() + seconds()
        return resource

    return create


def _hiding(
    original: Callable[..., Any], ids: str, now: Callable[[], float], call_context: threading.local
) -> Callable[..., Any]:
    def describe(backend: Any, *args: Any, **kwargs: Any) -> Any:
        resources = original(backend, *args, **kwargs)
        by_id = bool(ids and kwargs.get(ids))
        by_filter = bool(kwargs.get("filters") or (args and isinstance(args[-1], dict)))
        if by_id or not by_filter or not getattr(call_context, "by_caller", False):
            return resources
        moment = now()
        return [thing for thing in resources if getattr(thing, "visible_at", 0.0) <= moment]

    return describe


TAGGED = ("instance", "volume", "network-interface")
"""What a fleet or its launch template tags of an instance."""
TOO_LOW = "SpotMaxPriceTooLow"
LAST = float("inf")
"""The priority of an override without one."""
BY_PRICE = ("lowest-price", "price-capacity-optimized")
"""The strategies of spot that go by price."""


class InvalidTagKey(ServiceException):  # type: ignore[misc]
    """Tags that the metadata service shows have no slash in their key."""

    code = "InvalidParameterValue"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"'{key}' is not a valid tag key. Tag keys must match pattern ([0-9a-zA-Z\\-_+=,.@:]{{1,255}})"
        )


@contextmanager
def instant_fleets(limits: Mapping[str, int]) -> Iterator[None]:
    """CreateFleet of type instant takes the first overrides with capacity: by priority, or of spot by price, where the
    strategy goes by it (each has as much room as any other here). A full override is an error in the answer. ``limits``
    says how many instances of a type, or of ``type/zone``, an account's region may have.

    The instances follow the launch template and the fleet's tags. A repeated client token gives the same answer.
    """
    original = EC2Response.create_fleet

    def create_fleet(response: Any) -> Any:
        if response._get_param("Type") != "instant":
            return original(response)
        return ActionResult(_Fleet(response, limits).answer())

    with patch.object(EC2Response, "create_fleet", _by_token("create_fleet", create_fleet)), limited(limits):
        yield


class _Fleet:
    """One call of CreateFleet."""

    def __init__(self, response: Any, limits: Mapping[str, int]) -> None:
        self._response, self._limits = response, limits
        self._backend = response.ec2_backend
        self._asked = response._get_param("TargetCapacitySpecification", {})
        self._kind = str(self._asked.get("DefaultTargetCapacityType") or "on-demand")
        self._tags = convert_tag_spec(response._get_param("TagSpecifications", []))

    def answer(self) -> dict[str, Any]:
        remaining = int(self._asked["TotalTargetCapacity"])
        instances: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        for specification, override in self._overrides():
            template_override = {"LaunchTemplateSpecification": specification, "Overrides": override}
            entry = {"LaunchTemplateAndOverrides": template_override, "Lifecycle": self._kind}
            ids: list[str] = []
            refusal: ServiceException = InsufficientInstanceCapacity()
            unknown = self._unknown(specification, override) if remaining else None
            if unknown is not None:
                errors.append({**entry, "ErrorCode": unknown.code, "ErrorMessage": unknown.message})
                continue
            if remaining and self._above(override):
                errors.append({**entry, "ErrorCode": TOO_LOW, "ErrorMessage": "Your Spot request price is too low."})
                continue
            while remaining and not self._full(override):
                try:
                    ids.append(self._run(specification, override))
                except (ReservationRefusal, UnknownKeyPair) as error:
                    refusal = error
                    break
                remaining -= 1
            if ids:
                instances.append({**entry, "InstanceIds": ids, "InstanceType": override["InstanceType"]})
            if not remaining:
                break
            errors.append({**entry, "ErrorCode": refusal.code, "ErrorMessage": refusal.message})
        return {"FleetId": random_fleet_id(), "Instances": instances, "Errors": errors}

    def _unknown(self, specification: Mapping[str, Any], override: Mapping[str, Any]) -> ServiceException | None:
        """Error for a thing that the way names and that is not there; None where all is, or where nobody looks."""
        if not CHECKED.is_on:
            return None
        data = self._backend.get_launch_template_by_name(specification["LaunchTemplateName"]).default_version().data
        image, profile = override.get("ImageId") or data["ImageId"], data.get("IamInstanceProfile") or {}
        return unknown_thing(self._backend, str(image), str(override["SubnetId"]), profile)

    def _overrides(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        overrides = [
            (config["LaunchTemplateSpecification"], override)
            for config in self._response._get_param("LaunchTemplateConfigs", [])
            for override in config.get("Overrides") or [{}]
        ]
        if self._kind == "spot" and self._response._get_param("SpotOptions", {}).get("AllocationStrategy") in BY_PRICE:
            return sorted(overrides, key=lambda pair: self._price(pair[1]) or LAST)
        return sorted(overrides, key=lambda pair: float(pair[1].get("Priority", LAST)))

    def _zone(self, override: Mapping[str, Any]) -> str:
        return str(self._backend.get_subnet(override["SubnetId"]).availability_zone)

    def _price(self, override: Mapping[str, Any]) -> float | None:
        """Spot price of the override now."""
        subnet = self._backend.get_subnet(override["SubnetId"])
        zone_names = (str(subnet.availability_zone), str(subnet.availability_zone_id))
        return market_price(override["InstanceType"], *zone_names, datetime.now(UTC))

    def _above(self, override: Mapping[str, Any]) -> bool:
        """Whether spot costs more there than the request would pay."""
        limit = override.get("MaxPrice")
        price = self._price(override) if self._kind == "spot" and limit is not None else None
        return limit is not None and price is not None and price > float(limit)

    def _full(self, override: Mapping[str, Any]) -> bool:
        kind, zone = override["InstanceType"], self._zone(override)
        if zone in OUTAGE.zones:
            return True
        there = zones_of(self._backend, kind)
        counts = {kind: len(there), f"{kind}/{zone}": there.count(zone)}
        return any(counts[name] >= self._limits[name] for name in counts if name in self._limits)

    def _run(self, specification: Mapping[str, Any], override: Mapping[str, Any]) -> str:
        data = self._backend.get_launch_template_by_name(specification["LaunchTemplateName"]).default_version().data
        options = data.get("MetadataOptions", {})
        of_template = convert_tag_spec(data.get("TagSpecifications", []))
        tags = {kind: {**of_template.get(kind, {}), **self._tags.get(kind, {})} for kind in TAGGED}
        slashed = sorted(key for key in tags["instance"] if "/" in key)
        if slashed and options.get("InstanceMetadataTags") == "enabled":
            raise InvalidTagKey(slashed[0])
        reservation = self._backend.run_instances(
            override.get("ImageId") or data["ImageId"],
            1,
            None,
            [],
            instance_type=override["InstanceType"],
            is_instance_type_default=False,
            region_name=self._response.region,
            subnet_id=override["SubnetId"],
            tags=tags,
            launch_template=specification,
            # Otherwise moto creates a second disk besides that of the template.
            block_device_mappings=data.get("BlockDeviceMappings", []),
            metadata_options=options,
            key_name=data.get("KeyName"),
            instance_market_options="spot" if self._kind == "spot" else {},
            client_token=self._response._get_param("ClientToken"),
        )
        machine = str(reservation.instances[0].id)
        for interface in reservation.instances[0].nics.values():
            interface.delete_on_termination = True  # AWS sets this; with moto's value the interface would stay.
        profile = data.get("IamInstanceProfile", {}).get("Name")
        if profile:
            self._backend.associate_iam_instance_profile(instance_id=machine, iam_instance_profile_name=profile)
        return machine
