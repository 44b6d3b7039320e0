"""EC2 and load balancing: client tokens and names are idempotent, and what was just made stays hidden for a while."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.exceptions import ServiceException
from moto.ec2.models import EC2Backend
from moto.ec2.responses import EC2Response
from moto.elbv2.exceptions import DuplicateLoadBalancerName, DuplicateTargetGroupName
from moto.elbv2.responses import ELBV2Response


class IdempotentParameterMismatch(ServiceException):  # type: ignore[misc]
    """The client token was used with other parameters."""

    code = "IdempotentParameterMismatch"
    message = "The client token was used with other parameters"


@contextmanager
def idempotent_calls() -> Iterator[None]:
    """The same client token (EC2) or name (load balancers, target groups) again: the same thing, or a refusal."""
    with ExitStack() as stack:
        for action in ("run_instances", "create_nat_gateway"):
            stack.enter_context(patch.object(EC2Response, action, _by_token(action, getattr(EC2Response, action))))
        for action, plural, refusal in (
            ("create_load_balancer", "load_balancers", DuplicateLoadBalancerName),
            ("create_target_group", "target_groups", DuplicateTargetGroupName),
        ):
            original = getattr(ELBV2Response, action)
            stack.enter_context(patch.object(ELBV2Response, action, _by_name(original, plural, refusal)))
        yield


def _digest(response: Any, *, without: str) -> str:
    given = {name: value for name, value in response.data.items() if name != without}
    return hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest()


def _by_token(action: str, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    seen: dict[tuple[str, ...], tuple[str, Any]] = {}
    lock = threading.RLock()

    def call(response: Any) -> Any:
        token = response._get_param("ClientToken")
        if not token:
            return original(response)
        key = (response.current_account, response.region, action, token)
        digest = _digest(response, without="ClientToken")
        with lock:
            if key not in seen:
                seen[key] = (digest, original(response))
            if seen[key][0] != digest:
                raise IdempotentParameterMismatch
            return seen[key][1]

    return call


def _by_name(original: Callable[[Any], Any], plural: str, refusal: Callable[[], Exception]) -> Callable[[Any], Any]:
    seen: dict[tuple[str, str, str], tuple[str, Any]] = {}
    lock = threading.RLock()

    def call(response: Any) -> Any:
        name = str(response._get_param("Name"))
        key = (response.current_account, response.region, name)
        digest = _digest(response, without="")
        with lock:
            alive = any(thing.name == name for thing in getattr(response.elbv2_backend, plural).values())
            if not alive:
                seen[key] = (digest, original(response))
            elif key not in seen or seen[key][0] != digest:
                raise refusal()
            return seen[key][1]

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
)
DESCRIBES = {
    "describe_vpcs": "vpc_ids",
    "describe_subnets": "subnet_ids",
    "describe_nat_gateways": "nat_gateway_ids",
    "describe_route_tables": "route_table_ids",
    "describe_security_groups": "group_ids",
    "describe_addresses": "allocation_ids",
    "describe_instances": "",
}
"""Method of moto's backend -> its parameter with ids. Internet gateways are left out: moto finds them by describing."""


@contextmanager
def hidden_at_first(seconds: Callable[[], float], now: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """What was just made is missing from a Describe by filter for ``seconds()`` (drawn for each thing) of ``now()``.

    A Describe by id, and calls that use the thing, see it: of those the product's own retries are tested elsewhere.
    moto's own looks (is this range taken, does anything use this network) see everything, as AWS's do.
    """
    asked = threading.local()
    with ExitStack() as stack:
        for name in CREATES:
            stack.enter_context(patch.object(EC2Backend, name, _marking(getattr(EC2Backend, name), seconds, now)))
        for name, ids in DESCRIBES.items():
            stack.enter_context(patch.object(EC2Response, name, _asking(getattr(EC2Response, name), asked)))
            stack.enter_context(patch.object(EC2Backend, name, _hiding(getattr(EC2Backend, name), ids, now, asked)))
        yield


def _asking(original: Callable[[Any], Any], asked: threading.local) -> Callable[[Any], Any]:
    def describe(response: Any) -> Any:
        asked.by_caller = True
        try:
            return original(response)
        finally:
            asked.by_caller = False

    return describe


def _marking(
    original: Callable[..., Any], seconds: Callable[[], float], now: Callable[[], float]
) -> Callable[..., Any]:
    def create(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        made.visible_at = now() + seconds()
        return made

    return create


def _hiding(
    original: Callable[..., Any], ids: str, now: Callable[[], float], asked: threading.local
) -> Callable[..., Any]:
    def describe(backend: Any, *args: Any, **kwargs: Any) -> Any:
        found = original(backend, *args, **kwargs)
        by_id = bool(ids and kwargs.get(ids))
        by_filter = bool(kwargs.get("filters") or (args and isinstance(args[-1], dict)))
        if by_id or not by_filter or not getattr(asked, "by_caller", False):
            return found
        moment = now()
        return [thing for thing in found if getattr(thing, "visible_at", 0.0) <= moment]

    return describe
