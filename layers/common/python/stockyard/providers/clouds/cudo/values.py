"""Answers of Cudo's API, as values. Numbers may come as text, prices do; what is unknown is never guessed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from stockyard.errors import VendorRefused

ID = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
"""What Cudo takes as an id."""
PENDING, READY, STOPPED, FAILED, ABSENT = "pending", "ready", "stopped", "failed", "gone"
_VM_STATES = {"ACTIVE": READY, "STOPPED": STOPPED, "SUSPENDED": STOPPED, "FAILED": FAILED, "DELETED": ABSENT}
_NETWORK_STATES = {"ACTIVE": READY, "STOPPED": STOPPED, "FAILED": FAILED, "DELETED": ABSENT}
_DISK_STATES = {"READY": READY, "ATTACHED": READY, "FAILED": FAILED, "DISABLED": FAILED}


@dataclass(frozen=True, slots=True)
class MachineType:
    """A kind of machine in a data center. Prices are USD an hour; ``free`` figures are those of one machine."""

    name: str
    data_center: str
    cpu_model: str
    gpu_model: str
    gpu_model_id: str
    min_vcpu: float
    min_memory_gib: float
    memory_gib_per_vcpu: tuple[float, float]
    """The least and the most GiB for each vCPU; 0 for no bound."""
    vcpu_per_gpu: tuple[float, float]
    max_vcpu_free: int
    max_memory_gib_free: int
    max_gpu_free: int
    max_storage_gib_free: int
    vcpu_price: Decimal
    memory_gib_price: Decimal
    gpu_price: Decimal
    storage_gib_price: Decimal
    ipv4_price: Decimal


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk. ``state`` is ``pending``, ``ready`` or ``failed``."""

    id: str
    data_center: str
    size_gib: int
    state: str
    vm_id: str = ""
    is_storage: bool = True


@dataclass(frozen=True, slots=True)
class Vm:
    """A machine. ``state`` is ``pending``, ``ready``, ``stopped``, ``failed`` or ``gone``."""

    id: str
    data_center: str
    machine_type: str
    state: str
    vcpus: int
    memory_gib: int
    gpus: int
    public_address: str = ""
    private_address: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    disks: Sequence[Disk] = ()
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class DataCenter:
    """A data center with the addresses that are free in it, and what a network costs there, in USD an hour; None where
    Cudo does not say."""

    id: str
    ipv4_free: int
    network_price: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Network:
    """A private network of a data center. ``state`` is as a machine's; ``cidr`` is the range of its addresses."""

    id: str
    data_center: str
    cidr: str
    state: str


