"""EC2's calls for capacity reservations and capacity blocks, which moto does not have, and the launches into them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any
from unittest.mock import patch

from moto.core import responses
from moto.core.responses import ActionResult
from moto.core.utils import method_names_from_class
from moto.ec2.models import EC2Backend
from moto.ec2.responses import EC2Response
from moto.ec2.utils import convert_tag_spec
from moto.moto_api._internal import mock_random

from local.aws.corrections import pace
from local.aws.corrections.compute.reservations import (
    BLOCK,
    Reservation,
    ReservationRefusal,
    ReservationsBackend,
    reservation_backends,
)

PAGE = 1000


def _backend(response: Any) -> ReservationsBackend:
    backend: ReservationsBackend = reservation_backends[response.current_account][response.region]
    backend.settle()
    return backend


def _create(response: Any) -> ActionResult:
    backend, token = _backend(response), response._get_param("ClientToken")
    if token and token in backend.by_token:
        return ActionResult({"CapacityReservation": backend.document(backend.by_token[token])})
    kind = response._get_param("InstanceType")
    reservation = Reservation(
        f"cr-{mock_random.get_random_hex(17)}",
        kind,
        response._get_param("AvailabilityZone"),
        int(response._get_param("InstanceCount")),
        pace.moment(),
        _aware(response._get_param("EndDate")),
        is_open=response._get_param("InstanceMatchCriteria", "open") == "open",
        platform=response._get_param("InstancePlatform"),
    )
    backend.reservations[reservation.id] = reservation
    if token:
        backend.by_token[token] = reservation
    tags = convert_tag_spec(response._get_param("TagSpecifications", []))
    backend._ec2.create_tags([reservation.id], tags.get("capacity-reservation", {}))
    return ActionResult({"CapacityReservation": backend.document(reservation)})


def _aware(moment: datetime | None) -> datetime | None:
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)


def _describe(response: Any) -> ActionResult:
    backend = _backend(response)
    ids = response._get_param("CapacityReservationIds", [])
    reservations = [backend.named(name) for name in ids] or list(backend.reservations.values())
    filters = {entry["Name"]: entry["Values"] for entry in response._get_param("Filters", [])}
    documents = [backend.document(reservation) for reservation in reservations]
    documents = [document for document in documents if all(_meets(document, *pair) for pair in filters.items())]
    first = int(response._get_param("NextToken") or 0)
    after = first + min(int(response._get_param("MaxResults") or PAGE), PAGE)
    more = str(after) if after < len(documents) else None
    return ActionResult({"CapacityReservations": documents[first:after], "NextToken": more})


def _meets(document: Mapping[str, Any], name: str, values: Sequence[str]) -> bool:
    if name.startswith("tag:"):
        return any(tag["Key"] == name[4:] and tag["Value"] in values for tag in document["Tags"])
    if name == "tag-key":
        return any(tag["Key"] in values for tag in document["Tags"])
    return str(document.get("".join(part.title() for part in name.split("-")))) in values


def _cancel(response: Any) -> ActionResult:
    reservation = _backend(response).named(response._get_param("CapacityReservationId"))
    if reservation.is_block and reservation.state != "payment-pending":
        raise ReservationRefusal("OperationNotPermitted", "You can't cancel a Capacity Block reservation.")
    if reservation.state in {"cancelled", "expired"}:
        text = f"The Capacity Reservation is {reservation.state}."
        raise ReservationRefusal("InvalidCapacityReservationState", text)
    reservation.is_cancelled = True
    return ActionResult({"Return": True})


@contextmanager
def capacity_reservations() -> Iterator[None]:
    """Inside this context EC2 has capacity reservations, and launches that target one fit in it or are refused."""
    of_call = threading.local()
    calls = {
        "create_capacity_reservation": _create,
        "describe_capacity_reservations": _describe,
        "cancel_capacity_reservation": _cancel,
    }
    with ExitStack() as stack:
        # Who keeps the names of moto's methods has them without these.
        stack.enter_context(patch.object(responses, "method_names_from_class", cache(method_names_from_class)))
        for name, call in calls.items():
            stack.enter_context(patch.object(EC2Response, name, call, create=True))
        asking = _asking(EC2Response.run_instances, of_call)
        stack.enter_context(patch.object(EC2Response, "run_instances", asking))
        stack.enter_context(patch.object(EC2Backend, "run_instances", _placing(EC2Backend.run_instances, of_call)))
        yield


def _asking(original: Callable[[Any], Any], of_call: threading.local) -> Callable[[Any], Any]:
    def run_instances(response: Any) -> Any:
        specification = response._get_param("CapacityReservationSpecification") or {}
        market = response._get_param("InstanceMarketOptions") or {}
        of_call.target = specification, market.get("MarketType", "")
        try:
            return original(response)
        finally:
            of_call.target = {}, ""

    return run_instances


def _placing(original: Callable[..., Any], of_call: threading.local) -> Callable[..., Any]:
    def run_instances(backend: Any, image_id: str, count: int, *args: Any, **kwargs: Any) -> Any:
        specification, market = getattr(of_call, "target", ({}, ""))
        data = backend._get_template_from_args(kwargs["launch_template"]).data if kwargs.get("launch_template") else {}
        specification = specification or data.get("CapacityReservationSpecification") or {}
        market = market or (data.get("InstanceMarketOptions") or {}).get("MarketType", "")
        target = (specification.get("CapacityReservationTarget") or {}).get("CapacityReservationId")
        kind, zone = _kind_and_zone(backend, kwargs, data)
        reservations: ReservationsBackend = reservation_backends[backend.account_id][backend.region_name]
        reservation: Reservation | None = None
        if target:
            reservation = reservations.fitting(target, kind, zone, count, market)
        elif market == BLOCK:
            raise ReservationRefusal("InvalidParameterCombination", "A capacity block launch must target a block.")
        elif specification.get("CapacityReservationPreference", "open") == "open" and market != "spot":
            reservation = reservations.open_for(kind, zone, count)
        launch = original(backend, image_id, count, *args, **kwargs)
        if reservation is not None:
            for instance in launch.instances:
                if instance.id not in reservation.instance_ids:
                    reservation.instance_ids.append(instance.id)
                instance.capacity_reservation_id = reservation.id
                instance.lifecycle = BLOCK if reservation.is_block else instance.lifecycle
        return launch

    return run_instances


def _kind_and_zone(backend: Any, kwargs: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[str, str]:
    named = "" if kwargs.get("is_instance_type_default") else kwargs.get("instance_type")
    nics = kwargs.get("nics") or [{}]
    nic = next(iter(nics.values())) if isinstance(nics, dict) else nics[0]
    subnet_id = kwargs.get("subnet_id") or nic.get("SubnetId")
    zone = backend.get_subnet(subnet_id).availability_zone if subnet_id else kwargs.get("placement")
    return str(named or data.get("InstanceType") or ""), str(zone or f"{backend.region_name}a")
