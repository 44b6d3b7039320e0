"""EC2: the network interface of a NAT gateway is deleted with the gateway. In moto it stays."""

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
