"""Documents of nodes that a Terraform template makes: names and defaults are the published ones."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

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

_OWN = frozenset({"HOME", "PATH", "TF_IN_AUTOMATION", "TF_INPUT", "CHECKPOINT_DISABLE"})


class SecretKey(Camel):
    """A secret in the store of the account that runs are carried out in, and a field of it."""

    name: Text
    key: Text | None = None
    optional: bool | None = None


class ValueFrom(Camel):
    """Place of a variable's value."""

    secret_key_ref: SecretKey


class Variable(Camel):
    """A variable of the environment of git and OpenTofu."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
    value: Annotated[str, StringConstraints(max_length=4096)] | None = None
    value_from: ValueFrom | None = None

    @field_validator("name")
    @classmethod
    def _is_free(cls, name: str) -> str:
        if name.startswith(("STOCKYARD_", "TF_HTTP_", "TF_ENCRYPTION")) or name in _OWN:
            raise ValueError("is a name that Stockyard uses itself")
        return name

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        one_of(self, ("value", "value_from"), needed=True)
        return self


def _repository(text: str) -> str:
    """Refuse what a run cannot clone: it has credentials for HTTPS, and no keys of SSH."""
    if text.startswith(("ssh://", "git@")) or re.match(r"^[\w.-]+@[\w.-]+:", text):
        raise ValueError("SSH is not offered: name the repository by https:// and its credentials by a secret")
    if not text.startswith(("https://", "http://127.0.0.1:")):
        raise ValueError("must begin with https://")
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise ValueError("has credentials in it: name them by credentials, which refers to a secret")
    return text


class Runner(Camel):
    """Place where templates are applied: an account of the tenant's, and a region in which it has the runner.

    ``operator``: the account of the stage's operator instead, for a shared provider.
    """

    cloud_account: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    operator: bool = False
    region: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")] | None = None

    @model_validator(mode="after")
    def _one_account(self) -> Self:
        if self.operator and self.cloud_account is not None:
            raise refuse((("cloudAccount",), "goes with no operator: true, which is an account already"))
        return self


class GitSource(Camel):
    """Place of a template in a repository."""

    repository: Annotated[Text, AfterValidator(_repository)]
    branch: Text | None = None
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")] | None = None
    tag: Text | None = None
    sub_path: Text | None = None
    credentials: SecretRef | None = None
    fetch_interval: Duration = "5m"
    extra_env: Annotated[list[Variable], Field(max_length=64)] | None = None

    @model_validator(mode="after")
    def _at_one_reference(self) -> Self:
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

    runner: Runner | None = None
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
