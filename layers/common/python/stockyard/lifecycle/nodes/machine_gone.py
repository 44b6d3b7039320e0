"""Nodes whose machine was ended by somebody else: what is said of their claims. Pure, as ``node_claim``."""

from __future__ import annotations

from dataclasses import replace

from stockyard.domain.records import NodeClaim
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.nodes.node_claim import AVAILABLE, FAILED, MOVES
from stockyard.lifecycle.nodes.node_phases import PROVISIONED

LOST = "MachineGone"
"""Reason of a failed claim whose machine was ended by somebody else when its node was available."""


def lose(claim: NodeClaim, now: str) -> tuple[NodeClaim, Transition]:
    """The machine of an available node is gone, and nobody asked for that here. Its place is given back."""
    text = (
        f"Machine {claim.machine_id} was ended by somebody else. Deleting the claim removes what is left of its node."
    )
    placement = replace(claim.placement, counted=False) if claim.placement is not None else None
    lost = MOVES.touch(claim, now, phase=FAILED, reason=LOST, message=text, placement=placement)
    lost = MOVES.condition(lost, PROVISIONED, "False", LOST, text, now)
    return lost, MOVES.transition(AVAILABLE, FAILED, LOST, text)


def is_lost(claim: NodeClaim) -> bool:
    """Whether the claim's node has no machine any more, so that nothing on it can be moved away."""
    return claim.phase == FAILED and claim.reason == LOST
