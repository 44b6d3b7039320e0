"""The product's own metrics: what functions measure, and what the dashboard and the alarms show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric in CloudWatch. ``unit`` is one of CloudWatch's.

    ``dimensions`` are the sets of keys that it is kept by; the empty set is the sum of all. Each combination of values
    is paid for as a metric of its own, so no dimension is a tenant or an identifier.
    """

    name: str
    unit: str
    dimensions: tuple[tuple[str, ...], ...] = ((),)


TIME_TO_BIND = Metric("TimeToBind", "Seconds")
"""From the creation of a claim to its binding to a node type."""
CLAIMS_WAITING = Metric("ClaimsWaiting", "Count")
"""Claims without a node type after a pass of the schedule."""
PHASE_SECONDS = Metric("PhaseSeconds", "Seconds", (("operation_kind", "phase"),))
"""From the first start of a phase in its attempt to its end."""
OPERATIONS_FAILED = Metric("OperationsFailed", "Count", ((), ("operation_kind",)))
"""Operations that failed for good, and attempts of a deletion that could not go on."""
RELAY_LAG = Metric("RelayLag", "Seconds")
"""How old the oldest of the outbox items was that were sent together."""
OUTBOX_REFUSED = Metric("OutboxRefused", "Count")
"""Items of the outbox that were refused for good."""
SWEEP_STOPPED = Metric("SweepStopped", "Count")
"""Sweeps that would have removed more than they may, or that distrust the table."""
IDENTITY_UNREACHABLE = Metric("IdentityUnreachable", "Count")
"""Sweeps whose look at the realm failed: Keycloak does not answer, or refuses our admin client."""
CERTIFICATE_DAYS = Metric("CertificateDays", "Count")
"""Days until the certificates of a cluster's control plane end, once in a sweep for each cluster."""
DECISIONS = Metric("DisruptionDecisions", "Count", (("reason",),))
"""Decisions that nodes leave, as they begin to be carried out."""
NODES_DISRUPTED = Metric("NodesDisrupted", "Count", (("reason",),))
"""Nodes that leave by a decision."""
USD_HOUR_SAVED = Metric("UsdHourSaved", "None")
"""What nodes that leave for their price cost, less what comes in their place, in USD an hour."""
DECISIONS_ABANDONED = Metric("DisruptionDecisionsAbandoned", "Count")
"""Decisions that were begun and given up."""


def namespace(stage: str) -> str:
    """The namespace of a stage's metrics."""
    return f"Stockyard/{stage}"
