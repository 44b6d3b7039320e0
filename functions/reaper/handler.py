"""The handler of the sweep's schedule."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.edge.logs import logged
from stockyard.metrics import SWEEP_STOPPED

logger = Logger()


@logged(logger)
def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """One sweep over all tenants, or of one place that such a sweep has handed out: ``{"tenant": ..., "place": ...}``.

    The answer and the log name what was found, removed and refused.

    A refusal to remove suspiciously much, or anything after a restore, is logged as an error, and its metric
    raises the alarm. ``{"reconciled": true}`` is an operator's word that the table is right again.
    """
    reaper = wiring.reap()
    if "place" in event:
        report = {"place": event["place"], **reaper.sweep_place(event["tenant"], event["place"])}
    else:
        report = reaper.run(reconciled=event.get("reconciled") is True)
    if report["stopped"] or report["distrusted"]:
        logger.error("sweep stopped", extra=report)
        wiring.telemetry().measure("sweep stopped", SWEEP_STOPPED, 1)
    else:
        logger.info("swept", extra=report)
    return report
