"""Calls that AWS refuses and moto does not: by capacity, rate, plan, a new profile, or tags of a deleted resource."""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, BaseResponse
from moto.ec2.responses import EC2Response
from moto.iam.models import IAMBackend, get_account_id_from, iam_backends

from local.aws.corrections.rest_services import REFUSALS, ServiceRefusal
from local.aws.corrections.scarcity import InsufficientInstanceCapacity, limited, outage, shortage

THROTTLED: Mapping[str, str] = {"ec2": "RequestLimitExceeded"}
REFUSED: Mapping[str, str] = {"ec2": "UnauthorizedOperation"}
"""Service -> its error code, where it differs from the usual code."""
REST_CODES: Mapping[str, tuple[str, int]] = {
    "throttled": ("ThrottlingException", 429),
    "refused": ("AccessDeniedException", 403),
}
"""Code and status of services that moto lacks: EKS and EFS."""
REMOVAL = re.compile(r"(Delete|Detach|Disassociate|Release|Terminate)[A-Z]")
ROLE_KEYS = "ASIA"
"""The prefix of a role's access keys."""


class UnauthorizedOperation(ServiceException):  # type: ignore[misc]
    """No policy allows the call."""

    code = "UnauthorizedOperation"
    message = "You are not authorized to perform this operation."


class PlannedRefusal(ServiceException):  # type: ignore[misc]
    """A refusal from the local cloud's fault plan, with AWS's error code."""

    def __init__(self, code: str) -> None:
        super().__init__("The fault plan of the local cloud says no.")
        self.code = code


class Unsupported(ServiceException):  # type: ignore[misc]
    """The zone does not offer the type."""

    code = "Unsupported"

    def __init__(self, kind: str, zone: str) -> None:
        super().__init__(
            f"Your requested instance type ({kind}) is not supported in your requested Availability Zone ({zone})."
        )


class InvalidInstanceProfile(ServiceException):  # type: ignore[misc]
    """EC2 does not know the profile yet."""

    code = "InvalidParameterValue"

    def __init__(self, name: str) -> None:
        parameter = "parameter iamInstanceProfile.name"
        super().__init__(f"Value ({name}) for {parameter} is invalid. Invalid IAM Instance Profile name")


