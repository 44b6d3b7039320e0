"""Configuration of the source, and the content of a provider's document."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from typing import Any

from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.nodes.node_types import ANY
from stockyard.domain.records import NodeProvider
from stockyard.machines.sources import PUBLIC, Sources
from stockyard.providers.clouds.cudo.sizing import Size

DISK_GIB = 50
"""Of a node's boot disk where nobody says it."""


@dataclass(frozen=True, slots=True)
class CudoNodesConfig:
    """Names and addresses of this stage. Fields mean what they mean in ``stockyard.settings``."""

    name_prefix: str
    api_url: str
    in_flight_seconds: int = 60
    image_days: int = 7
    sources: Sources = PUBLIC


def setting(provider: NodeProvider, field: str) -> Any:
    """A field of the provider's block; None where the document leaves it to us."""
    return block_of(provider).get(field)


def data_center(provider: NodeProvider) -> str:
    """Data center of the provider's machines."""
    return str(setting(provider, "dataCenter"))


def disk_gib(provider: NodeProvider) -> int:
    """GiB of the boot disk of each machine."""
    return int(setting(provider, "bootDiskSizeGib") or DISK_GIB)


def is_named(provider: NodeProvider, machine_type: str) -> bool:
    """Whether the document's globs let the machine type through."""
    globs = setting(provider, "machineTypes") or (ANY,)
    return any(re.match(translate(glob), machine_type) for glob in globs)


def own_sizes(provider: NodeProvider) -> tuple[Size, ...] | None:
    """The sizes that the document asks for; None where it leaves them to us."""
    entries = setting(provider, "sizes")
    if entries is None:
        return None
    disk = disk_gib(provider)
    return tuple(Size(entry["vcpus"], entry["memoryGib"], disk, entry.get("gpus") or 0) for entry in entries)
