"""The handler of EventBridge: ``stockyard.request`` events do what the API would, by the same use cases and models."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.domain.platform import PLATFORM
from stockyard.edge import idempotency
from stockyard.edge.logs import logged
from stockyard.edge.requests import answer_of

logger = Logger()


@logged(logger)
def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """One event; its answer is ``RequestAccepted`` or ``RequestRefused`` on the same bus, sent before this returns."""
    from functions.requests.commands import COMMANDS
    from stockyard.operations.cloud_accounts.event_accounts import tenant_of_account

    tenant = tenant_of_account(wiring.store(PLATFORM), str(event.get("account")))
    clock = wiring.clock()
    kind, detail = answer_of(
        event, tenant, COMMANDS, wiring.keys_of, clock.now(), clock.randomness(idempotency.SALT_BYTES)
    )
    wiring.bus().publish(kind, detail)
    keys = {"cluster_id": detail.get("cluster"), "operation_id": detail.get("operation_id")}
    logger.info("request answered", extra={"answer": kind, "tenant": tenant, **keys})
    return {"answer": kind}