class UnknownThing(ServiceException):  # type: ignore[misc]
    """A launch names something that is not there."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Checked:
    """Whether launches are refused for what is not there."""

    is_on: bool = False


CHECKED = Checked()


def unknown_thing(backend: Any, image: str, subnet: str, profile: Mapping[str, Any]) -> ServiceException | None:
    """Refusal by EC2 of a launch with an image, a subnet or a profile (``Name`` or ``Arn``) that is not there; None
    where all are. Empty texts name nothing."""
    if image and image not in backend.amis:
        return UnknownThing("InvalidAMIID.NotFound", f"The image id '[{image}]' does not exist")
    if subnet and not any(subnet in by_id for by_id in backend.subnets.values()):
        return UnknownThing("InvalidSubnetID.NotFound", f"The subnet ID '{subnet}' does not exist")
    named = str(profile.get("Arn") or profile.get("Name") or "")
    profiles = iam_backends[backend.account_id]["aws"].instance_profiles.values()
    if named and not any(named in (each.arn, each.name) for each in profiles):
        return InvalidInstanceProfile(named)
    return None


@contextmanager
def known_things() -> Iterator[None]:
    """A launch is refused for an image, a subnet or a profile that is not there: RunInstances as a whole, an instant
    fleet override by override, as EC2 does. Machines of node groups are launched by EKS from images of its own."""
    original = EC2Response.run_instances

    def run_instances(response: Any) -> Any:
        interfaces = response._get_param("NetworkInterfaces", []) or [{}]
        subnet = response._get_param("SubnetId") or interfaces[0].get("SubnetId") or ""
        profile = response._get_param("IamInstanceProfile") or {}
        unknown = unknown_thing(response.ec2_backend, str(response._get_param("ImageId") or ""), str(subnet), profile)
        if unknown is not None:
            raise unknown
        return original(response)

    CHECKED.is_on = True
    try:
        with patch.object(EC2Response, "run_instances", run_instances):
            yield
    finally:
        CHECKED.is_on = False


@contextmanager
def scarce_capacity(limits: Mapping[str, int], zones_down: Collection[str] = ()) -> Iterator[None]:
    """``limits`` says how many instances of a type, or of ``type/zone``, an account's region may have. Below zero: the
    zone does not offer the type at all. ``zones_down`` have none of any to begin with."""
    original = EC2Response.run_instances

    def run_instances(response: Any) -> Any:
        kind = response._get_param("InstanceType")
        minimum = int(response._get_param("MinCount") or 1)
        zone = _zone(response)
        reason = shortage(response.ec2_backend, kind, zone, limits, minimum)
        if reason == "Unsupported":
            raise Unsupported(kind, zone)
        if reason:
            raise InsufficientInstanceCapacity
        return original(response)

    with patch.object(EC2Response, "run_instances", run_instances), limited(limits), outage(zones_down):
        yield


def _zone(response: Any) -> str:
    """The zone of the subnet that a request to run instances names; empty where it names none."""
    interfaces = response._get_param("NetworkInterfaces", []) or [{}]
    subnet = response._get_param("SubnetId") or interfaces[0].get("SubnetId")
    return str(response.ec2_backend.get_subnet(subnet).availability_zone) if subnet else ""


@contextmanager
def planned_refusals(
    throttled: Mapping[str, int], refused: Mapping[str, int], strikes: Callable[[str], bool] = lambda _account: True
) -> Iterator[None]:
    """For each call (``ec2:CreateVpc``) the first ``throttled`` ones are throttled, the next ``refused`` ones refused,
    in accounts and at times for which ``strikes(account)`` is true."""
    remaining = {"throttled": Counter(throttled), "refused": Counter(refused)}
    lock = threading.Lock()
    original = BaseResponse.call_action

    def strike(account: str, action: str) -> str | None:
        """Kind of the fault for the call; None: the call is answered."""
        with lock:
            kind = next((name for name, counts in remaining.items() if counts[action] > 0), None)
            if not strikes(account) or kind is None:
                return None
            remaining[kind][action] -= 1
            return kind

    def call_action(response: Any) -> Any:
        service = {"elbv2": "elasticloadbalancing"}.get(str(response.service_name), str(response.service_name))
        kind = strike(response.current_account, f"{service}:{response._get_action()}")
        if kind is None:
            return original(response)
        codes, usual = (THROTTLED, "Throttling") if kind == "throttled" else (REFUSED, "AccessDenied")
        code = codes.get(service, usual)
        return _answer(response, PlannedRefusal(code), 400 if kind == "throttled" else 403)

    def refusing(access_key: str, _region: str, action: str, _parameters: Mapping[str, Any]) -> None:
        kind = strike(get_account_id_from(access_key), action)
        if kind is not None:
            raise ServiceRefusal(*REST_CODES[kind], f"The call {action} is {kind} by plan")

    if not any(throttled.values()) and not any(refused.values()):
        yield
        return
    REFUSALS.append(refusing)
    try:
        with patch.object(BaseResponse, "call_action", call_action):
            yield
    finally:
        REFUSALS.remove(refusing)


@contextmanager
def gone_have_no_tags() -> Iterator[None]:
    """A role that may delete only resources with its tags is refused for a missing resource: EC2 checks tags first.

    The tenants' roles have such policies. moto answers "not found", and terminates a terminated instance again.
    """
    original = BaseResponse.call_action

    def call_action(response: Any) -> Any:
        if response.service_name != "ec2" or not REMOVAL.match(response._get_action()):
            return original(response)
        if not response.get_access_key().startswith(ROLE_KEYS):
            return original(response)
        is_ended = response._get_action() == "TerminateInstances" and _names_terminated_instance(response)
        answer = None if is_ended else original(response)
        if answer is None or "NotFound</Code>" in str(answer[-1]):
            return _answer(response, UnauthorizedOperation(), 403)
        return answer

    with patch.object(BaseResponse, "call_action", call_action):
        yield


def _names_terminated_instance(response: Any) -> bool:
    instance_ids = set(response._get_param("InstanceIds", []))
    return any(
        instance.id in instance_ids and instance.state == "terminated"
        for reservation in response.ec2_backend.reservations.values()
        for instance in reservation.instances
    )


def _answer(response: Any, refusal: ServiceException, status: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The models of IAM and load balancing have no codes for throttling.
        _, headers, body = response.serialized(ActionResult(refusal))
    headers["status"] = status
    return status, headers, body


@contextmanager
def new_profiles_unusable(seconds: Callable[[], float], now: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """EC2 does not know a new instance profile for ``seconds()``, called once for each, after its creation in IAM."""
    ready_at: dict[str, float] = {}
    create, run = IAMBackend.create_instance_profile, EC2Response.run_instances

    def create_instance_profile(backend: Any, *args: Any, **kwargs: Any) -> Any:
        role = create(backend, *args, **kwargs)
        ready_at[role.arn] = ready_at[f"{backend.account_id}/{role.name}"] = now() + seconds()
        return role

    def run_instances(response: Any) -> Any:
        profile = response._get_param("IamInstanceProfile") or {}
        name = profile.get("Arn") or f"{response.current_account}/{profile.get('Name')}"
        if ready_at.get(name, 0.0) > now():
            raise InvalidInstanceProfile(str(profile.get("Name") or name))
        return run(response)

    with (
        patch.object(IAMBackend, "create_instance_profile", create_instance_profile),
        patch.object(EC2Response, "run_instances", run_instances),
    ):
        yield
