"""The door of EventBridge: ``stockyard.request`` events do what the API would, by the same use cases and models."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.edge.requests import answer_of

logger = Logger()


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """One event; its answer is ``RequestAccepted`` or ``RequestRefused`` on the same bus, sent before this returns."""
    from functions.requests.deeds import DEEDS

    tenant = wiring.configuration().event_tenants.get(str(event.get("account")))
    kind, detail = answer_of(event, tenant, DEEDS, wiring.keys_of, wiring.clock().now())
    wiring.bus().publish(kind, detail)
    logger.info("request answered", extra={"event": event.get("id"), "answer": kind})
    return {"answer": kind}
