"""Configuration of the source, and the content of a provider's document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.pools.node_groups import name_of, worker_groups
from stockyard.domain.records import Cluster, NodeProvider
from stockyard.providers.clouds.aws import DEFAULT_REGION


@dataclass(frozen=True, slots=True)
class EksNodesConfig:
    """Names of this stage. Fields mean what they mean in ``stockyard.settings``."""

    name_prefix: str
    visibility_seconds: int = 60


def region(provider: NodeProvider) -> str:
    """Region of the provider's machines."""
    return str(block_of(provider).get("region") or DEFAULT_REGION)


def reservation_of(cluster: Cluster, pool: str) -> str:
    """The capacity block that the machines of the pool's group come from; empty for none."""
    groups: list[Mapping[str, Any]] = [group for group in worker_groups(cluster.settings) if name_of(group) == pool]
    return str(groups[0].get("capacity_reservation_id") or "") if groups else ""
