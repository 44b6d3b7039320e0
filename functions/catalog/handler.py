"""The handler of the catalogue's schedule."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard.edge.logs import logged
from stockyard.operations.cloud_accounts.offers import Report as Accounts
from stockyard.operations.node_providers.refresh_catalog import Report
from stockyard.wiring import passes

logger = Logger()


@logged(logger)
def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Refresh what accounts are offered whose cloud tells each apart, and the EC2 catalogue of every region in use
    whose data is missing or a day old, with spot prices of all.

    ``{"all": true}`` refreshes fresh regions too, ``{"prices_of": "eu-west-1"}`` that region alone (``region`` is what
    every event of the bus has). Answers and logs the number of types by region, of those with a spot price too, and why
    others kept what they had, and the same of accounts; raises when all regions failed.
    """
    region = event.get("prices_of")
    if isinstance(region, str):
        return _logged(passes.catalog().fetch(region), Accounts({}, {}))
    # First, for it takes little time and fails by account alone.
    accounts = passes.account_offers().run()
    return _logged(passes.catalog().run(everything=event.get("all") is True), accounts)


def _logged(report: Report, accounts: Accounts) -> dict[str, Any]:
    answer = {
        "refreshed": dict(report.refreshed),
        "failed": dict(report.failed),
        "spot": dict(report.spot),
        "spot_failed": dict(report.spot_failed),
        "accounts": dict(accounts.refreshed),
        "accounts_failed": dict(accounts.failed),
    }
    if report.failed or report.spot_failed or accounts.failed:
        logger.warning("refreshed in part", extra=answer)
    else:
        logger.info("refreshed", extra=answer)
    return answer
