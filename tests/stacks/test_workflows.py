"""The workflow documents as they are generated: one of each kind, to be read when they change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from stacks.names import RUNNERS
from stacks.workflows import TOGETHER, documents, text
from stockyard import errors
from stockyard.lifecycle.phases import PROCEDURES
from stockyard.lifecycle.procedure import Procedure


@pytest.mark.parametrize("machine", ["provision-cluster", "delete-node", "power-node"])
def test_one_document_of_each_kind(machine: str, snapshot: SnapshotAssertion) -> None:
    """A creation that is undone and resumed, and waits for a token; a deletion that is tried again; a switch."""
    assert text(documents()[machine]) == snapshot


@pytest.mark.parametrize("procedure", PROCEDURES.values(), ids=lambda procedure: procedure.kind)
def test_a_state_stands_for_each_phase_or_for_all_of_them(procedure: Procedure) -> None:
    states = documents()[procedure.workflow]["States"]
    named = [name for name in states if name in procedure.names]
    phases = [phase.name for phase in procedure.phases if not phase.before_workflow]
    assert named == ([] if procedure.together else phases)
    assert (TOGETHER in states) == procedure.together
    assert set(procedure.ends) <= states.keys()


def test_one_state_stands_for_phases_of_claims_and_none_of_them_waits_for_a_token() -> None:
    together = [procedure for procedure in PROCEDURES.values() if procedure.together]
    assert {procedure.workflow for procedure in together} == {"provision-node", "delete-node"}
    for procedure in together:
        assert not procedure.resumable
        assert not any(phase.token_seconds for phase in procedure.phases)
        comment = documents()[procedure.workflow]["States"][TOGETHER]["Comment"]
        assert all(phase.name in comment for phase in procedure.phases if not phase.before_workflow)


def test_an_execution_outlasts_its_phases_and_a_compensation() -> None:
    for procedure in PROCEDURES.values():
        longest = max(phase.limit_seconds for phase in procedure.phases)
        assert procedure.timeout_seconds > longest, procedure.kind


def test_the_assembly_shows_the_documents_by_name(assembly: Any) -> None:
    folder: Path = assembly.folder / "workflows"
    written = {path.name.removesuffix(".asl.json"): json.loads(path.read_text()) for path in folder.iterdir()}
    assert written == documents()
    assert written.keys() == RUNNERS.keys()


def _leaves(kind: type[errors.StockyardError]) -> Iterator[type[errors.StockyardError]]:
    # What a provider has below them it handles itself.
    subclasses = [subclass for subclass in kind.__subclasses__() if subclass.__module__ == errors.__name__]
    for subclass in subclasses:
        yield from _leaves(subclass)
    # Room that cannot be used now is a lack of capacity too, which is raised by itself besides.
    if not subclasses or kind is errors.InsufficientCapacity:
        yield kind


def test_documents_retry_exactly_the_retryable_errors_and_races_that_were_lost() -> None:
    retryable = {
        leaf.__name__ for root in (errors.VendorError, errors.StoreError) for leaf in _leaves(root) if leaf.retryable
    }
    of_this_module = {name for name in vars(errors) if isinstance(getattr(errors, name), type)}
    tasks = [
        (machine, state["Retry"])
        for machine, document in documents().items()
        for state in document["States"].values()
        if state["Type"] == "Task"
    ]
    assert tasks
    for machine, rules in tasks:
        retried = {name for rule in rules for name in rule["ErrorEquals"]}
        assert retried & of_this_module == retryable | {errors.Conflict.__name__}, machine


NO_ROOM = "Lambda.TooManyRequestsException"


def _pauses(rule: dict[str, Any]) -> list[int]:
    """The longest pauses of a rule of retries, in seconds."""
    return [min(rule["IntervalSeconds"] * 2**number, rule["MaxDelaySeconds"]) for number in range(rule["MaxAttempts"])]


def test_a_phase_waits_a_quarter_of_an_hour_for_room_to_run() -> None:
    for machine, document in documents().items():
        for name, state in document["States"].items():
            if state["Type"] == "Task":
                (rule,) = (rule for rule in state["Retry"] if NO_ROOM in rule["ErrorEquals"])
                assert 840 <= sum(_pauses(rule)) <= 1200, (machine, name)
