"""Facts of an instance that EC2 tells besides its description: the console, with the newest output only of types that
run on Nitro, and the network nodes above it, of few types."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

from moto.core import responses
from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult
from moto.core.utils import method_names_from_class, utcnow
from moto.ec2.responses import EC2Response
from moto.ec2.utils import Base64EncodedString

OLD_FAMILIES = ("t2", "m4", "c4", "r4")
"""Families of types that run on Xen, as far as a control plane or a node may be of them."""
TOPOLOGY_FAMILIES = ("hpc", "p3dn", "p4d", "p5", "p6", "trn")
"""Beginnings of the types whose place in the network is told: EC2's guide, "Supported instance types"."""


class UnsupportedOperation(ServiceException):  # type: ignore[misc]
    """The type of the instance has no newest output."""

    code = "UnsupportedOperation"
    message = "This instance type does not support retrieving the latest console logs."


def boot_text(instance: str) -> str:
    """Text on the console of an instance after its first boot, in short: with colours and a token, as it is."""
    return (
        "\x1b[0;32m  OK  \x1b[0m] Reached target cloud-init.target\r\n"
        f"cloud-init[812]: instance-id: {instance}\r\n"
        "kubeadm join api:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:00\r\n"
        "error execution phase preflight: [ERROR CRI]: container runtime is not running\r\n"
    )


@contextmanager
def shown_consoles(text: Callable[[str], str] = boot_text) -> Iterator[None]:
    """GetConsoleOutput answers ``text`` of an instance's id; nothing where that is empty."""

    def get_console_output(response: Any) -> ActionResult:
        instance = response.ec2_backend.get_instance(response._get_param("InstanceId"))
        if response._get_param("Latest") and instance.instance_type.partition(".")[0] in OLD_FAMILIES:
            raise UnsupportedOperation
        output = text(instance.id)
        answer = {"InstanceId": instance.id, "Timestamp": utcnow()}
        return ActionResult({**answer, "Output": Base64EncodedString.from_raw_string(output)} if output else answer)

    with patch.object(EC2Response, "get_console_output", get_console_output):
        yield


@contextmanager
def told_topology() -> Iterator[None]:
    """DescribeInstanceTopology, which moto lacks: three network nodes of each instance that is named and of a type that
    has them; nothing of any other. An unknown id is refused."""

    def describe_instance_topology(response: Any) -> ActionResult:
        instances = [response.ec2_backend.get_instance(name) for name in response._get_param("InstanceIds", [])]
        placed = [instance for instance in instances if instance.instance_type.startswith(TOPOLOGY_FAMILIES)]
        return ActionResult({"Instances": [_topology(instance) for instance in placed]})

    # Who keeps the names of moto's methods has them without this one.
    names = patch.object(responses, "method_names_from_class", cache(method_names_from_class))
    with names, patch.object(EC2Response, "describe_instance_topology", describe_instance_topology, create=True):
        yield


def _topology(instance: Any) -> dict[str, Any]:
    zone = str(instance.placement.zone)
    nodes = [f"nn-{hashlib.sha256(f'{zone} {layer}'.encode()).hexdigest()[:17]}" for layer in range(3)]
    about = {"InstanceId": instance.id, "InstanceType": instance.instance_type, "AvailabilityZone": zone}
    return {**about, "NetworkNodes": nodes}
