"""Documents of virtual machines of a Kubernetes cluster: names and defaults are the published ones."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from stockyard.domain.models.nodes.block_fields import (
    MAX_TYPES,
    ClusterRef,
    Count,
    Deployed,
    NamedNodeType,
    Raw,
    one_of,
    unique_names,
)
from stockyard.domain.models.nodes.node_fields import Camel


class KubeVirtDeploy(Camel):
    """Needs of KubeVirt in its cluster."""

    kubevirt: Deployed | None = None
    v_cluster_device_operator: Deployed | None = None


class KubeVirtType(NamedNodeType):
    """A virtual machine; its resources are those of its template unless they are given."""

    virtual_machine_template: Raw | None = None
    merge_virtual_machine_template: Raw | None = None
    max_capacity: Count | None = None

    @model_validator(mode="after")
    def _one_template(self) -> Self:
        one_of(self, ("virtual_machine_template", "merge_virtual_machine_template"), needed=False)
        return self


class KubeVirtBlock(Camel):
    """Nodes that are virtual machines of a Kubernetes cluster."""

    cluster_ref: ClusterRef
    namespace_strategy: Literal["Provider", "VirtualCluster"] = "Provider"
    deploy: KubeVirtDeploy | None = None
    virtual_machine_template: Raw | None = None
    node_types: Annotated[list[KubeVirtType], Field(max_length=MAX_TYPES), AfterValidator(unique_names)] | None = None
