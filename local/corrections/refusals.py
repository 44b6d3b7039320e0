"""What AWS refuses for a while and moto never does: by capacity, by rate, by a plan, and because IAM is not ready."""

from __future__ import annotations

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
        return _answer(response, codes.get(service, usual), 400 if kind == "throttled" else 403)

    if not any(throttled.values()) and not any(refused.values()):
        yield
        return
    with patch.object(BaseResponse, "call_action", call_action):
        yield


def _answer(response: Any, code: str, status: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the models of IAM and load balancing do not list codes of throttling
        _, headers, body = response.serialized(ActionResult(PlannedRefusal(code)))
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
