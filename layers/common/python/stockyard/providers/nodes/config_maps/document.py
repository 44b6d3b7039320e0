"""Documents of machines that are ConfigMaps."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from stockyard.domain.models.nodes.block_fields import (
    MAX_TYPES,
    ClusterRef,
    Count,
    NamedNodeType,
    Seconds,
    unique_names,
)
from stockyard.domain.models.nodes.node_fields import Camel


class ConfigMapType(NamedNodeType):
    """A machine that is a ConfigMap."""

    max_capacity: Count | None = None


class ConfigMapBlock(Camel):
    """Machines that are ConfigMaps in a namespace of a Kubernetes host, to try hosts and sites out: they join by
    themselves, and only a local cloud offers them."""

    cluster_ref: ClusterRef
    launch_seconds: Seconds = 0
    node_types: Annotated[list[ConfigMapType], Field(max_length=MAX_TYPES), AfterValidator(unique_names)] | None = None
