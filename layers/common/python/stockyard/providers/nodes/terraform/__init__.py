"""Nodes that a Terraform template makes, applied by OpenTofu in an account of the tenant's: the kind ``terraform``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockyard.domain.nodes.provider_kinds import AccountReference, Document, ProviderKind
from stockyard.providers.descriptors import NodeSourceDescriptor, SourceTools

if TYPE_CHECKING:
    from stockyard.ports.nodes import NodeSource


def runner_account(block: Document) -> AccountReference | None:
    """The account that ``runner.cloudAccount`` has; None: the tenant's only one of AWS."""
    written = (block.get("runner") or {}).get("cloudAccount")
    return None if written is None else AccountReference(str(written), ("runner", "cloudAccount"))


def takes_only_account(block: Document) -> bool:
    """Whether runs of the block are carried out in the tenant's only account of AWS."""
    runner = block.get("runner") or {}
    return runner.get("cloudAccount") is None and not runner.get("operator")


def _make(tools: SourceTools) -> NodeSource:
    from stockyard.machines.sources import Sources
    from stockyard.providers.addresses import guard_of
    from stockyard.providers.clouds.aws import DEFAULT_REGION, runner
    from stockyard.providers.nodes.terraform.provider import TerraformConfig, TerraformNodes
    from stockyard.providers.nodes.terraform.repositories import Repositories

    settings = tools.settings
    sources = Sources(settings.packages_url, settings.archive_url, settings.image_mirror, settings.manifests_url)
    config = TerraformConfig(settings.api_url, DEFAULT_REGION, sources, settings.operator_runner)
    repositories = Repositories(guard_of(settings))
    return TerraformNodes(config, runner(tools), tools.runs_of, tools.store_of, repositories)


KIND = ProviderKind(
    "terraform",
    f"{__name__}.document:TerraformBlock",
    account=runner_account,
    takes_only_account=takes_only_account,
    cloud="aws",
    cloud_title="AWS",
)
DESCRIPTOR = NodeSourceDescriptor(KIND, _make)
"""Documents of nodes that a Terraform template makes: names and defaults are the published ones."""
