"""Freshness of what is known of a cluster, and the wish to know it well for a while."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from stockyard.domain.pools.workload_records import WorkloadReport
from stockyard.domain.records import Cluster, Fact
from stockyard.domain.values import times
from stockyard.errors import Conflict
from stockyard.operations.machines.observe import ATTENDED, OBSERVED
from stockyard.operations.services import Services
from stockyard.ports import Check, Put

INTERVALS = 2
"""How many intervals of an agent that is attended may be between a look of it at the cluster and now."""
NEWEST_SECONDS = 30
"""How old its report may be in any case: however often an agent comes, it lists nodes every ten seconds at most, so
that with shorter intervals nobody would ever know the cluster well."""


def attend(services: Services, cluster_id: str, seconds: int) -> None:
    """Have the cluster's agent come often for that many seconds from now, and have each of its posts remembered.

    Its next post may still take as long as it was last told; from then on it comes each ``agent_quiet_seconds`` or
    sooner, and tells what pods moved twice as often. It is written anew only when half of the time is over, so it can
    be called by every pass. Nothing happens for a cluster that is not ready.
    """
    now, fact_id = services.clock.now(), f"{cluster_id}/{ATTENDED}"
    fact = services.store.get(Fact, fact_id)
    if fact is not None and times.from_text(fact.value) > now + timedelta(seconds=seconds / 2):
        return
    until = Fact(fact_id, times.to_text(now + timedelta(seconds=seconds)), services.now())
    try:
        services.store.commit(Put(until), Check(Cluster, cluster_id, {"status": "ready"}))
    except Conflict:
        return


def report_age(services: Services, cluster_id: str, now: datetime) -> float | None:
    """For how many seconds before ``now`` nobody can say that the cluster's pods, nodes and budgets are as the last
    report of its agent has them (``fleet.state.workload_of``).

    None when nothing was reported, or by an agent that does not say how far its reports are. The age rises while the
    agent is silent, and while something has changed that it has not told yet.
    """
    report = services.store.get(WorkloadReport, cluster_id)
    until = vouched_until(services, report) if report is not None else None
    return max(0.0, (now - until).total_seconds()) if until is not None else None


def vouched_until(services: Services, report: WorkloadReport) -> datetime | None:
    """Until when the cluster was as ``report`` has it, by the word of its agent and by our clock: an agent whose
    report stays true does not send it again. None for an agent that does not say so."""
    fact = services.store.get(Fact, f"{report.id}/{OBSERVED}")
    pods = json.loads(fact.value).get("pods") if fact is not None else None
    if pods is None:
        return None
    # The clock of the agent may be ahead; one that is behind makes its report look older than it is, which is safe.
    true_at = min(times.from_text(report.observed_at), times.from_text(report.received_at))
    if pods["sequence"] == report.sequence:
        true_at = max(true_at, times.from_text(pods["true_at"]))
    return true_at


def is_known_well(services: Services, cluster_id: str) -> bool:
    """Whether the last report of the cluster's agent is as true as that of an agent which is attended always is."""
    age = report_age(services, cluster_id, services.clock.now())
    return age is not None and age <= oldest_report(services.settings.agent_quiet_seconds)


def oldest_report(quiet_seconds: int) -> int:
    """Largest age in seconds of the report of an agent that is attended, and comes every ``quiet_seconds``."""
    return max(INTERVALS * quiet_seconds, NEWEST_SECONDS)
