"""Documents of the bare-metal hosts of a Kubernetes cluster: names and defaults are the published ones."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from stockyard.domain.models.nodes.block_fields import (
    MAX_TYPES,
    ClusterRef,
    Deployed,
    NamedNodeType,
    Raw,
    complete,
    unique_names,
)
from stockyard.domain.models.nodes.node_fields import Camel


class Metal3Deploy(Camel):
    """Needs of Metal3 in its cluster."""

    multus: Deployed | None = None
    dhcp: Deployed | None = None
    metal3: Deployed | None = None


class BareMetalHosts(Camel):
    """Hosts of a type: a Kubernetes label selector."""

    selector: Raw


class Metal3Type(NamedNodeType):
    """Bare-metal hosts with certain labels."""

    bare_metal_hosts: BareMetalHosts | None = None

    @model_validator(mode="after")
    def _has_resources(self) -> Self:
        complete(self)
        return self


class Metal3Block(Camel):
    """Nodes that are bare-metal hosts of a Kubernetes cluster."""

    cluster_ref: ClusterRef
    deploy: Metal3Deploy | None = None
    neutron_enabled: bool | None = None
    netris: Raw | None = None
    net_box: Raw | None = None
    node_types: Annotated[list[Metal3Type], Field(max_length=MAX_TYPES), AfterValidator(unique_names)] | None = None
