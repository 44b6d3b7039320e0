"""The begin of a bound claim's work: its execution is started, and how long it had waited is measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from stockyard.domain.records import NodeClaim
from stockyard.errors import StockyardError
from stockyard.lifecycle.nodes.node_phases import CREATE_NODE
from stockyard.metrics import TIME_TO_BIND
from stockyard.operations.engine.advance import input_of
from stockyard.operations.services import Services

STARTED_AT_ONCE = 8
"""Executions that a batch of bound claims starts itself, one after the other: of many the relay is as quick."""


def start(services: Services, claims: Sequence[NodeClaim]) -> None:
    """Start the executions of a few bound claims at once. The outbox starts those of all, these a second time, which is
    the same start: so nothing is lost where this fails, or ends in between."""
    procedure = services.procedure(CREATE_NODE)
    with suppress(StockyardError):
        for claim in claims[:STARTED_AT_ONCE]:
            value = input_of(services, procedure, claim)
            services.workflows.start(procedure.workflow, str(claim.execution), value)


def tell_bound(services: Services, claims: Iterable[NodeClaim]) -> None:
    """Measure how long each claim has waited for its node type."""
    for claim in claims:
        services.telemetry.measure(
            "claim bound",
            TIME_TO_BIND,
            services.seconds_since(claim.created_at),
            tenant=services.tenant,
            claim_id=claim.id,
            operation_id=str(claim.operation_id),
            attempt=claim.attempt,
        )
