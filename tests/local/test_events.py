"""Streams, schedules and rules call functions as AWS does: order, filters, partial failures, retries, queues."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from local.functions.events import Asynchronous, Rule, Rules, StreamMapping, StreamReader
from local.functions.invocation import Invocation, failure
from local.functions.patterns import matches

OUTBOX = json.dumps({"eventName": ["INSERT"], "dynamodb": {"NewImage": {"kind": {"S": ["Outbox"]}}}})


def record(number: int, kind: str = "Outbox", name: str = "INSERT") -> dict[str, Any]:
    return {"eventName": name, "dynamodb": {"SequenceNumber": str(number), "NewImage": {"kind": {"S": kind}}}}


class Scripted:
    """Remembers the sequence numbers of each call, and answers with ``script(numbers)``."""

    def __init__(self, script: Callable[[list[str]], Invocation]) -> None:
        self.calls: list[list[str]] = []
        self._script = script

    def invoke(self, function: str, payload: bytes) -> Invocation:
        numbers = [item["dynamodb"]["SequenceNumber"] for item in json.loads(payload)["Records"]]
        self.calls.append(numbers)
        return self._script(numbers)


def run(records: list[dict[str, Any]], script: Callable[[list[str]], Invocation], **more: Any) -> tuple[Any, Any]:
    invoker = Scripted(script)
    sent: list[tuple[str, dict[str, Any]]] = []
    mapping = StreamMapping(source="stream", function="relay", **{"batch": 10, "partial": True, **more})
    reader = StreamReader(
        mapping,
        lambda position, limit: records[position : position + limit],
        invoker,
        lambda queue, text: sent.append((queue, json.loads(text))),
        threading.Event(),
        scale=0.0,
    )
    while reader.step():
        pass
    return invoker.calls, sent


def fine(_numbers: list[str]) -> Invocation:
    return Invocation(b'{"batchItemFailures": []}')


def test_records_come_in_order_filtered_and_in_batches() -> None:
    records = [record(1), record(2, "Cluster"), record(3, name="REMOVE"), record(4), record(5), record(6)]
    calls, _ = run(records, fine, batch=3, filters=(OUTBOX,))
    assert calls == [["1", "4", "5"], ["6"]]


def test_a_partial_failure_is_retried_from_the_first_failure() -> None:
    failures = iter(["2", "3"])

    def script(numbers: list[str]) -> Invocation:
        first = next(failures, None)
        return Invocation(json.dumps({"batchItemFailures": [{"itemIdentifier": first}] if first else []}).encode())

    calls, sent = run([record(n) for n in (1, 2, 3)], script, retries=1)
    assert calls == [["1", "2", "3"], ["2", "3"], ["3"]]
    assert sent == []


def test_a_batch_that_always_fails_goes_to_the_failure_queue_and_the_stream_continues() -> None:
    def script(numbers: list[str]) -> Invocation:
        return failure("Crash", "x") if "1" in numbers else fine(numbers)

    calls, sent = run([record(1), record(2)], script, batch=1, retries=2, failures="queue")
    assert calls == [["1"], ["1"], ["1"], ["2"]]
    assert [(queue, body["DDBStreamBatchInfo"]["startSequenceNumber"]) for queue, body in sent] == [("queue", "1")]


def test_a_record_that_fails_beyond_its_age_goes_to_the_failure_queue_despite_retries() -> None:
    def script(numbers: list[str]) -> Invocation:
        return failure("Crash", "x") if "1" in numbers else fine(numbers)

    calls, sent = run([record(1), record(2)], script, batch=1, age=60.0, failures="queue")
    assert calls == [["1"]] * 7 + [["2"]]
    assert len(sent) == 1


def test_bisecting_isolates_the_bad_record() -> None:
    def script(numbers: list[str]) -> Invocation:
        return failure("Crash", "x") if "3" in numbers else fine(numbers)

    calls, sent = run([record(n) for n in (1, 2, 3, 4)], script, retries=2, bisect=True, failures="queue")
    assert ["1", "2"] in calls
    assert calls[-1] == ["4"] or ["4"] in calls
    assert [body["DDBStreamBatchInfo"]["startSequenceNumber"] for _, body in sent] == ["3"]


def test_asynchronous_invocations_are_retried_then_sent_to_the_queue() -> None:
    calls: list[str] = []
    sent: list[tuple[str, Any]] = []

    class Failing:
        def invoke(self, function: str, payload: bytes) -> Invocation:
            calls.append(function)
            return failure("Crash", "x")

    config = {"f": {"MaximumRetryAttempts": 1, "DestinationConfig": {"OnFailure": {"Destination": "queue"}}}}
    later = Asynchronous(Failing(), lambda q, text: sent.append((q, json.loads(text))), config, threading.Event(), 0.0)
    later.submit("f", {"a": 1})
    later.close()
    assert calls == ["f", "f"]
    assert sent[0][0] == "queue"
    assert sent[0][1]["requestPayload"] == {"a": 1}


def rule(**properties: Any) -> Rule:
    target = {"Arn": "arn:aws:lambda:us-east-1:111111111111:function:requests"}
    return Rule.from_properties("arn:aws:events:us-east-1:111111111111:rule/r", {"Targets": [target], **properties})


def test_rules_receive_only_events_of_their_bus_and_pattern() -> None:
    submitted: list[tuple[str, str]] = []
    pattern = {"source": ["stockyard.request"], "detail-type": ["CreateCluster"]}
    rules = Rules(
        [rule(EventBusName="ours", EventPattern=pattern)],
        lambda function, event: submitted.append((function, event["id"])),
    )
    bus = "arn:aws:events:us-east-1:111111111111:event-bus/ours"
    good = {"id": "1", "source": "stockyard.request", "detail-type": "CreateCluster"}
    rules.heard(bus, good)
    rules.heard(bus, {**good, "id": "2", "source": "stockyard"})
    rules.heard(bus + "-other", {**good, "id": "3"})
    rules.heard(bus.replace("111111111111", "222222222222"), {**good, "id": "4"})
    assert submitted == [("requests", "1")]


def test_a_schedule_fires_repeatedly() -> None:
    stop, fired = threading.Event(), []

    def submit(function: str, event: Any) -> None:
        fired.append((function, event["detail-type"]))
        if len(fired) == 3:
            stop.set()

    assert rule(ScheduleExpression="rate(5 minutes)").every == 300
    Rules([rule(ScheduleExpression="rate(1 minute)")], submit).run_schedules(stop, scale=0.0001)
    assert fired == [("requests", "Scheduled Event")] * 3
    with pytest.raises(ValueError, match="cron"):
        rule(ScheduleExpression="cron(0 1 * * ? *)")


@pytest.mark.parametrize(
    ("pattern", "event", "expected"),
    [
        ({"a": ["x", "y"]}, {"a": "y"}, True),
        ({"a": ["x"]}, {"b": "x"}, False),
        ({"a": {"b": [{"prefix": "clu_"}]}}, {"a": {"b": "clu_1"}}, True),
        ({"a": [{"exists": False}]}, {}, True),
        ({"a": [{"exists": True}]}, {}, False),
        ({"a": [{"anything-but": ["x"]}]}, {"a": "y"}, True),
        ({"a": [{"anything-but": "x"}]}, {"a": "x"}, False),
        ({"a": ["x"]}, {"a": ["w", "x"]}, True),
    ],
)
def test_patterns_match_events(pattern: dict[str, Any], event: dict[str, Any], expected: bool) -> None:
    assert matches(pattern, event) is expected
