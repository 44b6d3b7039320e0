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
    """The id of a new network interface of a managed service in a subnet of its caller, who cannot delete the
    interface."""
    interface = ec2.create_network_interface(subnet, None, None, list(group_ids), description, {})
    interface.is_managed = True
    return str(interface.id)


@contextmanager
def dependencies_hold() -> Iterator[None]:
    """A subnet stays while it has an interface, and a security group while an interface has it or another group's rule
    names it. moto deletes both."""

    def holding(original: Callable[..., Any], used: Callable[[Any, str], bool], label: str) -> Callable[..., Any]:
        def delete(backend: Any, *args: Any, **named: Any) -> Any:
            thing = str(named.get("group_id") or named.get("subnet_id") or (args[0] if args else ""))
            if used(backend, thing):
                raise DependencyViolationError(f"The {label} '{thing}' has dependencies and cannot be deleted.")
            return original(backend, *args, **named)

        return delete

    subnet = holding(EC2Backend.delete_subnet, _has_interface, "subnet")
    group = holding(EC2Backend.delete_security_group, _is_used, "resource")
    with (
        patch.object(EC2Backend, "delete_subnet", subnet),
        patch.object(EC2Backend, "delete_security_group", group),
    ):
        yield


def _has_interface(backend: Any, subnet_id: str) -> bool:
    return any(interface.subnet.id == subnet_id for interface in _interfaces(backend))


def _is_used(backend: Any, group_id: str) -> bool:
    if any(group_id in {group.id for group in interface.group_set} for interface in _interfaces(backend)):
        return True
    other_groups = (group for groups in backend.groups.values() for group in groups.values() if group.id != group_id)
    rules = (rule for group in other_groups for rule in (*group.ingress_rules, *group.egress_rules))
    return any(rule.source_group.get("GroupId") == group_id for rule in rules)


def _interfaces(backend: Any) -> list[Any]:
    """Interfaces that are there: an interface goes with its machine."""
    machines = {machine.id: machine for machine in backend.all_instances()}
    return [
        interface
        for interface in list(backend.enis.values())
        if (machine := machines.get(getattr(interface.instance, "id", None))) is None or machine.state != "terminated"
    ]
