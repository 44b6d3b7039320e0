"""The handler of the table's stream and of the minute schedule: what stands in the outbox is sent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from stockyard import wiring
from stockyard.edge.logs import logged
from stockyard.errors import StockyardError
from stockyard.metrics import OUTBOX_REFUSED
from stockyard.wiring import passes

if TYPE_CHECKING:
    from stockyard.domain.records import Outbox
    from stockyard.operations.relay.outbox import Relay

logger = Logger()

RESEND_AFTER = timedelta(seconds=60)
RESERVE_SECONDS = 10.0
"""Before the function's end no more is begun, so that what was begun can end."""


@logged(logger)
def lambda_handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Stream records answer with ``batchItemFailures``; anything else is the schedule, which sends what is overdue."""
    records = event.get("Records")
    if records is None:
        return _resend(context)
    relay = passes.relay()
    # A change of an item that stands there already is a failed attempt, which the schedule sees to.
    created = [change for change in passes.changes(records) if change.kind == "Outbox" and change.created]
    # What its writer sends itself comes here again only by the schedule, where that has not done so.
    written = [change for change in created if cast("Outbox", change.record()).sender is None]
    items = [(change.tenant, cast("Outbox", change.record())) for change in written]
    try:
        sent, failure, refused = relay.send_acceptable(items)
    except StockyardError as error:
        # Sent, and not removed: sent again.
        sent, failure, refused = 0, error, ()
    _tell_refused(relay, refused)
    if failure is None:
        return {"batchItemFailures": []}
    # The stream goes on from the first failure; later items must not overtake it.
    logger.warning("not sent", extra={"item": written[sent].id, "error": failure.error_type})
    return {"batchItemFailures": [{"itemIdentifier": written[sent].position}]}


def _resend(context: LambdaContext) -> dict[str, Any]:
    def remaining() -> float:
        return context.get_remaining_time_in_millis() / 1000 - RESERVE_SECONDS

    relay = passes.relay()
    resent = relay.resend(wiring.clock().now() - RESEND_AFTER, remaining)
    _tell_refused(relay, resent.refused)
    report = {"sent": resent.sent, "failed": resent.failed}
    logger.info("outbox resent", extra=report)
    return report


def _tell_refused(relay: Relay, refused: Sequence[str]) -> None:
    if refused:
        logger.error("outbox items refused", extra={"items": list(refused)[:100]})
        relay.telemetry.measure("outbox items refused", OUTBOX_REFUSED, len(refused))
