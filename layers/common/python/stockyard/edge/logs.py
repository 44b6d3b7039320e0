"""Fields that stand in every line of a function's log, so that the lines of all functions find each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools import Logger

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]

CORRELATION = ("tenant", "cluster_id", "claim_id", "operation_id", "attempt", "phase", "action")
"""Fields of a workflow's event that are keys of its lines. Every function uses the same names, and ``request_id``."""


def correlation(event: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that an event brings. Of an HTTP request and of an event of a bus its own id is the ``request_id``."""
    keys = {name: event[name] for name in CORRELATION if name in event}
    context = event.get("requestContext")
    request_id = context.get("requestId") if isinstance(context, Mapping) else event.get("id")
    return {**keys, "request_id": request_id} if request_id else keys


def logged(logger: Logger) -> Callable[[Handler], Handler]:
    """A decorator of handlers: each line of ``logger`` has Lambda's context (``function_request_id``, ``cold_start``)
    and the keys of this event. Those of the event before are gone, also in a process that serves many."""

    def decorate(handler: Handler) -> Handler:
        def with_keys(event: dict[str, Any], context: Any) -> dict[str, Any]:
            logger.append_keys(**correlation(event))
            return handler(event, context)

        return logger.inject_lambda_context(with_keys, clear_state=True)

    return decorate
