"""The phases of an operation in one call of its workflow: one after the other, as long as each is done at once."""

from __future__ import annotations

from collections.abc import Collection

from stockyard.errors import StockyardError
from stockyard.lifecycle.change import S
from stockyard.lifecycle.operation import OVER, phase_of
from stockyard.operations.engine.advance import Fence, Loaded, load
from stockyard.operations.engine.run_phase import run_phase
from stockyard.operations.engine.runner import Runner
from stockyard.operations.engine.step import Step
from stockyard.operations.services import Services

GO_ON_SECONDS = 10.0
"""A call that has taken longer begins no further phase: each may take most of the time that its function has."""
AT_ONCE = 1
"""Seconds until the call that goes on then."""


def run_phases(runner: Runner[S], services: Services, fence: Fence[S], among: Collection[str] | None = None) -> Step:
    """Do the first phase that is not over, and those behind it, until one is not done: then come again for that.
    ``among`` are the phases that are done here; one that is not among them is left as it is. None: all.

    Each is done by ``run_phase``, and recorded before the next one begins, so that a call that dies is made again
    from where it was. Raises what that raises; the error says in which ``phase``.
    """
    began = services.clock.now()
    subject, operation = load(services, fence)
    loaded: Loaded[S] | None = (subject, operation)
    procedure = runner.procedure(services, subject, operation.kind)
    phases = [phase.name for phase in procedure.phases if not phase.before_workflow]
    for name in phases:
        if phase_of(operation, name).state in OVER:
            continue
        if among is not None and name not in among:
            return Step(False, AT_ONCE, phase=name)
        if (services.clock.now() - began).total_seconds() > GO_ON_SECONDS:
            return Step(False, AT_ONCE, phase=name)
        try:
            step = run_phase(runner, services, fence, name, loaded)
        except StockyardError as error:
            error.phase = name
            raise
        loaded = None
        if not step.done:
            return Step(False, step.wait, step.message, phase=name)
    return Step(True, 0)
