"""Where nodes come from in documents of other systems: names and defaults are the published ones.

Templates that are handed on to another system are any object.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from stockyard.domain.models.base import refuse
from stockyard.domain.models.block_fields import (
    MAX_TYPES,
    ClusterRef,
    Count,
    Duration,
    NamedNodeType,
    Raw,
    SecretRef,
    Source,
    Text,
    complete,
    one_of,
    unique_names,
)
from stockyard.domain.models.node_fields import Camel

# --- terraform --------------------------------------------------------------------------------------------------------


class GitSource(Camel):
    """Where a template is in a repository."""

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
    """What is set up once for a cluster: two stages, or one template as it was written before there were stages."""

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
            lacking = [i for i, one in enumerate(self.node_types or ()) if one.node_template is None]
            if lacking or not self.node_types:
                raise refuse((("nodeTemplate",), "this field is required unless each node type has its own"))
        return self


# --- kubeVirt ---------------------------------------------------------------------------------------------------------


class Deployed(Camel):
    """A component that is installed in the provider's cluster."""

    enabled: bool | None = None
    chart_repo: Text | None = None
    chart: Text | None = None
    version: Text | None = None
    helm_values: Source | None = None


class KubeVirtDeploy(Camel):
    """What KubeVirt needs in its cluster."""

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


# --- bare metal -------------------------------------------------------------------------------------------------------


class BcmType(NamedNodeType):
    """Machines of a BCM inventory, by name or by group."""

    nodes: Annotated[list[Text], Field(max_length=2000)] | None = None
    node_groups: Annotated[list[Text], Field(max_length=200)] | None = None


class BcmBlock(Camel):
    """Nodes of a BCM inventory."""

    secret_ref: SecretRef
    endpoint: Annotated[str, StringConstraints(max_length=1024, pattern=r"^https?://[!-~]+$")]
    node_types: Annotated[list[BcmType], Field(max_length=MAX_TYPES), AfterValidator(unique_names)] | None = None


class Metal3Deploy(Camel):
    """What Metal3 needs in its cluster."""

    multus: Deployed | None = None
    dhcp: Deployed | None = None
    metal3: Deployed | None = None


class BareMetalHosts(Camel):
    """Which hosts are of a type: a Kubernetes label selector."""

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
