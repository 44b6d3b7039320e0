"""Action that a state of a workflow document asks for: one action of one attempt of an operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stockyard.domain.records import Operation
from stockyard.lifecycle import history
from stockyard.lifecycle.change import Change, S
from stockyard.operations.engine.advance import Fence, advance, load
from stockyard.operations.engine.fail import block, compensate, fail
from stockyard.operations.engine.run_phase import run_phase
from stockyard.operations.engine.run_phases import run_phases
from stockyard.operations.engine.runner import Runner
from stockyard.operations.engine.step import Step
from stockyard.operations.services import Services


def act(runner: Runner[S], services: Services, event: Mapping[str, Any]) -> Step:
    """``action`` is ``run``, ``await``, ``compensate``, ``fail`` or ``block``. Raises what they raise. A run without a
    ``phase`` does what is next of all phases, see ``run_phases``.

    The event names the tenant, the subject (``cluster_id`` or ``claim_id``), the operation and its attempt. Where a
    phase may be looked at many times it also has the name of the ``execution``, the ``state`` of its data, and how
    often the call was made in vain (``retries``). Documents of earlier releases have none of these: theirs was the
    first execution of the attempt.
    """
    subject_id, operation_id = str(event[f"{runner.moves.noun}_id"]), str(event["operation_id"])
    execution = str(event.get("execution", f"{operation_id}-{event['attempt']}"))
    fence = Fence(runner.record, subject_id, operation_id, int(event["attempt"]), execution)
    action = event["action"]
    if action == "run":
        named = "phase" in event
        step = run_phase(runner, services, fence, event["phase"]) if named else run_phases(runner, services, fence)
        return _counted(runner, services, fence, event, step)
    if action == "await":
        return runner.awaits[event["phase"]](services, fence, event["task_token"])
    if action == "compensate":
        events = _events(event)
        return replace(compensate(runner, services, fence, give_up=history.is_full(events)), events=events)
    return {"fail": fail, "block": block}[action](runner, services, fence, event["error"])


def _events(event: Mapping[str, Any]) -> int:
    """The events of the execution with this look; 0 where its document does not count them."""
    return history.after_look(event["state"], int(event["retries"])) if "state" in event else 0


def _counted(runner: Runner[S], services: Services, fence: Fence[S], event: Mapping[str, Any], step: Step) -> Step:
    """The answer to a look, with the count of events. Where they become many, the next execution goes on."""
    events = _events(event)
    if step.done or not history.is_long(events):
        return replace(step, events=events)
    subject, operation = load(services, fence)
    procedure = runner.procedure(services, subject, operation.kind)

    def decide(subject: S, operation: Operation) -> Change[S] | None:
        """None when somebody has ended the operation meanwhile: the next look says so."""
        running = operation.status == "running"
        return runner.moves.hand_over(subject, operation, procedure, services.now()) if running else None

    advance(services, fence, decide)
    return replace(step, events=events, continued=True)
