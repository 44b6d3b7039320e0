"""The door of the sweep's schedule."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring

logger = Logger()


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """One sweep over all tenants. The answer and the log name what was found, removed and refused.

    A refusal to remove suspiciously much, or anything after a restore, is logged as an error whose metric filter
    raises the alarm. ``{"reconciled": true}`` is an operator's word that the table is right again.
    """
    report = wiring.reap().run(reconciled=event.get("reconciled") is True)
    if report["stopped"] or report["distrusted"]:
        logger.error("SweepStopped", extra=report)
    else:
        logger.info("swept", extra=report)
    return report
