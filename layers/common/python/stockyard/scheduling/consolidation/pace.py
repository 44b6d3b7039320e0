"""The pace of decisions: how long one has to stand, when the next look is, and how long none is made after a failure.

The passes over a cluster and the replay of a trace keep to the same numbers, so that a replay does what a cluster does.
"""

from __future__ import annotations

from stockyard.domain.pools.budgets import DRIFTED, EXPIRED, UNDERUTILIZED

SETTLING_SECONDS = 30
"""How long after pods have moved the nodes are looked at that may go now."""
CONFIRM_SECONDS = 15
"""How long a decision has to stand before it is carried out, as with Karpenter."""
LOOK_SECONDS = 50
"""When replacements that are being made are looked at again: with the next minute's schedule, which may come a little
sooner than this one did after the minute."""
REPLACE_SECONDS = 1200
"""How long replacements may take before the decision is given up."""
SOON_SECONDS = 60
"""When a cluster is looked at again after a decision was given up."""
HOLD_SECONDS = 600
"""How long nothing of the kind is decided after a decision was given up; twice as long each time that follows."""
LONGEST_SECONDS = {UNDERUTILIZED: 3600, DRIFTED: 4 * 3600, EXPIRED: 4 * 3600}
"""The longest of these, by reason: what nodes cost changes with every pod, why a node does not come seldom does."""
MISSED_SECONDS = 1800
"""Nodes that pools make within so many seconds after others have left may be for the pods of these."""
CAREFUL_NODES = 50
"""In a cluster of so few nodes every decision is careful: it saves nearly as much, and costs little to find."""
CAREFUL_SECONDS = 86_400
"""For how long decisions are careful after pods have found no place."""
REST_SECONDS = 3600
"""For how long no node leaves for its price after a careful decision whose pods have found no place either."""


def hold_seconds(reason: str, times: int) -> int:
    """For how many seconds the same is not decided again, after ``times`` earlier decisions for the reason that failed
    one after the other. ``reason`` is one of ``LONGEST_SECONDS``."""
    return int(min(LONGEST_SECONDS[reason], HOLD_SECONDS * 2**times))
