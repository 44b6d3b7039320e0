"""A walk through a workflow document in one process: the states call the engine, and waits pass on the test's clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any
from unittest.mock import patch

from local.functions.invocation import Invocation, failure
from stacks import workflows
from stockyard.domain.records import Cluster
from stockyard.errors import StockyardError
from stockyard.lifecycle.phases import PROCEDURES, Procedures
from stockyard.lifecycle.procedure import Procedure
from stockyard.operations.clusters.phases import RUNNER as CLUSTERS
from stockyard.operations.engine import run_phases
from stockyard.operations.engine.act import act
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.run_phase import run_phase
from stockyard.operations.engine.runner import Runner
from stockyard.operations.engine.step import Step
from stockyard.operations.node_claims.phases import RUNNER as CLAIMS
from stockyard.operations.services import Services
from tests.harness.worlds.states import Execution, MovingClock, States

RUNNERS: Mapping[str, Runner[Any]] = {"cluster_phases": CLUSTERS, "node_phases": CLAIMS}
MOST = 3000
"""States after which a walk that has not ended is given up."""


@cache
def document(procedure: Procedure, text: str = "") -> str:
    """The document of a procedure, or the given text of one, its functions named as ``RUNNERS`` names them."""
    text = text or workflows.text(workflows.document(procedure))
    for function in RUNNERS:
        text = text.replace(f"${{{function}}}", f"arn:aws:lambda:us-east-1:111111111111:function:{function}")
    return text


def current(name: str, procedures: Procedures = PROCEDURES) -> str:
    """The document of today of a workflow. A test may write ``_`` for ``-`` and leave the end ``-cluster`` away."""
    for procedure in procedures.values():
        if name.replace("_", "-") in (procedure.workflow, procedure.workflow.removesuffix("-cluster")):
            return document(procedure)
    raise KeyError(name)


def input_of(tenant: str, cluster: Cluster) -> dict[str, Any]:
    """The input of an execution that works on the cluster's operation, as the outbox has it."""
    return {
        "tenant": tenant,
        "cluster_id": cluster.id,
        "operation_id": cluster.operation_id,
        "attempt": cluster.attempt,
        "from_phase": cluster.phase,
    }


@dataclass
class Walk:
    """Plays documents for one tenant. ``before`` sees each payload before it is acted on, by phase where a
    call goes through several, and may raise."""

    services: Callable[[], Services]
    clock: MovingClock
    before: Callable[[Mapping[str, Any]], None] = lambda _: None
    waited: Callable[[], None] = lambda: None
    """What happens elsewhere while a workflow waits."""
    answer: Callable[[States, str], None] = lambda _states, _token: None
    """Answers a task token that a state has just handed out, or lets it expire."""
    executions: int = field(init=False, default=0)
    """How many executions the last walk took."""
    _states: States = field(init=False)
    _execution: Execution | None = field(init=False, default=None)
    _phase: str = field(init=False, default="")
    """The last phase of a call that goes through several."""

    def run(self, name: str, value: Mapping[str, Any], most: int = MOST) -> str:
        """Play a document from its start, and the executions that go on with it. The last state's name; ``still at
        ...`` with the state or the phase after ``most`` states."""
        self._states = States(self, self._invoke)
        self._states.create(name, self.text_of(name))
        self.executions = 0
        while True:
            self.executions += 1
            self._execution = execution = self._states.start(name, f"walk-{self.executions}", dict(value))
            while execution.running and len(execution.trail) <= most:
                if execution.wake is None:
                    self.answer(self._states, str(execution.token))
                self._states.carry_on(execution)
            most -= len(execution.trail)
            if execution.running or execution.state != "continued":
                return f"still at {self._phase or execution.state}" if execution.running else execution.state

    def text_of(self, name: str) -> str:
        """The text of a document by name; a test may have older ones."""
        return current(name, self.services().procedures)

    def now(self) -> datetime:
        """See ``MovingClock``."""
        return self.clock.now()

    def advance(self, seconds: float) -> datetime:
        """See ``MovingClock``. Time that a Wait state takes is when ``waited`` happens."""
        if seconds <= 0:
            return self.clock.now()
        moment = self.clock.advance(seconds)
        execution = self._execution
        if execution is not None and len(execution.trail) > 1:
            spec = self._states.documents[execution.machine]["States"][execution.trail[-2]]
            if spec["Type"] == "Wait" and not execution.retried:
                self.waited()
        return moment

    def _invoke(self, function: str, payload: Any) -> Invocation:
        def looked(runner: Runner[Any], services: Services, fence: Fence[Any], name: str, *loaded: Any) -> Step:
            self._phase = name
            self.before({**payload, "phase": name})
            return run_phase(runner, services, fence, name, *loaded)

        try:
            if "phase" in payload or payload["action"] != "run":
                self.before(payload)
            with patch.object(run_phases, "run_phase", looked):
                step = act(RUNNERS[function], self.services(), payload)
        except StockyardError as error:
            return failure(getattr(error, "workflow_name", type(error).__name__), str(error))
        return Invocation(json.dumps(step.answer).encode())
