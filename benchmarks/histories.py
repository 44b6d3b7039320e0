"""Number of events that an execution of each workflow document may have: a table for people, then one JSON line of
figures.

Read off the documents that are deployed, and the table of phases. A standard execution of Step Functions ends for good
at 25,000 events.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stacks.workflows import document
from stockyard.lifecycle import history
from stockyard.lifecycle.phases import PROCEDURES
from stockyard.lifecycle.procedure import Procedure

USUAL_WAIT, LEAST_WAIT = 15, 1
"""Seconds between two looks: where a driver says nothing, and where something follows at once."""
CONTINUED, COMPENSATE = "continued", "compensate"
_BEGIN_AND_END = 4
"""``ExecutionStarted``, a last state that is entered and left, and ``ExecutionSucceeded``."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Bound of one procedure. ``usual`` and ``most`` are the events that all its looks could have when every phase
    lasted to its limit, with the usual wait and with the least; ``execution`` those that one execution has at most,
    every retry included; ``executions`` how many follow each other then, at most."""

    workflow: str
    usual: int
    most: int
    execution: int

    @property
    def executions(self) -> int:
        """Number of executions that carry ``most`` events: each ends soon after it is handed over."""
        return -(-self.most // history.HANDED_OVER_AT)


def bound(procedure: Procedure) -> Bound:
    """The bound of a procedure's document. ``ValueError`` for one that could look for ever in one execution."""
    states: Mapping[str, Mapping[str, Any]] = document(procedure)["States"]
    for name in _polled(states):
        targets = {rule["Next"] for rule in states[f"{name}_done"]["Choices"]}
        if CONTINUED not in targets:
            raise ValueError(f"{procedure.workflow}: {name} may be looked at for ever")
    # After it is handed over, what is left are phases that end at their first look.
    once = sum(_visit(state) for state in states.values()) + _BEGIN_AND_END
    longest = history.HANDED_OVER_AT + once
    if COMPENSATE in states:
        # Undoing is not handed over: it is given up.
        undoing = sum(_visit(states[name]) for name in (COMPENSATE, "fail")) + history.LOOK_EVENTS + _BEGIN_AND_END
        longest = max(longest, history.GIVEN_UP_AT + undoing)
    return Bound(procedure.workflow, _looked_at(procedure, USUAL_WAIT), _looked_at(procedure, LEAST_WAIT), longest)


def bounds() -> list[Bound]:
    """The bounds of every document, by name."""
    return sorted((bound(procedure) for procedure in PROCEDURES.values()), key=lambda each: each.workflow)


def _polled(states: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Names of the states that are entered again after a wait."""
    return (state["Next"] for state in states.values() if state["Type"] == "Wait")


def _visit(state: Mapping[str, Any]) -> int:
    """The most events of one visit to a state: a task with all its retries, or another one."""
    if state["Type"] != "Task":
        return 2
    retries: int = sum(rule["MaxAttempts"] for rule in state["Retry"])
    return history.TOKEN_EVENTS + history.RETRY_EVENTS * retries


def _looked_at(procedure: Procedure, wait: int) -> int:
    events = 0
    for phase in procedure.phases:
        if not phase.before_workflow:
            looks = 1 + phase.limit_seconds // wait
            events += history.TOKEN_EVENTS if phase.token_seconds else looks * history.LOOK_EVENTS
    return events


def main() -> int:
    """Prints table and figures. Returns 1 when an execution may have more events than Step Functions takes."""
    table = bounds()
    head = ("workflow", "at 15 s", "at 1 s", "executions", "events of one, at most")
    lines = [f"{head[0]:<32}" + "".join(f"{title:>12}" for title in head[1:4]) + f"{head[4]:>26}"]
    for each in table:
        numbers = "".join(f"{number:>12,}" for number in (each.usual, each.most, each.executions))
        lines.append(f"{each.workflow:<32}{numbers}{each.execution:>26,}")
    sys.stdout.write("\n".join(lines) + "\n")
    figures = {"benchmark": "histories", "most": history.MOST_EVENTS, **{b.workflow: b.execution for b in table}}
    sys.stdout.write(json.dumps(figures) + "\n")
    return 0 if all(each.execution < history.MOST_EVENTS for each in table) else 1


if __name__ == "__main__":
    sys.exit(main())
