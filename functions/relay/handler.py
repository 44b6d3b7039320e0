"""The door of the table's stream and of the minute schedule: what stands in the outbox is sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from stockyard import wiring
from stockyard.errors import StockyardError

logger = Logger()

RESEND_AFTER = timedelta(seconds=60)
RESERVE_SECONDS = 10.0
"""Before the function's end no more is begun, so that what was begun can end."""
OUTBOX_REFUSED = "OutboxRefused"
"""The line of the log that raises the alarm; the stack's metric filter looks for it."""


def lambda_handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Stream records answer with ``batchItemFailures``; anything else is the schedule, which sends what is overdue."""
    records = event.get("Records")
    if records is None:
        return _resend(context)
    relay = wiring.relay()
    waiting = [(record, found) for record in records if (found := wiring.outbox_of(record)) is not None]
    try:
        sent, failure, refused = relay.send_acceptable([found for _, found in waiting])
    except StockyardError as error:
        # Sent, and not removed: sent again.
        sent, failure, refused = 0, error, ()
    if refused:
        logger.error(OUTBOX_REFUSED, extra={"items": list(refused)})
    if failure is None:
        return {"batchItemFailures": []}
    # The stream goes on from the first failure; later items must not overtake it.
    record, (_, item) = waiting[sent]
    logger.warning("not sent", extra={"item": item.id, "error": failure.error_type})
    return {"batchItemFailures": [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]}]}


def _resend(context: LambdaContext) -> dict[str, Any]:
    def remaining() -> float:
        return context.get_remaining_time_in_millis() / 1000 - RESERVE_SECONDS

    resent = wiring.relay().resend(wiring.clock().now() - RESEND_AFTER, remaining)
    if resent.refused:
        logger.error(OUTBOX_REFUSED, extra={"items": resent.refused[:100]})
    report = {"sent": resent.sent, "failed": resent.failed}
    logger.info("outbox resent", extra=report)
    return report
