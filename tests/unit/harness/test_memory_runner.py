"""Machines in memory: their time, and their deaths at requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stockyard.ports.runs import RunStart
from tests.harness.runs.accounts import runner_account
from tests.harness.runs.memory_runner import Death, Machine, MemoryRunner
from tests.harness.worlds.memory import FixedClock

HERE = runner_account("acme")


def start(name: str = "run_1", limit: int = 3600) -> RunStart:
    return RunStart(id=name, program=b"", variables={}, secret_variables={}, limit_seconds=limit)


def three_requests(machine: Machine, done: list[str]) -> Iterator[float]:
    machine.request("begin", lambda: done.append("begin"))
    yield 60
    machine.request("state", lambda: done.append("state"))
    machine.request("state", lambda: done.append("state again"))
    machine.print("over")


def test_program_goes_on_by_the_clock():
    done: list[str] = []
    clock = FixedClock()
    runner = MemoryRunner(lambda machine: three_requests(machine, done), clock, queue_seconds=10)
    machine = runner.start(HERE, start())
    assert (runner.state(HERE, machine).phase, done) == ("queued", [])
    clock.advance(10)
    assert (runner.state(HERE, machine).phase, done) == ("running", ["begin"])
    moment = runner.next_moment()
    assert moment is not None
    assert (moment - clock.now()).total_seconds() == 60
    clock.advance(60)
    assert runner.state(HERE, machine).phase == "ended"
    assert (done, runner.log(HERE, machine)) == (["begin", "state", "state again"], ["over"])


@pytest.mark.parametrize("when", ["before", "after"])
def test_machine_dies_at_each_request(when):
    whole = ["begin", "state", "state again"]
    recorder = MemoryRunner(lambda machine: three_requests(machine, []), FixedClock())
    recorder.start(HERE, start())
    recorder.play()
    recorder.clock.advance(60)
    recorder.play()
    assert len(recorder.recorded) == 3
    for index_of_death, request in enumerate(recorder.recorded):
        done: list[str] = []
        runner = MemoryRunner(lambda machine, done=done: three_requests(machine, done), FixedClock())
        runner.deaths.append(Death(when, request.name, request.number))
        machine = runner.start(HERE, start())
        runner.play()
        runner.clock.advance(60)
        state = runner.state(HERE, machine)
        assert (state.phase, done) == ("ended", whole[: index_of_death + (when == "after")])
        assert state.reason == "The program ended with 137."


def test_program_of_a_dead_machine_asks_for_nothing_more():
    calls: list[str] = []

    def stubborn(machine: Machine) -> None:
        try:
            machine.request("one", lambda: calls.append("one"))
        finally:
            machine.request("two", lambda: calls.append("two"))

    runner = MemoryRunner(stubborn, FixedClock())
    runner.deaths.append(Death("before", "one"))
    runner.start(HERE, start())
    runner.play()
    assert calls == []


def test_program_can_begin_before_the_answer_of_its_start():
    done: list[str] = []
    runner = MemoryRunner(lambda machine: three_requests(machine, done), FixedClock(), at_once=True)
    runner.start(HERE, start())
    assert done == ["begin"]
