"""Making and unmaking what a cluster on EKS consists of; see ``providers.clouds.aws.resources.making``."""

from __future__ import annotations

from stockyard.errors import VendorRefused
from stockyard.providers.clouds.aws.resources.cluster_building import ClusterBuilder
from stockyard.providers.clouds.aws.resources.making import DesiredResource
from stockyard.providers.clusters.eks.configuration import EksConfig

__all__ = ["Builder", "DesiredResource", "vendor_id"]

Builder = ClusterBuilder[EksConfig]
"""One phase of one cluster."""


def vendor_id(builder: Builder, kind: str, key: str, phase: str) -> str:
    """The id of what an earlier phase has made. Raises ``VendorRefused`` when it has not."""
    line = builder.work.ledger.find(kind, key)
    if line is None or line.state != "made":
        raise VendorRefused(f"{kind} {key} is not on the ledger", hint=f"Resume from the phase {phase}.")
    return line.vendor_id
