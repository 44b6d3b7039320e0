"""The handler of Step Functions: one phase of a workflow, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from aws_lambda_powertools import Logger

from stockyard.errors import StockyardError


class Step(Protocol):
    """How far a phase came: see ``stockyard.operations.engine.step.Step``."""

    @property
    def done(self) -> bool: ...

    @property
    def wait(self) -> int: ...

    @property
    def message(self) -> str: ...


def answer(logger: Logger, act: Callable[[], Step]) -> dict[str, Any]:
    """Do one action of a phase; ``{done, wait}``.

    Errors go out by class name, which the workflow document retries or catches.
    """
    try:
        step = act()
    except StockyardError as error:
        logger.warning("phase failed", extra={"error": error.error_type, "detail": error.detail})
        raise
    logger.info("phase answered", extra={"done": step.done, "detail": step.message})
    return {"done": step.done, "wait": step.wait}
