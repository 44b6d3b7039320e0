"""The door of Step Functions: one phase of a claim's workflow, once."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from stockyard import wiring
from stockyard.edge import phases
from stockyard.operations.claims import ClaimFence
from stockyard.operations.fail_node import block, compensate, fail
from stockyard.operations.run_node_phase import run_node_phase

logger = Logger()


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """``action`` is ``run``, ``compensate``, ``fail`` or ``block``; the answer is ``{done, wait}``."""
    services = wiring.services(event["tenant"])
    fence = ClaimFence(event["claim_id"], event["operation_id"], int(event["attempt"]))
    actions = {
        "run": lambda: run_node_phase(services, fence, event["phase"]),
        "compensate": lambda: compensate(services, fence),
        "fail": lambda: fail(services, fence, event["error"]),
        "block": lambda: block(services, fence, event["error"]),
    }
    return phases.answer(logger, event, {"claim": fence.claim_id}, actions)
