"""Documents of nodes that a Terraform template makes: names and defaults are the published ones."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from stockyard.domain.models.base import refuse
from stockyard.domain.models.nodes.block_fields import (
    MAX_TYPES,
    Count,
    Duration,
    NamedNodeType,
    SecretRef,
    Source,
    Text,
    complete,
    one_of,
    unique_names,
)
from stockyard.domain.models.nodes.node_fields import Camel


class GitSource(Camel):
    """Place of a template in a repository."""

    repository: Text
    branch: Text | None = None
    commit: Text | None = None
    tag: Text | None = None
    sub_path: Text | None = None
    credentials: SecretRef | None = None
    fetch_interval: Duration = "5m"
    extra_env: Annotated[list[Any], Field(max_length=64)] | None = None

    @model_validator(mode="after")
    def _at_one_place(self) -> Self:
        one_of(self, ("branch", "commit", "tag"), needed=False)
        return self


class TerraformTemplate(Camel):
    """A template, written in the document or found in a repository."""

    inline: Source | None = None
    git: GitSource | None = None
    timeout: Duration = "60m"

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        one_of(self, ("inline", "git"), needed=True)
        return self


class EnvironmentTemplate(Camel):
    """Template that is set up once for a cluster: two stages, or one template as it was written before there were
    stages."""

    infrastructure: TerraformTemplate | None = None
    kubernetes: TerraformTemplate | None = None
    inline: Source | None = None
    git: GitSource | None = None
    timeout: Duration | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        staged = self.infrastructure is not None or self.kubernetes is not None
        single = self.inline is not None or self.git is not None
        if staged and single:
            raise ValueError("give infrastructure and kubernetes, or a template of one stage, not both")
        if not staged and not single:
            raise ValueError("give infrastructure, kubernetes or a template of one stage")
        one_of(self, ("inline", "git"), needed=False)
        return self


class TerraformType(NamedNodeType):
    """A node type that a template makes."""

    node_template: TerraformTemplate | None = None
    max_capacity: Count | None = None

    @model_validator(mode="after")
    def _has_resources(self) -> Self:
        complete(self)
        return self


class TerraformBlock(Camel):
    """Nodes that Terraform templates make."""

    node_template: TerraformTemplate | None = None
    node_environment_template: EnvironmentTemplate | None = None
    node_types: Annotated[list[TerraformType], Field(max_length=MAX_TYPES), AfterValidator(unique_names)] | None = None

    @model_validator(mode="after")
    def _templates(self) -> Self:
        if self.node_template is None:
            lacking = [i for i, node_type in enumerate(self.node_types or ()) if node_type.node_template is None]
            if lacking or not self.node_types:
                raise refuse((("nodeTemplate",), "this field is required unless each node type has its own"))
        return self
