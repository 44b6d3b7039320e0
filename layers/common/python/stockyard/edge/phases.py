"""The handler of Step Functions: one phase of a workflow, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools import Logger

from stockyard.edge.logs import Handler, logged
from stockyard.errors import StockyardError


def handler(services: Callable[[str], Any], act: Callable[[Any, dict[str, Any]], Any]) -> Handler:
    """Answers ``{done, wait, events, continued}``, as ``act`` says by a ``stockyard.operations.engine.step.Step``.

    Errors go out by class name, which the workflow document retries or catches.
    """
    logger = Logger()

    @logged(logger)
    def lambda_handler(event: dict[str, Any], _: object) -> dict[str, Any]:
        tenant_services = services(event["tenant"])
        try:
            step = act(tenant_services, event)
        except StockyardError as error:
            at = {"phase": error.phase} if error.phase else {}
            logger.warning("phase failed", extra={"error": error.error_type, "detail": error.detail, **at})
            # The runtime logs every frame of what a handler raises, and gives it to the workflow. This is an outcome
            # that the workflow knows, and the line above says what there is to say.
            raise error.with_traceback(None) from None
        at = {"phase": step.phase} if step.phase else {}
        logger.info("phase answered", extra={"done": step.done, "detail": step.message, **at})
        answer: dict[str, Any] = step.answer
        return answer

    return lambda_handler
