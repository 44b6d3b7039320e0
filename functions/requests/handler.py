"""The handler of EventBridge: ``stockyard.request`` events do what the API would, by the same use cases and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.domain.platform import PLATFORM
from stockyard.domain.values.rights import OPERATOR
from stockyard.edge import idempotency
from stockyard.edge.logs import logged
from stockyard.edge.requests import Message, answers_of

logger = Logger()


@logged(logger)
def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """One event; its answer is ``RequestAccepted`` or ``RequestRefused`` on the same bus, sent before this returns.

    What needs no work in the background has its ``RequestCompleted`` too.
    """
    from functions.requests.commands import COMMANDS
    from stockyard.operations.cloud_accounts.event_accounts import rights_of_events, tenant_of_account

    platform = wiring.store(PLATFORM)
    tenant = tenant_of_account(platform, str(event.get("account")))
    rights = rights_of_events(platform, tenant) if tenant else OPERATOR
    clock = wiring.clock()
    salt = clock.randomness(idempotency.SALT_BYTES)
    answers = answers_of(event, tenant, COMMANDS, wiring.keys_of, _follow, clock.now(), salt, rights)
    wiring.bus().publish_all(answers)
    kind, detail = answers[0]
    keys = {"cluster_id": detail.get("cluster"), "operation_id": detail.get("operation_id")}
    keys["error"] = detail.get("problem", {}).get("error_type")
    logger.info("request answered", extra={"answer": kind, "tenant": tenant, **keys})
    return {"answer": kind}


def _follow(tenant: str, operation_id: str, envelope: Mapping[str, Any]) -> Message | None:
    """Let the request be told of the operation; the end of one that is over."""
    from stockyard.domain.operation_records import EventFollower
    from stockyard.operations.engine.followers import follow

    names = ("request", "detail_type", "correlation_id", "account")
    follower = EventFollower(**{name: str(envelope[name]) for name in names})
    return follow(wiring.services(tenant), operation_id, follower)
