"""Cost of an overlay while nothing happens: of its cluster in Stockyard's account, of a node of another network in the
tenant's."""

from __future__ import annotations

from benchmarks import rates
from stockyard.providers.clusters.ec2.planning import EGRESS_USD

OVERLAY_READS, OVERLAY_WRITES = 0, 0
"""Of one post of an idle cluster's agent, besides what it costs anyway: a test counts that there are none."""
PROBE_BYTES, PROBE_SECONDS, HUBS = 220, 5, 3
"""Of a node of another network: each hub's answer to it, with all headers, and how often, while nothing is sent."""


def of_quiet_cluster(requests: float) -> dict[str, float]:
    """USD a month on top of a quiet cluster whose agent posts so often."""
    table = OVERLAY_READS * rates.DYNAMODB_READ + OVERLAY_WRITES * rates.DYNAMODB_WRITE
    return {"agent: table": requests * table}


def of_far_node() -> dict[str, float]:
    """USD a month of a node that nothing is sent to: hubs' answers to its probes leave AWS."""
    probes = rates.HOURS * 3600 / PROBE_SECONDS * HUBS
    return {"probes that leave AWS": probes * PROBE_BYTES / 1e9 * EGRESS_USD}
