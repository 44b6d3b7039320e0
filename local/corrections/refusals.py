"""What AWS refuses and moto never does: by capacity, rate or plan, because IAM is not ready, or a thing is gone."""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, BaseResponse
from moto.ec2.responses import EC2Response
from moto.iam.models import IAMBackend

THROTTLED: Mapping[str, str] = {"ec2": "RequestLimitExceeded"}
REFUSED: Mapping[str, str] = {"ec2": "UnauthorizedOperation"}
"""Service -> its own code where it is not the usual one."""
ALIVE = frozenset({"pending", "running", "stopping", "stopped"})
REMOVAL = re.compile(r"(Delete|Detach|Disassociate|Release|Terminate)[A-Z]")
ROLE_KEYS = "ASIA"
"""What the keys of a role begin with."""


class UnauthorizedOperation(ServiceException):  # type: ignore[misc]
    """No policy allows it."""

    code = "UnauthorizedOperation"
    message = "You are not authorized to perform this operation."


class PlannedRefusal(ServiceException):  # type: ignore[misc]
    """What the plan of the local cloud asks for, with the code that AWS uses."""

    def __init__(self, code: str) -> None:
        super().__init__("The fault plan of the local cloud says no.")
        self.code = code


class InsufficientInstanceCapacity(ServiceException):  # type: ignore[misc]
    """The zone has no more of the type."""

    code = "InsufficientInstanceCapacity"
    message = "We currently do not have sufficient capacity in the Availability Zone you requested."


class InvalidInstanceProfile(ServiceException):  # type: ignore[misc]
    """EC2 does not know the profile yet."""

    code = "InvalidParameterValue"

    def __init__(self, name: str) -> None:
        parameter = "parameter iamInstanceProfile.name"
        super().__init__(f"Value ({name}) for {parameter} is invalid. Invalid IAM Instance Profile name")


@contextmanager
def scarce_capacity(limits: Mapping[str, int]) -> Iterator[None]:
    """Of an instance type in ``limits`` no more than that many exist in an account's region."""
    original = EC2Response.run_instances

    def run_instances(response: Any) -> Any:
        kind = response._get_param("InstanceType")
        wanted = int(response._get_param("MinCount") or 1)
        if kind in limits:
            there = sum(
                instance.instance_type == kind and instance.state in ALIVE
                for reservation in response.ec2_backend.reservations.values()
                for instance in reservation.instances
            )
            if there + wanted > limits[kind]:
                raise InsufficientInstanceCapacity
        return original(response)

    with patch.object(EC2Response, "run_instances", run_instances):
        yield


@contextmanager
def planned_refusals(
    throttled: Mapping[str, int], refused: Mapping[str, int], strikes: Callable[[str], bool] = lambda _account: True
) -> Iterator[None]:
    """Of each call (``ec2:CreateVpc``) the first so many are throttled, the next so many refused for good, where and
    while ``strikes(account)``."""
    left = {"throttled": Counter(throttled), "refused": Counter(refused)}
    lock = threading.Lock()
    original = BaseResponse.call_action

    def call_action(response: Any) -> Any:
        service = {"elbv2": "elasticloadbalancing"}.get(str(response.service_name), str(response.service_name))
        action = f"{service}:{response._get_action()}"
        with lock:
            kind = next((name for name, counts in left.items() if counts[action] > 0), None)
            if not strikes(response.current_account):
                kind = None
            if kind is not None:
                left[kind][action] -= 1
        if kind is None:
            return original(response)
        codes, usual = (THROTTLED, "Throttling") if kind == "throttled" else (REFUSED, "AccessDenied")
        code = codes.get(service, usual)
        return _answer(response, PlannedRefusal(code), 400 if kind == "throttled" else 403)

    if not any(throttled.values()) and not any(refused.values()):
        yield
        return
    with patch.object(BaseResponse, "call_action", call_action):
        yield


@contextmanager
def gone_have_no_tags() -> Iterator[None]:
    """A role that may remove only what carries its tags is refused what is gone: EC2 looks for the tags first.

    The policies of the tenants' roles are such. moto says "not found", and ends an ended instance again.
    """
    original = BaseResponse.call_action

    def call_action(response: Any) -> Any:
        if response.service_name != "ec2" or not REMOVAL.match(response._get_action()):
            return original(response)
        if not response.get_access_key().startswith(ROLE_KEYS):
            return original(response)
        ended = response._get_action() == "TerminateInstances" and _ended(response)
        answer = None if ended else original(response)
        if answer is None or "NotFound</Code>" in str(answer[-1]):
            return _answer(response, UnauthorizedOperation(), 403)
        return answer

    with patch.object(BaseResponse, "call_action", call_action):
        yield


def _ended(response: Any) -> bool:
    asked = set(response._get_param("InstanceIds", []))
    return any(
        instance.id in asked and instance.state == "terminated"
        for reservation in response.ec2_backend.reservations.values()
        for instance in reservation.instances
    )


def _answer(response: Any, refusal: ServiceException, status: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the models of IAM and load balancing do not list codes of throttling
        _, headers, body = response.serialized(ActionResult(refusal))
    headers["status"] = status
    return status, headers, body


@contextmanager
def new_profiles_unusable(seconds: Callable[[], float], now: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """An instance profile is not known to EC2 for ``seconds()`` (drawn for each) after IAM has made it."""
    ready_at: dict[str, float] = {}
    create, run = IAMBackend.create_instance_profile, EC2Response.run_instances

    def create_instance_profile(backend: Any, *args: Any, **kwargs: Any) -> Any:
        made = create(backend, *args, **kwargs)
        ready_at[made.arn] = ready_at[f"{backend.account_id}/{made.name}"] = now() + seconds()
        return made

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
