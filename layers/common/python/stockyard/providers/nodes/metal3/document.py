"""Documents of the bare-metal hosts of a Kubernetes cluster: names and defaults are the published ones."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from stockyard.domain.models import fields
from stockyard.domain.models.base import check
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


class SelectorExpression(Camel):
    """A rule of a selector."""

    key: fields.LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[list[fields.LabelValue], Field(max_length=100)] | None = None

    @model_validator(mode="after")
    def _values_by_operator(self) -> Self:
        needs = self.operator in ("In", "NotIn")
        if needs and not self.values:
            check([(("values",), f"this field is required with {self.operator}")])
        if not needs and self.values:
            check([(("values",), f"cannot be given with {self.operator}")])
        return self


class HostSelector(Camel):
    """A label selector, as Kubernetes has them."""

    match_labels: fields.Labels | None = None
    match_expressions: Annotated[list[SelectorExpression], Field(max_length=20)] | None = None


class BareMetalHosts(Camel):
    """Hosts of a type: those with certain labels."""

    selector: HostSelector


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
