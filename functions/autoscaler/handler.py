"""The handler of events and of the minute schedule that keeps the pools of clusters at the nodes they are to have."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.edge.logs import logged
from stockyard.wiring import passes

logger = Logger()


@logged(logger)
def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """An event of our bus names a cluster, a pool or a claim of a pool. The schedule begins a pass of its own over
    every cluster that is due: ``{"tenant": ..., "cluster": ..., "lease": ...}``.

    Events may come twice, late and in any order: a pass reads what is there, and writes at the versions that it read.
    """
    autoscaler = passes.autoscaler()
    detail = event.get("detail")
    # The detail of a scheduled event is an empty document.
    if detail:
        report = autoscaler.woken(str(detail["tenant"]), cluster_named(event))
    elif "cluster" in event:
        report = autoscaler.woken(event["tenant"], event["cluster"], event["lease"])
    else:
        report = autoscaler.due(wiring.clock().now())
    logger.info("pools", extra=report)
    return dict(report)


def cluster_named(event: dict[str, Any]) -> str:
    """The id of the cluster that an event is about: a claim's event names it, a pool's id begins with it."""
    detail = event["detail"]
    return str(detail["cluster_id"] if "cluster_id" in detail else detail["subject"].partition("/")[0])
