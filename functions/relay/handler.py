"""The door of the table's stream and of the minute schedule: what stands in the outbox is sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.errors import StockyardError

logger = Logger()

RESEND_AFTER = timedelta(seconds=60)


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Stream records answer with ``batchItemFailures``; anything else is the schedule, which sends what is overdue."""
    relay = wiring.relay()
    records = event.get("Records")
    if records is None:
        sent, failed = relay.resend(wiring.clock().now() - RESEND_AFTER)
        logger.info("outbox resent", extra={"sent": sent, "failed": failed})
        return {"sent": sent, "failed": failed}
    waiting = [(record, found) for record in records if (found := wiring.outbox_of(record)) is not None]
    try:
        sent, failure = relay.send_all([found for _, found in waiting])
    except StockyardError as error:
        # Sent, and not removed: sent again.
        sent, failure = 0, error
    if failure is None:
        return {"batchItemFailures": []}
    # The stream goes on from the first failure; later items must not overtake it.
    record, (_, item) = waiting[sent]
    logger.warning("not sent", extra={"item": item.id, "error": failure.error_type})
    return {"batchItemFailures": [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]}]}
