"""The door of Step Functions: one phase of a cluster's workflow, once."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.errors import StockyardError
from stockyard.operations.advance import Fence
from stockyard.operations.await_report import await_report
from stockyard.operations.fail_cluster import block, compensate, fail
from stockyard.operations.run_phase import Step, run_phase
from stockyard.operations.services import Services

logger = Logger()


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """``action`` is ``run``, ``await``, ``compensate``, ``fail`` or ``block``; the answer is ``{done, wait}``.

    Errors go out by class name, which the workflow document retries or catches.
    """
    services = wiring.services(event["tenant"])
    fence = Fence(event["cluster_id"], event["operation_id"], int(event["attempt"]))
    facts = {"action": event["action"], "phase": event.get("phase"), "cluster": fence.cluster_id}
    try:
        step = _act(services, fence, event)
    except StockyardError as error:
        logger.warning("phase failed", extra={**facts, "error": error.error_type, "detail": error.detail})
        raise
    logger.info("phase answered", extra={**facts, "done": step.done, "detail": step.message})
    return {"done": step.done, "wait": step.wait}


def _act(services: Services, fence: Fence, event: dict[str, Any]) -> Step:
    action = event["action"]
    if action == "run":
        return run_phase(services, fence, event["phase"])
    if action == "await":
        await_report(services, fence, event["task_token"])
        return Step(True, 0)
    if action == "compensate":
        return compensate(services, fence)
    if action == "fail":
        return fail(services, fence, event["error"])
    return block(services, fence, event["error"])
