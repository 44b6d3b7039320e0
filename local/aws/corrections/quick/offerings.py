"""EC2's offerings of one instance type, looked up: moto compares all 6,800 of a region with the filters, for 80 ms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, InstanceTypeOfferingBackend


@contextmanager
def quick_offerings() -> Iterator[None]:
    """While it is open, who asks for the places of one type waits no longer than for other answers."""
    quick = _looked_up(InstanceTypeOfferingBackend.describe_instance_type_offerings)
    with patch.object(InstanceTypeOfferingBackend, "describe_instance_type_offerings", quick):
        yield


@cache
def _by_type(location_type: str, region: str) -> dict[str, list[Any]]:
    types: dict[str, list[Any]] = {}
    for offering in INSTANCE_TYPE_OFFERINGS[location_type].get(region, []):
        types.setdefault(offering["InstanceType"], []).append(offering)
    return types


def _looked_up(original: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    def describe(backend: Any, location_type: str | None = None, filters: dict[str, Any] | None = None) -> list[Any]:
        names = (filters or {}).get("instance-type", ())
        if len(names) != 1:
            return original(backend, location_type, filters)
        kind = location_type or "region"
        offerings = _by_type(kind, backend.region_name).get(names[0], [])
        return [offering for offering in offerings if backend.matches_filters(offering, filters, kind)]

    return describe
