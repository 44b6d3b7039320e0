"""Load balancers with a name that leads somewhere: a loopback address, on which a real control plane can listen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.elbv2.models import ELBv2Backend, FakeLoadBalancer


@contextmanager
def addressed_balancers(address: Callable[[], str]) -> Iterator[None]:
    """The name of a new load balancer is an address of its own, in place of a name that no resolver knows."""
    original = ELBv2Backend.create_load_balancer

    def create_load_balancer(backend: Any, *arguments: Any, **named: Any) -> FakeLoadBalancer:
        balancer = original(backend, *arguments, **named)
        balancer.dns_name = address()
        return balancer

    with patch.object(ELBv2Backend, "create_load_balancer", create_load_balancer):
        yield
