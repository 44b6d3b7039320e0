"""The door of Step Functions: one phase of a cluster's workflow, once."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.edge import phases
from stockyard.operations.advance import Fence
from stockyard.operations.await_report import await_report
from stockyard.operations.fail_cluster import block, compensate, fail
from stockyard.operations.run_phase import Step, run_phase
from stockyard.operations.services import Services

logger = Logger()


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """``action`` is ``run``, ``await``, ``compensate``, ``fail`` or ``block``; the answer is ``{done, wait}``."""
    services = wiring.services(event["tenant"])
    fence = Fence(event["cluster_id"], event["operation_id"], int(event["attempt"]))
    actions = {
        "run": lambda: run_phase(services, fence, event["phase"]),
        "await": lambda: _awaited(services, fence, event["task_token"]),
        "compensate": lambda: compensate(services, fence),
        "fail": lambda: fail(services, fence, event["error"]),
        "block": lambda: block(services, fence, event["error"]),
    }
    return phases.answer(logger, event, {"cluster": fence.cluster_id}, actions)


def _awaited(services: Services, fence: Fence, task_token: str) -> Step:
    await_report(services, fence, task_token)
    return Step(True, 0)
