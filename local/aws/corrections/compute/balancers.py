"""Load balancers with a name that leads somewhere: a loopback address, on which a real control plane can listen. And
with as many tags as AWS takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.elbv2.exceptions import TooManyTagsError
from moto.elbv2.models import ELBv2Backend, FakeLoadBalancer

MOST_TAGS = 50
"""Of a resource of load balancing. moto takes ten."""


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


@contextmanager
def fifty_tags() -> Iterator[None]:
    """A load balancer or target group takes fifty tags."""

    def add_tags(backend: Any, resource_arns: list[str], tags: list[dict[str, str]]) -> None:
        for arn in resource_arns:
            backend._get_resource_by_arn(arn)
            carried = backend.tagging_service.get_tag_dict_for_resource(arn)
            if len({*carried, *(tag["Key"] for tag in tags)}) > MOST_TAGS:
                raise TooManyTagsError
            backend.tagging_service.tag_resource(arn, tags)

    with patch.object(ELBv2Backend, "add_tags", add_tags):
        yield
