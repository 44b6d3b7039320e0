"""The records of what was paid for and is gone: what stands counts by itself."""

from __future__ import annotations

from stockyard.domain.nodes.records import VersionedRecord
from stockyard.domain.values.frozen import dataclass

ALL_BUT_NODES = "control plane and network"
"""What stands for a type where the whole of a cluster that is gone is meant, without its nodes."""


SUMS, SUMS_BEHIND = "sums", "SumsBehind"
"""The sums of a tenant as a place of the sweep, and the detail type of the event that has it swept."""


@dataclass(frozen=True, slots=True)
class Usage(VersionedRecord):
    """Cost of a node, or of a cluster without its nodes, until the removal.

    ``id`` is ``{month}/{id of the claim or cluster}``; the month, such as ``2026-11``, is that of its end.
    """

    cluster_id: str
    """Empty for a node of no cluster."""
    cluster: str
    """The name of a cluster that is gone; empty for a node."""
    pool: str
    """Empty for a node of no pool, and for a cluster."""
    type: str
    """The canonical name of the node type, or ``ALL_BUT_NODES``."""
    capacity_type: str
    """``on-demand``, ``spot`` or ``reserved``; empty for a cluster."""
    usd_hour: float | None
    """None where the price was not known."""
    since: str
    until: str


@dataclass(frozen=True, slots=True)
class CostReport(VersionedRecord):
    """Costs of a tenant as they were when somebody last looked. There is one; ``data`` is the answer as compressed
    JSON."""

    made_at: str
    data: bytes


@dataclass(frozen=True, slots=True)
class KeptSums(VersionedRecord):
    """Part of what is kept of a large tenant's sums, so that its costs are told without reading each claim. ``id`` is
    the number of the part; ``data`` is its share of compressed JSON."""

    made_at: str
    """The same in all parts that were written together."""
    parts: int
    data: bytes
    is_complete: bool = False
    """Whether all that had happened until then is counted."""
    asked_at: str | None = None
    """When somebody last asked for what was left to be counted in the background."""


@dataclass(frozen=True, slots=True)
class GaugeReport(VersionedRecord):
    """Numbers of a tenant as monitoring last read them. There is one; ``data`` is what it is sent."""

    made_at: str
    serves_until: str
    """Until when whoever reads gets these."""
    data: bytes


def usage_id(until: str, subject: str) -> str:
    """The id of the record of a claim or cluster that ended at that moment."""
    return f"{until[:7]}/{subject}"
