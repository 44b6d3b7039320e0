"""What a state of a workflow document asks for: one action of one attempt of an operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard.lifecycle.change import S
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.fail import block, compensate, fail
from stockyard.operations.engine.run_phase import run_phase
from stockyard.operations.engine.runner import Runner
from stockyard.operations.engine.step import Step
from stockyard.operations.services import Services


def act(runner: Runner[S], services: Services, event: Mapping[str, Any]) -> Step:
    """``action`` is ``run``, ``await``, ``compensate``, ``fail`` or ``block``. Raises what they raise.

    The event names the tenant, the subject (``cluster_id`` or ``claim_id``), the operation and its attempt.
    """
    subject_id = str(event[f"{runner.moves.noun}_id"])
    fence = Fence(runner.record, subject_id, str(event["operation_id"]), int(event["attempt"]))
    action = event["action"]
    if action == "run":
        return run_phase(runner, services, fence, event["phase"])
    if action == "await":
        return runner.awaits[event["phase"]](services, fence, event["task_token"])
    if action == "compensate":
        return compensate(runner, services, fence)
    return {"fail": fail, "block": block}[action](runner, services, fence, event["error"])
