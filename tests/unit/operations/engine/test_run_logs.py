"""Logs of runs: each line once and in order, whatever is delivered twice; bounded, and free of secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.testing.memory_store import MemoryRegistry
from stockyard.domain.operation_records import Operation, OperationRun, RunLog
from stockyard.errors import IllegalTransition, NotFound, VendorUnavailable
from stockyard.operations.engine import run_logs
from stockyard.operations.engine.run_logs import append, begin_run, end_run, lines_after, log_id
from stockyard.operations.services import Services
from stockyard.ports import Create
from tests.harness.worlds.ports import memory_services

OPERATION = "op_1"


def _services() -> Services:
    services = memory_services(MemoryRegistry())
    operation = Operation(OPERATION, "create_node", "ncl_1", "running", (), services.now(), services.now(), "user:ann")
    services.store.commit(Create(operation))
    return services


def _begin(services: Services, name: str = "apply", attempt: int = 1) -> None:
    begin_run(services, OPERATION, OperationRun(name, attempt, "launch", services.now()))


def _operation(services: Services) -> Operation:
    operation = services.store.get(Operation, OPERATION)
    assert operation is not None
    return operation


def _texts(services: Services, name: str | None = None) -> list[str]:
    lines, _, more = lines_after(services, _operation(services), {}, 10_000, name)
    assert not more
    return [line.text for line in lines]


def test_a_run_begins_and_ends_once():
    services = _services()
    _begin(services)
    _begin(services)
    end_run(services, OPERATION, "apply", 1, "exit code 1")
    ended_at = services.now()
    services.clock.advance(5)  # type: ignore[attr-defined]
    end_run(services, OPERATION, "apply", 1)
    [run] = _operation(services).runs
    assert (run.name, run.phase, run.ended_at, run.error) == ("apply", "launch", ended_at, "exit code 1")


def test_nothing_is_recorded_of_an_operation_that_is_not_there():
    services = _services()
    begin_run(services, "op_2", OperationRun("apply", 1, "launch", services.now()))
    end_run(services, "op_2", "apply", 1)
    with pytest.raises(NotFound, match="no run apply in attempt 1"):
        append(services, "op_2", "apply", 1, ["line"])


@given(
    st.lists(st.integers(0, 40), max_size=12),
    st.integers(1, 7),
)
def test_lines_that_are_delivered_twice_are_kept_once(begins: list[int], page: int):
    services = _services()
    _begin(services)
    every = [f"line {number}" for number in range(1, 61)]
    line_count = 0
    for begin in begins:
        first = min(begin, line_count) + 1
        line_count = max(line_count, append(services, OPERATION, "apply", 1, every[first - 1 : first + 9], first=first))
    position: run_logs.Position = {}
    read: list[run_logs.LogLine] = []
    more = True
    while more:
        lines, position, more = lines_after(services, _operation(services), position, page)
        assert len(lines) <= page
        read += lines
    assert [line.text for line in read] == every[:line_count]
    assert [line.number for line in read] == [*range(1, line_count + 1)]


def test_a_gap_is_refused_and_the_first_missing_line_is_named():
    services = _services()
    _begin(services)
    append(services, OPERATION, "apply", 1, ["one", "two"])
    with pytest.raises(IllegalTransition, match="Line 3 of the run apply is missing: 5 came"):
        append(services, OPERATION, "apply", 1, ["five"], first=5)


def test_a_part_that_could_not_be_stored_is_not_listed(monkeypatch: pytest.MonkeyPatch):
    services = _services()
    _begin(services)
    append(services, OPERATION, "apply", 1, ["one"])

    def refuse(*_: object) -> None:
        raise VendorUnavailable("down")

    with monkeypatch.context() as patched:
        patched.setattr(type(services.objects), "put", refuse)
        with pytest.raises(VendorUnavailable):
            append(services, OPERATION, "apply", 1, ["two"], first=2)
    assert _texts(services) == ["one"]
    append(services, OPERATION, "apply", 1, ["two"], first=2)
    assert _texts(services) == ["one", "two"]


def test_runs_are_read_in_the_order_in_which_they_began_and_by_name():
    services = _services()
    for name, attempt in (("plan", 1), ("apply", 1), ("apply", 2)):
        _begin(services, name, attempt)
        append(services, OPERATION, name, attempt, [f"{name} {attempt}"])
    assert _texts(services) == ["plan 1", "apply 1", "apply 2"]
    assert _texts(services, "apply") == ["apply 1", "apply 2"]


def test_lines_are_cut_and_more_than_the_most_are_dropped(monkeypatch: pytest.MonkeyPatch):
    services = _services()
    _begin(services)
    monkeypatch.setattr(run_logs, "MOST_BYTES", 6000)
    append(services, OPERATION, "apply", 1, ["word " * 2000])
    assert append(services, OPERATION, "apply", 1, ["more " * 1000], first=2) == 1
    assert append(services, OPERATION, "apply", 1, ["later"], first=3) == 1
    [text] = _texts(services)
    assert len(text) == run_logs.MOST_CHARACTERS
    log = services.store.get(RunLog, log_id(OPERATION, "apply", 1))
    assert log is not None
    assert log.is_cut


def test_secrets_are_hidden_and_lines_keep_their_numbers():
    services = _services()
    _begin(services)
    key = ["-----BEGIN RSA PRIVATE KEY-----", "MIIEow", "-----END RSA PRIVATE KEY-----"]
    append(services, OPERATION, "apply", 1, ["before", *key, "password: hunter2", "a\rb", "after"])
    assert _texts(services) == ["before", "(hidden)", "", "", "password: (hidden)", "a b", "after"]


def test_a_part_whose_time_is_over_has_no_lines():
    services = _services()
    _begin(services)
    append(services, OPERATION, "apply", 1, ["one", "two"])
    append(services, OPERATION, "apply", 1, ["three"], first=3)
    log = services.store.get(RunLog, log_id(OPERATION, "apply", 1))
    assert log is not None
    services.objects.delete(f"logs/{log.id}/{log.parts[0]}")
    assert _texts(services) == ["three"]
