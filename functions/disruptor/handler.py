"""The handler of the minute schedule that lets nodes of clusters go: empty ones, those that drifted, those too dear."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.edge.logs import logged
from stockyard.wiring import passes

logger = Logger()


@logged(logger)
def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Begin a pass of its own over every cluster that is due: ``{"tenant": ..., "cluster": ..., "lease": ...}``.

    Passes may overlap: each writes at the version that it read.
    """
    disruptor = passes.disruptor()
    if "cluster" in event:
        report = disruptor.woken(event["tenant"], event["cluster"], event["lease"])
    else:
        report = disruptor.due(wiring.clock().now())
    logger.info("disruption", extra=dict(report))
    return dict(report)
