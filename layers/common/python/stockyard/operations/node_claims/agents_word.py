"""Phases that wait for the word of a cluster's agent, ended when it comes and not at the workflow's next look."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from stockyard.domain.records import NodeClaim
from stockyard.errors import StockyardError
from stockyard.lifecycle.nodes.node_claim import PENDING
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.run_phases import run_phases
from stockyard.operations.node_claims.phases import RUNNER
from stockyard.operations.services import Services

AWAITED = ("register", "initialize")
"""The phases that the agent's word ends. What it says decides them alone: no vendor is asked."""


def go_on(services: Services, claims: Iterable[NodeClaim]) -> None:
    """Do what waits for the agent of these claims, of whose nodes it has just told something new.

    Nothing comes before its time: a claim whose machine is still being made is left to its workflow, which looks again
    in any case, and so it is with whatever fails here.
    """
    for claim in claims:
        # To switch a machine off is a call to its vendor.
        if claim.phase != PENDING or claim.deleting or claim.power == "Off" or claim.operation_id is None:
            continue
        with suppress(StockyardError):
            run_phases(RUNNER, services, Fence.of(claim), AWAITED)
