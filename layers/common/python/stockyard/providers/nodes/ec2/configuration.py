"""Configuration of the source, and the content of a provider's document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.nodes.properties import ALLOCATION_STRATEGY
from stockyard.domain.pools.records import POOL_LABEL
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.machines.sources import PUBLIC, Sources
from stockyard.providers.clouds.aws import DEFAULT_REGION


@dataclass(frozen=True, slots=True)
class Ec2NodesConfig:
    """Names and addresses of this stage. Fields mean what they mean in ``stockyard.settings``."""

    name_prefix: str
    api_url: str
    visibility_seconds: int = 60
    image_days: int = 7
    sources: Sources = PUBLIC
    issuer: str = ""


def region(provider: NodeProvider) -> str:
    """Region of the provider's machines."""
    return str(block_of(provider).get("region") or DEFAULT_REGION)


def setting(provider: NodeProvider, field: str) -> Any:
    """A field of the provider's block; None where the document leaves it to us."""
    block: Mapping[str, Any] = block_of(provider)
    return block.get(field)


def strategy(properties: Mapping[str, str], provider: NodeProvider) -> str:
    """Strategy by which EC2 chooses among the types of a claim with these properties; empty where nobody says it."""
    return properties.get(ALLOCATION_STRATEGY) or setting(provider, "allocationStrategy") or ""


def pool(claim: NodeClaim, provider: NodeProvider) -> str:
    """The pool that a claim is of; without one its provider's name stands for it."""
    return claim.labels.get(POOL_LABEL) or provider.name
