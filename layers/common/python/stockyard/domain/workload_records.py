"""The records of what a cluster's agent says of pods: which wait, and what runs where."""

from __future__ import annotations

from dataclasses import dataclass

from stockyard.domain.node_records import VersionedRecord

MOST_GROUPS = 5_000
"""Different pods that a report may have."""
MOST_NODES = 5_000
"""Nodes that a cluster's agent may tell of."""


@dataclass(frozen=True, slots=True)
class WorkloadReport(VersionedRecord):
    """The last report of a cluster's pods. ``id`` is the cluster's; ``version`` guards its parts too.

    ``content`` names the parts that belong to it: a report in which nothing is new leaves them as they are.
    """

    sequence: int
    """Of the last report; it rises with each."""
    observed_at: str
    received_at: str
    content: int
    """The sequence of the report that wrote the parts."""
    parts: int
    """How many parts there are; those of a higher number are left over from a larger report."""
    woken_at: str = ""
    """When more pods waited than before: soon there may be claims for them."""


@dataclass(frozen=True, slots=True)
class WorkloadPart(VersionedRecord):
    """A piece of a report's compressed JSON. ``id`` is ``{cluster id}/{number}``, from 0."""

    content: int
    """See ``WorkloadReport.content``: parts of different reports are never put together."""
    data: bytes


def part_id(cluster_id: str, number: int) -> str:
    """The id of a part."""
    return f"{cluster_id}/{number}"
