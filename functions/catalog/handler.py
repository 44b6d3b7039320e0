"""The handler of the catalogue's schedule."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.edge.logs import logged

logger = Logger()


@logged(logger)
def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Refresh the EC2 catalogue of every region in use whose data is missing or a day old, and spot prices of all.

    ``{"all": true}`` refreshes the fresh ones too. Answers and logs the number of types by region, of those with a spot
    price too, and why others kept what they had; raises when all regions failed.
    """
    report = wiring.catalog().run(everything=event.get("all") is True)
    answer = {
        "refreshed": dict(report.refreshed),
        "failed": dict(report.failed),
        "spot": dict(report.spot),
        "spot_failed": dict(report.spot_failed),
    }
    if report.failed or report.spot_failed:
        logger.warning("refreshed in part", extra=answer)
    else:
        logger.info("refreshed", extra=answer)
    return answer
