"""The handler of the minute schedule that lets nodes of clusters go: empty ones, those that drifted, those too dear."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.edge.logs import logged

logger = Logger()


@logged(logger)
def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Look at every cluster that is due. Passes may overlap: each writes at the version that it read."""
    report = wiring.disruptor().due(wiring.clock().now())
    logger.info("disruption", extra=dict(report))
    return dict(report)
