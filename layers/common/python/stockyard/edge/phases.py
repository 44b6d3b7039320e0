"""The door of Step Functions: one phase of a workflow, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from aws_lambda_powertools import Logger

from stockyard.errors import StockyardError


class Step(Protocol):
    """How far a phase came: see ``stockyard.operations.run_phase.Step``."""

    @property
    def done(self) -> bool: ...

    @property
    def wait(self) -> int: ...

    @property
    def message(self) -> str: ...


def answer(
    logger: Logger, event: Mapping[str, Any], subject: Mapping[str, str], actions: Mapping[str, Callable[[], Step]]
) -> dict[str, Any]:
    """Do the one of ``actions`` that the event names; ``{done, wait}``. ``subject`` says in the log what it is about.

    Errors go out by class name, which the workflow document retries or catches.
    """
    facts = {"action": event["action"], "phase": event.get("phase"), **subject}
    try:
        step = actions[event["action"]]()
    except StockyardError as error:
        logger.warning("phase failed", extra={**facts, "error": error.error_type, "detail": error.detail})
        raise
    logger.info("phase answered", extra={**facts, "done": step.done, "detail": step.message})
    return {"done": step.done, "wait": step.wait}
