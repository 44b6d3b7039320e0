"""EC2: the network interface of a NAT gateway is deleted with the gateway, and one that comes with an instance gets the
tags that the request has for interfaces; in moto it stays, and has none. A machine's name ends with it. And what
managed services' interfaces hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.models import EC2Backend
from moto.ec2.models.instances import Instance


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


@contextmanager
def names_end_with_machines() -> Iterator[None]:
    """A terminated instance has no private DNS name any more. In moto it keeps it."""
    original = Instance.private_dns_name.fget

    def private_dns_name(instance: Any) -> str:
        return "" if instance.state == "terminated" else str(original(instance))

    with patch.object(Instance, "private_dns_name", property(private_dns_name)):
        yield


def managed_interface(ec2: Any, subnet: Any, group_ids: Sequence[str], description: str) -> str:
    """The id of a new network interface that a managed service has in a subnet of its caller, who cannot delete it."""
    interface = ec2.create_network_interface(subnet, None, None, list(group_ids), description, {})
    interface.is_managed = True
    return str(interface.id)


@contextmanager
def managed_interfaces_hold() -> Iterator[None]:
    """A subnet and a security group stay while a managed service's interface uses them."""

    def holding(original: Callable[..., Any], used: Callable[[Any, str], bool], label: str) -> Callable[..., Any]:
        def delete(backend: Any, *args: Any, **named: Any) -> Any:
            thing = str(named.get("group_id") or named.get("subnet_id") or (args[0] if args else ""))
            interfaces = [interface for interface in backend.enis.values() if getattr(interface, "is_managed", False)]
            if any(used(interface, thing) for interface in interfaces):
                raise DependencyViolationError(f"The {label} '{thing}' has dependencies and cannot be deleted.")
            return original(backend, *args, **named)

        return delete

    subnet = holding(EC2Backend.delete_subnet, lambda interface, thing: interface.subnet.id == thing, "subnet")
    group = holding(EC2Backend.delete_security_group, _is_in_group, "resource")
    with (
        patch.object(EC2Backend, "delete_subnet", subnet),
        patch.object(EC2Backend, "delete_security_group", group),
    ):
        yield


def _is_in_group(interface: Any, group_id: str) -> bool:
    return group_id in {group.id for group in interface.group_set}
