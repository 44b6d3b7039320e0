"""The interpreter of workflow documents: its semantics one by one, and against moto's executor."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from local.functions.invocation import Invocation, failure
from stacks import workflows
from tests.harness.worlds.inprocess import workflow_world
from tests.harness.worlds.memory import FixedClock
from tests.harness.worlds.states import CALLBACK, SYNC, Execution, ExecutionAlreadyExists, States

Work = Callable[[dict[str, Any]], Any]


def task(**more: Any) -> dict[str, Any]:
    return {
        "Type": "Task",
        "Resource": SYNC,
        "Parameters": {"FunctionName": "work", "Payload": {"n.$": "$.n"}},
        "ResultPath": "$.result",
        **({} if "Next" in more else {"End": True}),
        **more,
    }


def document(**states: Any) -> str:
    return json.dumps({"StartAt": next(iter(states)), "States": states})


class Bench:
    """One machine with a function that answers what it is told to."""

    def __init__(self, text: str, *answers: Any, seed: int = 0) -> None:
        self.clock = FixedClock()
        self.answers = list(answers)
        self.asked: list[tuple[float, Any]] = []
        self.begun = self.clock.now()
        self.states = States(self.clock, self._invoke, seed)
        self.states.create("machine", text)

    def _invoke(self, function: str, payload: Any) -> Invocation:
        assert function == "work"
        self.asked.append((self.passed(), payload))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return failure(answer, "because") if isinstance(answer, str) else Invocation(json.dumps(answer).encode())

    def passed(self) -> float:
        return (self.clock.now() - self.begun).total_seconds()

    def start(self, value: Any = None) -> Execution:
        execution = self.states.start("machine", "one", {"n": 1} if value is None else value)
        self.states.run()
        return execution


def retry(*errors: str, **more: Any) -> dict[str, Any]:
    return {"ErrorEquals": list(errors), **more}


def test_a_retry_waits_longer_each_time_up_to_its_most_and_then_gives_up() -> None:
    rule = retry("Busy", IntervalSeconds=10, BackoffRate=2, MaxDelaySeconds=30, MaxAttempts=4)
    bench = Bench(document(a=task(Retry=[rule])), "Busy")
    result = bench.start()
    assert (result.status, result.error) == ("FAILED", "Busy")
    assert bench.states.failed() == [result]
    assert [moment for moment, _ in bench.asked] == [0, 10, 30, 60, 90]
    assert json.loads(result.cause or "") == {"errorType": "Busy", "errorMessage": "because"}
    assert result.trail == ["a"]


def test_each_rule_of_a_retry_counts_for_itself_and_the_first_that_names_the_error_decides() -> None:
    rules = [retry("Busy", IntervalSeconds=1, MaxAttempts=1), retry("States.ALL", IntervalSeconds=100, MaxAttempts=1)]
    bench = Bench(document(a=task(Retry=rules)), "Busy", "Other", "Busy")
    assert bench.start().error == "Busy"
    assert [moment for moment, _ in bench.asked] == [0, 1, 101]


def test_full_jitter_is_drawn_from_the_seed_and_within_the_interval() -> None:
    rule = retry("Busy", IntervalSeconds=100, MaxAttempts=1, JitterStrategy="FULL")

    def waited(seed: int) -> float:
        bench = Bench(document(a=task(Retry=[rule])), "Busy", {}, seed=seed)
        assert bench.start().status == "SUCCEEDED"
        return bench.passed()

    waits = [waited(seed) for seed in range(8)]
    assert waits == [waited(seed) for seed in range(8)]
    assert len(set(waits)) == 8
    assert all(0 <= seconds <= 100 for seconds in waits)


def test_retries_are_counted_anew_when_a_state_is_entered_again() -> None:
    text = document(
        a=task(Retry=[retry("Busy", IntervalSeconds=1, MaxAttempts=1)], Next="done"),
        done={
            "Type": "Choice",
            "Choices": [{"Variable": "$.result.Payload.ok", "BooleanEquals": True, "Next": "end"}],
            "Default": "a",
        },
        end={"Type": "Succeed"},
    )
    bench = Bench(text, "Busy", {"ok": False}, "Busy", {"ok": True})
    assert bench.start().status == "SUCCEEDED"
    assert len(bench.asked) == 4


def test_the_first_catch_that_names_the_error_decides_and_says_what_it_caught() -> None:
    rules = [
        {"ErrorEquals": ["Fenced"], "ResultPath": None, "Next": "quiet"},
        {"ErrorEquals": ["States.TaskFailed"], "ResultPath": "$.error", "Next": "told"},
        {"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "quiet"},
    ]
    text = document(a=task(Catch=rules), quiet={"Type": "Succeed"}, told={"Type": "Succeed"})
    assert Bench(text, "Fenced").start().output == {"n": 1}
    result = Bench(text, "Broken").start()
    assert result.trail == ["a", "told"]
    assert result.output["error"]["Error"] == "Broken"
    assert json.loads(result.output["error"]["Cause"])["errorMessage"] == "because"
    assert Bench(text, "States.Timeout").start().trail == ["a", "quiet"]


def test_an_error_is_retried_before_it_is_caught() -> None:
    text = document(
        a=task(Retry=[retry("Busy", MaxAttempts=2)], Catch=[{"ErrorEquals": ["States.ALL"], "Next": "end"}]),
        end={"Type": "Succeed"},
    )
    bench = Bench(text, "Busy")
    assert bench.start().status == "SUCCEEDED"
    assert len(bench.asked) == 3


def test_results_are_selected_placed_or_dropped() -> None:
    def output(**more: Any) -> Any:
        return Bench(document(a=task(**more)), {"ok": 7}).start({"n": 1, "deep": {"x": 2}}).output

    selected = {"ResultSelector": {"ok.$": "$.Payload.ok", "was": "fixed"}}
    assert output(**selected) == {"n": 1, "deep": {"x": 2}, "result": {"ok": 7, "was": "fixed"}}
    assert output(**selected, ResultPath="$.deep.y")["deep"] == {"x": 2, "y": {"ok": 7, "was": "fixed"}}
    assert output(**selected, ResultPath="$") == {"ok": 7, "was": "fixed"}
    assert output(ResultPath=None) == {"n": 1, "deep": {"x": 2}}


def test_wait_pass_and_fail() -> None:
    text = document(
        a={"Type": "Wait", "Seconds": 50, "Next": "b"},
        b={"Type": "Wait", "SecondsPath": "$.n", "Next": "c"},
        c={"Type": "Pass", "Result": {"x": 1}, "ResultPath": "$.made", "Next": "d"},
        d={"Type": "Fail", "Error": "Sorry", "Cause": "so it is"},
    )
    bench = Bench(text, {})
    result = bench.start({"n": 7})
    assert (result.status, result.error, result.cause) == ("FAILED", "Sorry", "so it is")
    assert result.data == {"n": 7, "made": {"x": 1}}
    assert bench.passed() == 57


def waiting(**more: Any) -> Bench:
    parameters = {"FunctionName": "work", "Payload": {"token.$": "$$.Task.Token"}}
    catch = [{"ErrorEquals": ["States.Timeout"], "ResultPath": "$.error", "Next": "late"}]
    a = task(Resource=CALLBACK, Parameters=parameters, TimeoutSeconds=600, Catch=catch, **more)
    return Bench(document(a=a, late={"Type": "Succeed"}), None)


def test_a_token_is_waited_for_and_its_answer_is_the_result() -> None:
    bench = waiting()
    execution = bench.start()
    assert bench.states.waiting() == [execution]
    token = bench.asked[0][1]["token"]
    assert not bench.states.succeed("another", {})
    bench.clock.advance(100)
    assert bench.states.succeed(token, {"ok": True})
    assert not bench.states.succeed(token, {"ok": False})
    bench.states.run()
    assert execution.output == {"n": 1, "result": {"ok": True}}
    assert bench.passed() == 100
    assert not bench.states.succeed(token, {})


def test_a_token_may_be_answered_while_its_function_runs() -> None:
    bench = waiting()
    states, invoke = bench.states, bench._invoke
    bench.states._invoke = lambda name, payload: (states.succeed(payload["token"], 1), invoke(name, payload))[1]
    assert bench.start().output["result"] == 1


def test_a_token_that_never_comes_times_out_on_the_clock() -> None:
    bench = waiting()
    execution = bench.start()
    bench.states.expire()
    bench.states.run()
    assert execution.trail == ["a", "late"]
    assert execution.output["error"] == {"Error": "States.Timeout", "Cause": ""}
    assert bench.passed() == 600


def test_a_whole_execution_times_out() -> None:
    text = json.loads(document(a={"Type": "Wait", "Seconds": 50, "Next": "b"}, b={"Type": "Succeed"}))
    bench = Bench(json.dumps({**text, "TimeoutSeconds": 40}), {})
    assert (bench.start().status, bench.passed()) == ("TIMED_OUT", 40)


def test_a_name_starts_one_execution() -> None:
    bench = waiting()
    first = bench.start()
    assert bench.states.start("machine", "one", {"n": 1}) is first
    with pytest.raises(ExecutionAlreadyExists):
        bench.states.start("machine", "one", {"n": 2})
    assert bench.states.stop("machine", "one")
    assert first.status == "ABORTED"
    with pytest.raises(ExecutionAlreadyExists):
        bench.states.start("machine", "one", {"n": 1})
    assert not bench.states.stop("machine", "two")


def test_executions_run_in_the_order_of_the_clock() -> None:
    text = document(a={"Type": "Wait", "SecondsPath": "$.n", "Next": "b"}, b=task())
    bench = Bench(text, {})
    for name, seconds in (("late", 30), ("early", 10)):
        bench.states.start("machine", name, {"n": seconds})
    bench.states.run()
    assert bench.asked == [(10, {"n": 10}), (30, {"n": 30})]


@pytest.mark.parametrize(
    "states",
    [
        {"a": {"Type": "Parallel", "Branches": [], "End": True}},
        {"a": task(InputPath="$.x")},
        {"a": task(Resource="arn:aws:states:::sqs:sendMessage")},
        {"a": task(Retry=[retry("Busy", Jitter=1)])},
        {"a": task(Catch=[{"ErrorEquals": ["X"], "Next": "a", "Output": {}}])},
        {"a": task(Next="nowhere")},
        {"a": {"Type": "Wait", "Timestamp": "2026-01-01T00:00:00Z", "End": True}},
    ],
)
def test_what_is_not_supported_is_refused_when_the_machine_is_made(states: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"not supported|not there"):
        Bench(document(**states), {})


def test_another_query_language_is_refused() -> None:
    text = json.dumps({**json.loads(document(a={"Type": "Succeed"})), "QueryLanguage": "JSONata"})
    with pytest.raises(ValueError, match="not supported"):
        Bench(text, {})


# --- against moto's executor ------------------------------------------------------------------------------------------

INPUT = {"tenant": "acme", "cluster_id": "clu_1", "operation_id": "op_1", "attempt": 1, "from_phase": ""}


class Scripted(Exception):
    """Stands for the errors that a script names."""


WAIT, DONE = {"done": False, "wait": 1}, {"done": True, "wait": 0}
SCRIPTS: dict[str, dict[str, list[Any]]] = {
    "provision": {},
    "provision, resumed": {},
    "provision, with trouble": {
        "account": ["VendorThrottled", "Runtime.ExitError", DONE],
        "network": [WAIT, WAIT, DONE],
        "endpoint": ["VendorRefused"],
        "compensate": ["StoreUnavailable", WAIT, DONE],
    },
    "provision, superseded": {"security": ["Fenced"]},
    "provision, not compensated": {"identity": ["VendorTimeout"], "compensate": ["PermissionDenied"]},
    "delete": {"network": ["VendorConflict", "Conflict", WAIT, DONE]},
    "delete, blocked": {"network": ["PermissionDenied"]},
}
"""Name -> phase or action -> its answers in order; text is an error of that name. The last one is repeated."""


def worker(answers: dict[str, list[Any]], wake: Callable[[str], object]) -> Work:
    """A function that answers by a script; whoever waits for a token is woken at once."""
    answers_left = {name: list(values) for name, values in answers.items()}

    def work(event: dict[str, Any]) -> Any:
        name = event.get("phase", event["action"])
        if "task_token" in event:
            wake(event["task_token"])
            return None
        values = answers_left.get(name, [DONE])
        answer = values.pop(0) if len(values) > 1 else values[0]
        if isinstance(answer, str):
            raise type(answer, (Scripted,), {})("so says the script")
        return answer

    return work


def outcome(
    status: str, output: Any, error: str | None, cause: str | None, trail: list[str], events: int
) -> dict[str, Any]:
    if isinstance(output, dict) and isinstance(output.get("error"), dict):
        output["error"]["Cause"] = json.loads(output["error"]["Cause"])["errorMessage"]
    return {"status": status, "output": output, "error": error, "cause": cause, "trail": trail, "events": events}


def by_moto(text: str, name: str, value: dict[str, Any]) -> dict[str, Any]:
    def wake(token: str) -> None:
        world.sfn.send_task_success(taskToken=token, output=json.dumps({"done": True}))

    work = worker(SCRIPTS[name], wake)
    with workflow_world({"work": lambda event, _: work(event)}) as world:
        execution = world.start(world.create("machine", text, {"cluster_phases": "work"}), "one", value)
        result = world.wait(execution)
        events = len(world.history(execution))
        return outcome(result.status, result.output, result.error, result.cause, world.states(execution), events)


def by_states(text: str, name: str, value: dict[str, Any]) -> dict[str, Any]:
    clock = FixedClock()
    started_at = clock.now()

    def invoke(function: str, payload: Any) -> Invocation:
        try:
            return Invocation(json.dumps(work(payload)).encode())
        except Scripted as error:
            return failure(type(error).__name__, str(error))

    states = States(clock, invoke)
    work: Work = worker(SCRIPTS[name], lambda token: states.succeed(token, {"done": True}))
    states.create("machine", text.replace("${cluster_phases}", "work"))
    result = states.start("machine", "one", value)
    states.run()
    assert clock.now() - started_at < timedelta(hours=1)
    return outcome(result.status, result.output, result.error, result.cause, result.trail, result.events)


@pytest.mark.parametrize(
    ("name", "from_phase", "last"),
    [
        ("provision", "", "ready"),
        ("provision, resumed", "control_plane", "ready"),
        ("provision, with trouble", "", "not_deployed"),
        ("provision, superseded", "", "superseded"),
        ("provision, not compensated", "", "not_deployed"),
        ("delete", "", "gone"),
        ("delete, blocked", "", "blocked"),
    ],
)
def test_our_documents_end_as_in_motos_executor(name: str, from_phase: str, last: str) -> None:
    text = workflows.text(workflows.documents()[f"{name.partition(',')[0]}-cluster"])
    value = {**INPUT, "from_phase": from_phase}
    result = by_states(text, name, value)
    assert result["trail"][-1] == last
    assert result == by_moto(text, name, value)
