"""EC2: the network interface of a NAT gateway is deleted with the gateway, and one that comes with an instance gets the
tags that the request has for interfaces. In moto it stays, and has none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.ec2.models import EC2Backend


@contextmanager
def interfaces_go_with_gateways() -> Iterator[None]:
    """Deleting a NAT gateway also deletes its network interface."""
    original = EC2Backend.delete_nat_gateway

    def delete_nat_gateway(backend: Any, nat_gateway_id: str) -> Any:
        gateway = original(backend, nat_gateway_id)
        backend.enis.pop(gateway._eni.id, None)
        return gateway

    with patch.object(EC2Backend, "delete_nat_gateway", delete_nat_gateway):
        yield


@contextmanager
def tagged_interfaces() -> Iterator[None]:
    """A request for instances tags their network interfaces too."""
    original = EC2Backend.run_instances

    def run_instances(backend: Any, *args: Any, **kwargs: Any) -> Any:
        tags = (kwargs.get("tags") or {}).get("network-interface", {})
        reservation = original(backend, *args, **kwargs)
        for instance in reservation.instances:
            for interface in instance.nics.values():
                interface.add_tags(tags)
        return reservation

    with patch.object(EC2Backend, "run_instances", run_instances):
        yield