EVERYWHERE = "0.0.0.0/0"
UDP = "PROTOCOL_UDP"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a security group: these ports (``6443``, ``1-65535``) of TCP, or of another protocol, from these
    addresses."""

    ports: str
    cidr: str
    inbound: bool = True
    protocol: str = "PROTOCOL_TCP"

    def document(self) -> dict[str, str]:
        """As Cudo takes it."""
        kind = "RULE_TYPE_INBOUND" if self.inbound else "RULE_TYPE_OUTBOUND"
        ports = {"ports": self.ports} if self.ports else {}
        return {"protocol": self.protocol, "ruleType": kind, "ipRangeCidr": self.cidr, **ports}


@dataclass(frozen=True, slots=True)
class SecurityGroup:
    """A security group with its rules, in no order."""

    id: str
    data_center: str
    description: str
    rules: frozenset[Rule]


@dataclass(frozen=True, slots=True)
class NewVm:
    """A machine to make. ``ttl_seconds``: Cudo ends it by itself then; None: never.

    ``start_script`` runs at the first boot, as root. Without ``security_groups`` Cudo would let everything in. The one
    interface of the machine has an address of ``network``, if there is one, and a public address.
    """

    id: str
    data_center: str
    machine_type: str
    vcpus: int
    memory_gib: int
    boot_disk_gib: int
    image: str
    start_script: str = field(repr=False)
    metadata: Mapping[str, str]
    security_groups: Sequence[str]
    gpus: int = 0
    network: str = ""
    storage_disks: Sequence[str] = ()
    ssh_keys: Sequence[str] = ()
    ttl_seconds: int | None = None

    def document(self) -> dict[str, Any]:
        """As Cudo takes it."""
        ttl = {} if self.ttl_seconds is None else {"ttl": f"{self.ttl_seconds}s"}
        network = {"networkId": self.network} if self.network else {}
        return {
            "vmId": self.id,
            "dataCenterId": self.data_center,
            "machineType": self.machine_type,
            "vcpus": self.vcpus,
            "memoryGib": self.memory_gib,
            "gpus": self.gpus,
            "bootDiskImageId": self.image,
            "bootDiskSizeGib": self.boot_disk_gib,
            "storageDiskIds": list(self.storage_disks),
            "nics": [{**network, "assignPublicIp": True, "securityGroupIds": list(self.security_groups)}],
            "customSshKeys": list(self.ssh_keys),
            # The keys of the project's people are theirs, not this machine's.
            "sshKeySource": "SSH_KEY_SOURCE_NONE",
            "startScript": self.start_script,
            "metadata": dict(self.metadata),
            **ttl,
        }


# --- reading ----------------------------------------------------------------------------------------------------------


def machine_type(document: Mapping[str, Any]) -> MachineType:
    """A type as Cudo lists it. Raises ``VendorRefused`` for what it cannot be."""
    most, least = number(document, "maxVcpuPerMemoryGib"), number(document, "minVcpuPerMemoryGib")
    return MachineType(
        name=text(document, "machineType"),
        data_center=text(document, "dataCenterId"),
        cpu_model=text(document, "cpuModel"),
        gpu_model=text(document, "gpuModel"),
        gpu_model_id=text(document, "gpuModelId"),
        min_vcpu=number(document, "minVcpu"),
        min_memory_gib=number(document, "minMemoryGib"),
        memory_gib_per_vcpu=(1 / most if most else 0.0, 1 / least if least else 0.0),
        vcpu_per_gpu=(number(document, "minVcpuPerGpu"), number(document, "maxVcpuPerGpu")),
        max_vcpu_free=whole(document, "maxVcpuFree"),
        max_memory_gib_free=whole(document, "maxMemoryGibFree"),
        max_gpu_free=whole(document, "maxGpuFree"),
        max_storage_gib_free=whole(document, "maxStorageGibFree"),
        vcpu_price=price(document, "vcpuPriceHr"),
        memory_gib_price=price(document, "memoryGibPriceHr"),
        gpu_price=price(document, "gpuPriceHr"),
        storage_gib_price=price(document, "minStorageGibPriceHr"),
        ipv4_price=price(document, "ipv4PriceHr"),
    )


def data_center(document: Mapping[str, Any]) -> DataCenter:
    """A data center as Cudo lists it."""
    network = price(document, "networkPriceHr") if document.get("networkPriceHr") else None
    return DataCenter(text(document, "id"), whole(document, "ipv4Free"), network)


def disk(document: Mapping[str, Any]) -> Disk:
    """A disk as Cudo shows it. An unknown state is taken for one that passes."""
    return Disk(
        text(document, "id"),
        text(document, "dataCenterId"),
        whole(document, "sizeGib"),
        _DISK_STATES.get(text(document, "diskState"), PENDING),
        text(document, "vmId"),
        text(document, "diskType") != "DISK_TYPE_BOOT",
    )


def vm(document: Mapping[str, Any]) -> Vm:
    """A machine as Cudo shows it. An unknown state is taken for one that passes."""
    nics = [nic for nic in document.get("nics") or () if isinstance(nic, dict)]
    public = text(document, "externalIpAddress") or text(document, "publicIpAddress")
    private = text(document, "internalIpAddress")
    metadata = document.get("metadata") or {}
    return Vm(
        id=text(document, "id"),
        data_center=text(document, "datacenterId"),
        machine_type=text(document, "machineType"),
        state=_VM_STATES.get(text(document, "state"), PENDING),
        vcpus=whole(document, "vcpus"),
        memory_gib=whole(document, "memory"),
        gpus=whole(document, "gpuQuantity"),
        public_address=public or next((text(nic, "externalIpAddress") for nic in nics), ""),
        private_address=private or next((text(nic, "internalIpAddress") for nic in nics), ""),
        metadata={str(key): str(value) for key, value in metadata.items()},
        disks=tuple(disk(entry) for entry in document.get("storageDisks") or ()),
        created_at=text(document, "createTime"),
    )


def network(document: Mapping[str, Any]) -> Network:
    """A network as Cudo shows it. An unknown state is taken for one that passes."""
    state = _NETWORK_STATES.get(text(document, "state"), PENDING)
    return Network(text(document, "id"), text(document, "dataCenterId"), text(document, "ipRange"), state)


def security_group(document: Mapping[str, Any]) -> SecurityGroup:
    """A security group as Cudo shows it."""
    rules = frozenset(
        Rule(
            text(rule, "ports"),
            text(rule, "ipRangeCidr"),
            text(rule, "ruleType") != "RULE_TYPE_OUTBOUND",
            text(rule, "protocol"),
        )
        for rule in document.get("rules") or ()
    )
    return SecurityGroup(text(document, "id"), text(document, "dataCenterId"), text(document, "description"), rules)


def text(document: Mapping[str, Any], name: str) -> str:
    """A text; empty where there is none."""
    value = document.get(name)
    return value if isinstance(value, str) else ""


def whole(document: Mapping[str, Any], name: str) -> int:
    """A whole number, which may be written as text: the API stands before gRPC. 0 where there is none."""
    value = document.get(name)
    if value is None:
        return 0
    try:
        return int(value)
    except (TypeError, ValueError):
        raise VendorRefused(f"Cudo's {name} is no number") from None


def number(document: Mapping[str, Any], name: str) -> float:
    """A number; 0 where there is none."""
    value = document.get(name)
    try:
        return float(value) if value is not None else 0.0
    except (TypeError, ValueError):
        raise VendorRefused(f"Cudo's {name} is no number") from None


def price(document: Mapping[str, Any], name: str) -> Decimal:
    """A price, ``{"value": "0.0123"}``; 0 where there is none."""
    value = document.get(name)
    written = value.get("value") if isinstance(value, dict) else value
    try:
        amount = Decimal(str(written)) if written not in (None, "") else Decimal(0)
    except InvalidOperation:
        raise VendorRefused(f"Cudo's {name} is no price") from None
    if not amount.is_finite() or amount < 0:
        raise VendorRefused(f"Cudo's {name} is no price")
    return amount
