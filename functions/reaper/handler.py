"""The handler of the sweep's schedule, and of events about nodes that are ready no more."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.domain.cost_records import SUMS, SUMS_BEHIND
from stockyard.edge.logs import logged
from stockyard.metrics import SWEEP_STOPPED
from stockyard.wiring import passes

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()

LAST_MINUTE = timedelta(minutes=1)
"""What the last turn of a run may take."""


@logged(logger)
def lambda_handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """One sweep over all tenants; or of one scope that such a sweep has handed out: ``{"tenant": ..., "place": ...}``,
    or of some tenants: ``{"tenants": [...]}``; or a look at the nodes of the cluster that an event of our bus
    names, or at what the sums of its tenant lack.

    The answer and the log name what was found, removed and refused.

    A refusal to remove suspiciously much, or anything after a restore, is logged as an error, and its metric
    raises the alarm. ``{"reconciled": true}`` is an operator's word that the table is right again.
    """
    reaper = passes.reap()
    detail = event.get("detail")
    # The detail of a scheduled event is an empty document.
    if detail and event.get("detail-type") == SUMS_BEHIND:
        report = {"place": SUMS, **reaper.sweep_scope(detail["tenant"], SUMS)}
    elif detail:
        report = {"cluster": detail["subject"], **reaper.look_at_nodes(detail["tenant"], detail["subject"])}
    elif "place" in event:
        report = {"place": event["place"], **reaper.sweep_scope(event["tenant"], event["place"])}
    else:
        remaining = timedelta(milliseconds=context.get_remaining_time_in_millis())
        until = wiring.clock().now() + remaining - LAST_MINUTE
        if "tenants" in event:
            report = {"tenants": event["tenants"], **reaper.sweep_tenants(event["tenants"], until=until)}
        else:
            report = reaper.run(reconciled=event.get("reconciled") is True, until=until)
    if report["stopped"] or report["distrusted"]:
        logger.error("sweep stopped", extra=report)
        wiring.telemetry().measure("sweep stopped", SWEEP_STOPPED, 1)
    else:
        logger.info("swept", extra=report)
    return report
