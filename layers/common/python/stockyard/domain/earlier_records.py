"""Records that an earlier release wrote, as this one means them.

Each record has the number of the schema that it was written by (``records.SCHEMA``). What an older one left unsaid, and
now would mean something else, is said when the record is read, and kept when it is written next.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from stockyard.domain.nodes.defaults import written_out
from stockyard.domain.pools.records import CONTROL_PLANE, GROUP, Pool
from stockyard.domain.records import SCHEMA, NodeClaim, Record

R = TypeVar("R", bound=Record)
_DEFAULTS = 2
"""Since this schema a node is on demand and of amd64 where nobody asks for more."""


def upgraded(record: R, schema: int) -> R:
    """The record of a ``schema`` as it is read now. Pools and claims that left open how a node is bought, and of which
    architecture it is, say that they take each. Pools of node groups are made from the cluster's settings."""
    if schema >= min(SCHEMA, _DEFAULTS):
        return record
    if isinstance(record, NodeClaim) or (isinstance(record, Pool) and record.form not in (GROUP, CONTROL_PLANE)):
        requirements = written_out(record.requirements, bids=bool(record.max_price))
        return replace(record, requirements=requirements)
    return record
