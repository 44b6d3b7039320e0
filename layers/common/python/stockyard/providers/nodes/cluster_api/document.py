"""Documents of machines that Cluster API makes: names and defaults are the published ones."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from stockyard.domain.models.nodes.block_fields import (
    MAX_TYPES,
    ClusterRef,
    Count,
    NamedNodeType,
    Raw,
    complete,
    one_of,
    unique_names,
)
from stockyard.domain.models.nodes.node_fields import Camel


class ClusterApiType(NamedNodeType):
    """A machine of an infrastructure provider of Cluster API."""

    infrastructure_machine_template: Raw | None = None
    merge_infrastructure_machine_template: Raw | None = None
    bootstrap_config_template: Raw | None = None
    merge_bootstrap_config_template: Raw | None = None
    max_capacity: Count | None = None

    @model_validator(mode="after")
    def _checked(self) -> Self:
        for name in ("infrastructure_machine_template", "bootstrap_config_template"):
            one_of(self, (name, f"merge_{name}"), needed=False)
        complete(self)
        return self


class ClusterApiBlock(Camel):
    """Nodes that Cluster API makes."""

    cluster_ref: ClusterRef
    infrastructure_machine_template: Raw | None = None
    bootstrap_config_template: Raw | None = None
    node_types: Annotated[list[ClusterApiType], Field(max_length=MAX_TYPES), AfterValidator(unique_names)] | None = None
