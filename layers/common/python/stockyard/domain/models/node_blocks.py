"""The block of a node provider's document that says where its nodes come from: one model for each kind."""

from __future__ import annotations

from typing import Any

from stockyard.domain.models.foreign_blocks import BcmBlock, ClusterApiBlock, KubeVirtBlock, Metal3Block, TerraformBlock
from stockyard.domain.models.node_fields import Camel
from stockyard.domain.models.own_blocks import Ec2Block, SimulatedBlock

BLOCKS: dict[str, type[Camel]] = {
    "terraform": TerraformBlock,
    "kubeVirt": KubeVirtBlock,
    "bcm": BcmBlock,
    "metal3": Metal3Block,
    "clusterAPI": ClusterApiBlock,
    "ec2": Ec2Block,
    "simulated": SimulatedBlock,
}
"""The model of each kind, under the name of its block."""
OURS = frozenset({"ec2", "simulated"})
"""Kinds that only our own manifests have."""


def block_document(block: Camel) -> dict[str, Any]:
    """The block as it is stored: what was sent without nulls, and the published defaults."""
    return block.model_dump(by_alias=True, exclude_none=True)
