"""Offers of the simulated Cudo: machine types by data center, with prices as its price list of 2026 has them.

Prices of the list are for GPUs, and for units of 2 vCPUs and 4 GiB; here two thirds of a unit are its vCPUs' price.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

_RATES: tuple[tuple[str, str, str, str, str], ...] = (
    ("ice-lake-a40-compute", "ca-montreal-3", "A40", "0.35", "0.0198"),
    ("ice-lake-rtx-a5000", "ca-montreal-3", "RTX A5000", "0.29", "0.0198"),
    ("epyc-genoa-a100-pcie", "no-kristiansand-1", "A100", "1.5", "0.0294"),
    ("epyc-genoa-l40s-graphics", "no-kristiansand-1", "L40S", "0.87", "0.0294"),
    ("sapphire-rapids-h100", "no-kristiansand-1", "H100", "1.79", "0.0314"),
    ("ice-lake-a40-compute", "se-stockholm-1", "A40", "0.35", "0.0198"),
    ("ice-lake-rtx-a6000", "se-stockholm-1", "RTX A6000", "0.45", "0.0198"),
    ("intel-ice-lake-a100-pci", "us-carlsbad-1", "A100", "1.35", "0.0234"),
    ("intel-broadwell-v100", "us-dallas-1", "V100", "0.19", "0.0184"),
    ("intel-broadwell-v100", "us-newyork-1", "V100", "0.19", "0.02"),
    ("intel-broadwell", "us-dallas-1", "", "0", "0.0184"),
    ("intel-broadwell", "us-newyork-1", "", "0", "0.02"),
    ("epyc-milan", "se-stockholm-1", "", "0", "0.0198"),
)
"""Type, data center, GPU model, USD an hour of a GPU and of a unit."""
IMAGES = ("ubuntu-2204", "ubuntu-2404", "ubuntu-2504", "debian-12", "ubuntu-2404-nvidia-570-docker-v20250801")
STORAGE, IPV4, NETWORK = Decimal("0.00014"), Decimal("0.005"), Decimal("0.01")
"""USD an hour of a GiB of disk, of a public address, and of a network."""


@dataclass
class Free:
    """Free amounts of a type: the most that one machine may have."""

    vcpus: int = 96
    memory_gib: int = 384
    gpus: int = 8
    storage_gib: int = 10_000


@dataclass(frozen=True)
class Offered:
    """A machine type in a data center. ``free`` goes down with each machine."""

    name: str
    data_center: str
    gpu_model: str
    gpu_price: Decimal
    unit_price: Decimal
    free: Free = field(default_factory=Free, compare=False)

    def document(self) -> dict[str, Any]:
        """As Cudo lists it."""
        gpus = self.free.gpus if self.gpu_model else 0
        vcpu = (self.unit_price * 2 / 3 / 2).quantize(Decimal("0.000001"))
        memory = (self.unit_price / 3 / 4).quantize(Decimal("0.000001"))
        prices: Mapping[str, Decimal] = {
            "vcpuPriceHr": vcpu,
            "memoryGibPriceHr": memory,
            "gpuPriceHr": self.gpu_price,
            "minStorageGibPriceHr": STORAGE,
            "ipv4PriceHr": IPV4,
        }
        return {
            "machineType": self.name,
            "dataCenterId": self.data_center,
            "cpuModel": self.name.rpartition("-")[0] or self.name,
            "gpuModel": self.gpu_model,
            "gpuModelId": self.gpu_model.lower().replace(" ", "-"),
            "minVcpu": 1,
            "minMemoryGib": 1,
            "minVcpuPerMemoryGib": 0.1,
            "maxVcpuPerMemoryGib": 1,
            "minVcpuPerGpu": 1 if self.gpu_model else 0,
            "maxVcpuPerGpu": 24 if self.gpu_model else 0,
            "maxVcpuFree": self.free.vcpus,
            "totalVcpuFree": 10 * self.free.vcpus,
            "maxMemoryGibFree": self.free.memory_gib,
            "totalMemoryGibFree": 10 * self.free.memory_gib,
            "maxGpuFree": gpus,
            "totalGpuFree": gpus,
            "maxStorageGibFree": self.free.storage_gib,
            "totalStorageGibFree": self.free.storage_gib,
            "renewableEnergy": True,
            "prices": [],
            **{name: {"value": f"{amount:f}"} for name, amount in prices.items()},
        }


def stock() -> tuple[Offered, ...]:
    """Everything, with nothing taken of it."""
    return tuple(
        Offered(name, data_center, gpu, Decimal(of_gpu), Decimal(unit))
        for name, data_center, gpu, of_gpu, unit in _RATES
    )
