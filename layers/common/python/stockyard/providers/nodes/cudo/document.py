"""Documents of nodes on Cudo Compute."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from stockyard.domain.models import fields
from stockyard.domain.models.nodes.block_fields import MAX_TYPES, Cost, Count, unique_names
from stockyard.domain.models.nodes.node_fields import Camel, DisplayName, Properties
from stockyard.domain.models.patterns import worded
from stockyard.providers.clouds.cudo.attributes import CudoId
from stockyard.providers.nodes.cudo.configuration import DISK_GIB

_TYPE_GLOB = worded(
    r"^[a-z0-9*?][a-z0-9*?-]{0,62}$",
    "a machine type of Cudo, in which * and ? stand for other characters, such as intel-*",
)
_NODE_TYPE = worded(
    r"^[a-z][a-z0-9-]{0,62}-[0-9]{1,4}x[0-9]{1,5}(-[0-9]{1,2}g)?$",
    "a machine type with its size, such as intel-broadwell-8x32, or intel-broadwell-v100-8x32-1g with a GPU",
)
Glob = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=_TYPE_GLOB)]
Globs = Annotated[list[Glob], Field(min_length=1, max_length=200), AfterValidator(fields.distinct)]


class CudoType(Camel):
    """Differences of one node type from what Cudo offers."""

    name: Annotated[str, StringConstraints(max_length=80, pattern=_NODE_TYPE)]
    display_name: DisplayName | None = None
    properties: Properties | None = None
    cost: Cost | None = None
    max_capacity: Count | None = None


class CudoSize(Camel):
    """A size of machines: vCPUs, GiB of memory, GPUs."""

    vcpus: Annotated[int, Field(ge=1, le=1024)]
    memory_gib: Annotated[int, Field(ge=1, le=16_384)]
    gpus: Annotated[int, Field(ge=0, le=64)] = 0


def _distinct_sizes(sizes: list[CudoSize]) -> list[CudoSize]:
    fields.distinct([f"{size.vcpus}x{size.memory_gib}-{size.gpus}" for size in sizes])
    return sizes


class CudoBlock(Camel):
    """Machines of one data center, in the project of a cloud account.

    ``sizes`` are exactly the sizes on offer; without them there are steps of vCPUs and memory.
    """

    cloud_account: Annotated[int, Field(ge=1, le=2**31 - 1)]
    data_center: CudoId
    machine_types: Globs = Field(default_factory=lambda: ["*"])
    boot_disk_size_gib: Annotated[int, Field(ge=10, le=16_384)] = DISK_GIB
    sizes: Annotated[list[CudoSize], Field(min_length=1, max_length=200), AfterValidator(_distinct_sizes)] | None = None
    node_types: Annotated[list[CudoType], Field(max_length=MAX_TYPES), AfterValidator(unique_names)] | None = None
