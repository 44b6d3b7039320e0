"""The instance types, prices and versions of a cloud region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from stockyard.domain.values.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs of an instance type. ``count`` is 0 for a fraction of a GPU; ``memory_mib`` is the memory of each."""

    name: str
    manufacturer: str
    count: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The accelerators of an instance type that are no GPUs. ``count`` is of devices; ``cores`` are those of each, 0
    where nobody counts them."""

    name: str
    manufacturer: str
    count: int
    cores: int = 0


@dataclass(frozen=True, slots=True)
class InstanceTraits:
    """More of an instance type, as its cloud describes it; None of each stands for what it does not have or tell."""

    hypervisor: str | None = None
    processor_manufacturer: str | None = None
    clock_mhz: int | None = None
    """The sustained speed of the processor."""
    volume_mbps: int | None = None
    """The most to volumes in the network."""
    network_mbps: int | None = None
    """What the network always gives."""
    local_gb: int | None = None
    """The disks of the machine itself that speak NVMe."""
    encrypts_in_transit: bool | None = None
    """Whether what machines send each other is encrypted by the cloud."""
    accelerator: Accelerator | None = None


@dataclass(frozen=True, slots=True)
class InstanceOffer:
    """One instance type. ``usd_hour`` is the on-demand price for Linux, None when it is not known.

    ``interfaces`` (of the first network card) and ``addresses`` (of each interface) bound the pods that can have an
    address of the VPC.
    """

    name: str
    vcpu: int
    memory_mib: int
    architecture: str
    """EC2's name: ``x86_64`` or ``arm64``."""
    interfaces: int
    addresses: int
    usd_hour: float | None = None
    gpus: tuple[Gpus, ...] = ()
    current_generation: bool = True
    """False where EC2 itself calls the type one of a previous generation."""
    bare_metal: bool = False
    fabric_interfaces: int = 0
    """Interfaces by which machines reach each other past their operating systems; 0: the type has none."""
    traits: InstanceTraits | None = None
    """None where nobody has described the type, as in sheets of earlier releases."""

    @property
    def max_pods(self) -> int:
        """Pods with an address of the VPC, by AWS's formula; 0 when the interfaces are not known."""
        return self.interfaces * (self.addresses - 1) + 2 if self.interfaces else 0


@dataclass(frozen=True, slots=True)
class SpotPrice:
    """Price of spot capacity of a type in one zone, in USD an hour: ``now``, and the least and the most of late."""

    now: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SpotPrices:
    """The spot prices of one region, by instance type and id of the zone (``use1-az1``).

    Accounts may have different names for one zone; its id is the same in all of them.
    """

    region: str
    as_of: str
    instances: Mapping[str, Mapping[str, SpotPrice]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RefusedOffering:
    """A way to get a machine that its cloud refused a moment ago: the provider's own name of the type, the capacity
    type, the zone (``*``: all), the code of the refusal, and the moments of the refusal and of the next try."""

    type: str
    capacity_type: str
    zone: str
    reason: str
    refused_at: str
    until: str


STANDARD, EXTENDED = "standard", "extended"
"""How a version is supported that a cloud offers."""


@dataclass(frozen=True, slots=True)
class ClusterVersion:
    """A minor of Kubernetes that a cloud offers for control planes, with three days such as ``2026-11-25``: the first
    day of the offer, of extended support, and without any support."""

    version: str
    released: str
    standard_until: str
    extended_until: str

    def support(self, day: str) -> str:
        """``standard``, ``extended``, or empty where the version is not offered on that day."""
        if not self.released <= day < self.extended_until:
            return ""
        return STANDARD if day < self.standard_until else EXTENDED


@dataclass(frozen=True, slots=True)
class RegionOffers:
    """The offers of one region. ``rates`` are in USD, by the names of ``ports.PriceList.rate``. ``versions`` are those
    of the cloud's own control planes; none where nobody has asked."""

    region: str
    as_of: str
    instances: Mapping[str, InstanceOffer] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    versions: tuple[ClusterVersion, ...] = ()
