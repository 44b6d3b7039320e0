"""The handler of the table's stream and of the minute schedule: claims that wait are bound to node types, and nodes
whose provider was changed are compared with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.edge.logs import logged
from stockyard.errors import Conflict, StockyardError
from stockyard.wiring import passes

if TYPE_CHECKING:
    from stockyard.operations.scheduler.wake import Scheduler

logger = Logger()


@logged(logger)
def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Stream records name claims that are new or have to be placed again, and what makes room for others: a place that
    was given back, a provider, the allowed node types, a budget, a cluster that is ready. All else is the schedule.

    Records may come twice, late and in any order: a claim is written only at the version that was read. What fails
    for now is tried again as a whole by the stream; what fails for good only once a minute while the claim waits, so
    that one tenant's trouble does not hold up the stream for the others.
    """
    scheduler = passes.scheduler()
    records = event.get("Records")
    if records is None:
        report = dict(scheduler.overdue(wiring.clock().now()))
        report["told"] = scheduler.review_budgets(wiring.clock().now())
    else:
        try:
            report = _woken(scheduler, records)
        except Exception as error:
            if isinstance(error, StockyardError) and (error.retryable or isinstance(error, Conflict)):
                raise
            logger.exception("left to the schedule", extra={"error": type(error).__name__})
            return {}
    logger.info("scheduled", extra=report)
    return report


def _woken(scheduler: Scheduler, records: list[dict[str, Any]]) -> dict[str, int]:
    from stockyard.operations.scheduler.wake import Changes

    changes = Changes.of(passes.changes(records))
    report = dict(scheduler.woken(changes.claims, wiring.clock().now(), changes.roomier))
    if changes.budgets:
        report["told"] = scheduler.review(changes.budgets)
    if changes.providers:
        report["compared"] = scheduler.compare(changes.providers)
    return report
