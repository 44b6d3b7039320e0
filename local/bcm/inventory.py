"""Entities of an inventory: devices, node groups, categories and racks, with fields as public captures have them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

Entity = dict[str, Any]
PHYSICAL, HEAD = "PhysicalNode", "HeadNode"
_NAMESPACE = uuid.UUID("6f0a3c0e-3f0b-4f0e-9d1c-0f6f2c1f8a11")


def uuid_of(kind: str, name: str) -> str:
    """The uuid of a thing of that kind and name: the same each time."""
    return str(uuid.uuid5(_NAMESPACE, f"{kind}/{name}"))


def device(hostname: str, number: int = 1, *, mode_field: str = "nextInstallMode", **changes: Any) -> Entity:
    """A device: a compute node where ``changes`` say nothing else. ``mode_field`` is the name that this release has for
    the install mode of the next boot."""
    interface = {
        "baseType": "NetworkInterface",
        "childType": "NetworkPhysicalInterface",
        "uuid": uuid_of("interface", hostname),
        "name": "BOOTIF",
        "ip": f"10.141.{number // 250}.{number % 250 + 1}",
        "network": uuid_of("network", "internalnet"),
    }
    entity: Entity = {
        "uuid": uuid_of("device", hostname),
        "baseType": "Device",
        "childType": PHYSICAL,
        "revision": 1,
        "modified": False,
        "hostname": hostname,
        "mac": f"02:00:00:00:{number // 250:02x}:{number % 250:02x}",
        "category": uuid_of("category", "default"),
        "rack": uuid_of("rack", "rack-1"),
        "interfaces": [interface],
        "roles": [],
        "powerControl": "ipmi0",
        "installMode": "AUTO",
        mode_field: "",
        "finalize": "",
        "notes": "",
        "userdefined1": "",
        "userdefined2": "",
        "extra_values": {"vendor": {"tag": f"A-{number}"}},
    }
    return entity | changes


def head(hostname: str = "master", **changes: Any) -> Entity:
    """The device of a head node."""
    return device(hostname, 249, childType=HEAD, roles=[{"baseType": "Role", "childType": "HeadNodeRole"}], **changes)


def group(name: str, hostnames: Sequence[str]) -> Entity:
    """A node group."""
    return {
        "uuid": uuid_of("group", name),
        "baseType": "NodeGroup",
        "revision": 1,
        "name": name,
        "nodes": [uuid_of("device", hostname) for hostname in hostnames],
    }


def category(name: str = "default") -> Entity:
    """A category."""
    return {
        "uuid": uuid_of("category", name),
        "baseType": "Category",
        "revision": 1,
        "name": name,
        "installMode": "AUTO",
        "finalize": "",
    }


def rack(name: str = "rack-1") -> Entity:
    """A rack."""
    return {"uuid": uuid_of("rack", name), "baseType": "Rack", "revision": 1, "name": name}


def system_information(cores: int = 16, memory_gib: int = 64, gpus: int = 0, disk_gib: int = 800) -> Mapping[str, Any]:
    """Hardware of a node, as the head node knows it."""
    return {
        "baseType": "SysInfo",
        "cores": cores,
        "memory": memory_gib * 2**30,
        "disk": disk_gib * 2**30,
        "gpus": [{"name": "NVIDIA H100"} for _ in range(gpus)],
    }
