"""The door of Step Functions: one phase of a claim's workflow, once."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.errors import StockyardError
from stockyard.operations.claims import ClaimFence
from stockyard.operations.fail_node import block, compensate, fail
from stockyard.operations.run_node_phase import run_node_phase
from stockyard.operations.run_phase import Step
from stockyard.operations.services import Services

logger = Logger()


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """``action`` is ``run``, ``compensate``, ``fail`` or ``block``; the answer is ``{done, wait}``.

    Errors go out by class name, which the workflow document retries or catches.
    """
    services = wiring.services(event["tenant"])
    fence = ClaimFence(event["claim_id"], event["operation_id"], int(event["attempt"]))
    facts = {"action": event["action"], "phase": event.get("phase"), "claim": fence.claim_id}
    try:
        step = _act(services, fence, event)
    except StockyardError as error:
        logger.warning("phase failed", extra={**facts, "error": error.error_type, "detail": error.detail})
        raise
    logger.info("phase answered", extra={**facts, "done": step.done, "detail": step.message})
    return {"done": step.done, "wait": step.wait}


def _act(services: Services, fence: ClaimFence, event: dict[str, Any]) -> Step:
    action = event["action"]
    if action == "run":
        return run_node_phase(services, fence, event["phase"])
    if action == "compensate":
        return compensate(services, fence)
    if action == "fail":
        return fail(services, fence, event["error"])
    return block(services, fence, event["error"])
