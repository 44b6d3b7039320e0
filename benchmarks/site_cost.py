"""Costs of a site in Stockyard's own account; and of an overlay while nothing happens: of its cluster in that account,
of a node of another network in the tenant's."""

from __future__ import annotations

from benchmarks import rates
from stacks.functions import FUNCTIONS
from stockyard.operations.sites.exchange import CONTACT_SECONDS
from stockyard.providers.clusters.ec2.planning import EGRESS_USD
from stockyard.settings import Choices

SITE_SECONDS, SITE_READS, SITE_LOG_KB = 0.05, 2, 0.6
"""Of one exchange with the connector of a site where nothing is done: the site and its last requests are read."""
SITE_CONTACTS = rates.HOURS * 3600 / CONTACT_SECONDS
"""A month's notes of when the connector spoke last, each a write of the record and of its place in an index."""
SITE_GOAL = 0.10
"""USD a month that a site may cost where nothing is done, at list prices."""
OVERLAY_READS, OVERLAY_WRITES = 0, 0
"""Of one post of an idle cluster's agent, besides what it costs anyway: a test counts that there are none."""
PROBE_BYTES, PROBE_SECONDS, HUBS = 220, 5, 3
"""Of a node of another network: each hub's answer to it, with all headers, and how often, while nothing is sent."""


def idle_site() -> dict[str, float]:
    """USD a month of a site where nothing is done: its connector asks each minute."""
    requests = rates.HOURS * 3600 / Choices().site_idle_seconds
    memory = next(spec.memory for spec in FUNCTIONS if spec.name == "sites") / 1024
    duration = SITE_SECONDS * memory * rates.LAMBDA_ARM_GB_SECOND
    return {
        "gateway": requests * rates.HTTP_API_REQUEST,
        "functions": requests * (rates.LAMBDA_REQUEST + duration),
        "table": requests * SITE_READS * rates.DYNAMODB_READ + SITE_CONTACTS * 2 * rates.DYNAMODB_WRITE,
        "logs": requests * SITE_LOG_KB / 1e6 * (rates.LOGS_GB + rates.LOGS_STORED_GB),
    }


def overlay_of_quiet_cluster(requests: float) -> dict[str, float]:
    """USD a month on top of a quiet cluster whose agent posts so often."""
    table = OVERLAY_READS * rates.DYNAMODB_READ + OVERLAY_WRITES * rates.DYNAMODB_WRITE
    return {"agent: table": requests * table}


def overlay_of_far_node() -> dict[str, float]:
    """USD a month of a node that nothing is sent to: hubs' answers to its probes leave AWS."""
    probes = rates.HOURS * 3600 / PROBE_SECONDS * HUBS
    return {"probes that leave AWS": probes * PROBE_BYTES / 1e9 * EGRESS_USD}
