"""The first phase of every deletion: stop what still works on the subject, and wait until it can make nothing more."""

from __future__ import annotations

import math

from stockyard.domain.records import Operation
from stockyard.lifecycle.change import S
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.engine.runner import Runner
from stockyard.operations.services import Services
from stockyard.ports import Outcome


def quiesce(runner: Runner[S], services: Services, subject: S) -> Outcome:
    """Stop an execution that still runs, and wait until none of its calls can make anything more.

    The fence refuses every new intent, but a worker that had one may still make its call, and the cloud may hide
    what came of it. Only then do the later phases see all there is. Without open intents nothing is waited for.
    """
    if subject.execution is not None:
        # The name of an execution is its operation's id and the attempt.
        overtaken = services.store.get(Operation, subject.execution.rpartition("-")[0])
        if overtaken is not None:
            workflow = runner.procedure(services, subject, overtaken.kind).workflow
            services.workflows.stop(workflow, subject.execution)
            if services.workflows.running(workflow, subject.execution):
                return Outcome(False, "Waiting for the provisioning to stop.", wait_seconds=5)
    intents = [line.intended_at for line in lines_of(services, subject.id) if line.state == "intended"]
    if not intents:
        return Outcome(True)
    age = services.seconds_since(max(intents))
    seconds_left = math.ceil(services.settings.in_flight_seconds - age)
    if seconds_left <= 0:
        return Outcome(True)
    return Outcome(
        False, "Waiting for calls of the provisioning that may still be under way.", wait_seconds=seconds_left
    )
