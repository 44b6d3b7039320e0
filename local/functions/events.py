"""Callers of functions besides the API: the table's stream, schedules, the bus's rules, with batches and retries."""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

from local.functions.invocation import Invocation, Invoker, function_name
from local.functions.patterns import any_filter, matches

UNITS = {"minute": 60.0, "hour": 3600.0, "day": 86400.0}
Send = Callable[[str, str], None]
"""(ARN of a queue, text)"""


@dataclass(frozen=True, slots=True)
class StreamMapping:
    """An event source mapping on a table's stream. ``window`` and ``age`` are in seconds. -1 means without limit, also
    for ``retries``."""

    source: str
    function: str
    batch: int = 100
    window: float = 0.0
    retries: int = -1
    age: float = -1.0
    bisect: bool = False
    partial: bool = False
    parallel: int = 1
    """Batches at once; records of one partition key stay in order."""
    filters: tuple[str, ...] = ()
    failures: str = ""

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> StreamMapping:
        """From the resolved properties of ``AWS::Lambda::EventSourceMapping``."""
        destination = properties.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination", "")
        return cls(
            source=properties["EventSourceArn"],
            function=function_name(properties["FunctionName"]),
            batch=int(properties.get("BatchSize", 100)),
            window=float(properties.get("MaximumBatchingWindowInSeconds", 0)),
            retries=int(properties.get("MaximumRetryAttempts", -1)),
            age=float(properties.get("MaximumRecordAgeInSeconds", -1)),
            bisect=bool(properties.get("BisectBatchOnFunctionError")),
            partial="ReportBatchItemFailures" in properties.get("FunctionResponseTypes", ()),
            parallel=int(properties.get("ParallelizationFactor", 1)),
            filters=tuple(item["Pattern"] for item in properties.get("FilterCriteria", {}).get("Filters", ())),
            failures=destination,
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: by time (``every`` seconds) or by pattern on ``bus``. ``targets`` are names of functions."""

    arn: str
    targets: tuple[str, ...]
    every: float = 0.0
    bus: str = "default"
    pattern: Mapping[str, Any] | None = None

    @classmethod
    def from_properties(cls, arn: str, properties: Mapping[str, Any]) -> Rule:
        """From the resolved properties of ``AWS::Events::Rule``. Raises ``ValueError`` for a cron expression."""
        every = 0.0
        if text := properties.get("ScheduleExpression"):
            match = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", text)
            if not match:
                raise ValueError(f"the local cloud does not know the schedule {text}")
            every = int(match.group(1)) * UNITS[match.group(2)]
        targets = tuple(function_name(target["Arn"]) for target in properties.get("Targets", ()))
        return cls(arn, targets, every, properties.get("EventBusName", "default"), properties.get("EventPattern"))


class StreamReader:
    """Reads one stream from its beginning and calls the mapping's function, in order.

    ``read(position, limit)`` gives records from a position on. A batch that fails is tried again from its first failure
    (``scale`` seconds apart), split when the mapping says so, and in the end described on the failure queue.
    """

    def __init__(
        self,
        mapping: StreamMapping,
        read: Callable[[int, int], Sequence[Mapping[str, Any]]],
        invoker: Invoker,
        send: Send,
        stop: threading.Event,
        scale: float = 1.0,
    ) -> None:
        self._mapping = mapping
        self._read = read
        self._invoker = invoker
        self._send = send
        self._stop = stop
        self._scale = scale
        self._position = 0
        self._lanes = [
            _Lane(self._deliver, mapping.batch) for _ in range(mapping.parallel if mapping.parallel > 1 else 0)
        ]

    def run(self) -> None:
        """Read until stopped."""
        threads = [threading.Thread(target=lane.run, args=(self._stop,), daemon=True) for lane in self._lanes]
        for thread in threads:
            thread.start()
        while not self._stop.is_set():
            if not self.step():
                self._stop.wait(0.02)
        for thread in threads:
            thread.join()

    def step(self) -> bool:
        """Handles the next records, at most one batch. Returns False when there were none."""
        records = self._read(self._position, 1000)
        if not records:
            return False
        matching = []
        for record in records:
            self._position += 1
            if any_filter(list(self._mapping.filters), record):
                matching.append(record)
            if len(matching) == self._mapping.batch:
                break
        changes = [_as_lambda_sees(record, self._mapping.source) for record in matching]
        if self._lanes:
            for change in changes:
                key = json.dumps(change["dynamodb"]["Keys"]["pk"]).encode()
                self._lanes[crc32(key) % len(self._lanes)].add(change)
        elif changes:
            self._deliver(changes)
        return True

    def _deliver(self, records: list[dict[str, Any]]) -> None:
        attempts, waited = 0, 0.0
        while records and not self._stop.is_set():
            answer = self._invoker.invoke(self._mapping.function, json.dumps({"Records": records}).encode())
            first = self._first_failure(answer, records)
            if first is None:
                return
            if first > 0:
                records, attempts, waited = records[first:], 0, 0.0
            attempts += 1
            if 0 <= self._mapping.retries < attempts or 0 <= self._mapping.age <= waited:
                self._give_up(records, attempts)
                return
            pause = min(60.0, 2.0 ** min(attempts, 10) / 2)
            self._stop.wait(pause * self._scale)
            waited += pause
            if self._mapping.bisect and len(records) > 1:
                half = len(records) // 2
                self._deliver(records[:half])
                records = records[half:]

    def _first_failure(self, answer: Invocation, records: list[dict[str, Any]]) -> int | None:
        """Index of the first record to try again, None when all are done."""
        if answer.error:
            return 0
        if not self._mapping.partial:
            return None
        failures = (answer.value() or {}).get("batchItemFailures") or []
        numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
        named = [item.get("itemIdentifier") for item in failures]
        if not named:
            return None
        return min((numbers.index(name) for name in named if name in numbers), default=0)

    def _give_up(self, records: list[dict[str, Any]], attempts: int) -> None:
        if self._mapping.failures:
            numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
            batch = {"startSequenceNumber": numbers[0], "endSequenceNumber": numbers[-1], "batchSize": len(records)}
            context = {"functionArn": self._mapping.function, "approximateInvokeCount": attempts}
            text = json.dumps({"requestContext": context, "DDBStreamBatchInfo": batch})
            self._send(self._mapping.failures, text)


class _Lane:
    """The records of some partition keys, a batch at a time."""

    def __init__(self, deliver: Callable[[list[dict[str, Any]]], None], batch: int) -> None:
        self._deliver, self._batch = deliver, batch
        self._waiting: list[dict[str, Any]] = []
        self._changed = threading.Condition()

    def add(self, record: dict[str, Any]) -> None:
        """One more, behind those that wait."""
        with self._changed:
            self._waiting.append(record)
            self._changed.notify()

    def run(self, stop: threading.Event) -> None:
        """Deliver until stopped."""
        while not stop.is_set():
            with self._changed:
                if not self._waiting:
                    self._changed.wait(0.2)
                batch, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
            if batch:
                self._deliver(batch)


def _as_lambda_sees(record: Mapping[str, Any], source: str) -> dict[str, Any]:
    change = dict(record["dynamodb"])
    moment = change.get("ApproximateCreationDateTime")
    if isinstance(moment, datetime):
        change["ApproximateCreationDateTime"] = moment.replace(tzinfo=UTC).timestamp()
    return {**record, "dynamodb": change, "eventSourceARN": source}


class Asynchronous:
    """Lambda's asynchronous invocation: answered at once, tried up to three times, then sent to the failure queue."""

    def __init__(
        self,
        invoker: Invoker,
        send: Send,
        configs: Mapping[str, Mapping[str, Any]],
        stop: threading.Event,
        scale: float,
    ) -> None:
        self._invoker = invoker
        self._send = send
        self._configs = configs
        self._stop = stop
        self._scale = scale
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="async")

    def submit(self, function: str, event: Mapping[str, Any]) -> None:
        """Queue an event for a function."""
        if not self._stop.is_set():
            self._pool.submit(self.run, function, event)

    def run(self, function: str, event: Mapping[str, Any]) -> None:
        """Invoke with retries, one and two scaled minutes apart."""
        config = self._configs.get(function, {})
        retries = int(config.get("MaximumRetryAttempts", 2))
        for attempt in range(retries + 1):
            answer = self._invoker.invoke(function, json.dumps(event).encode())
            if not answer.error or self._stop.is_set():
                return
            if attempt < retries:
                self._stop.wait((attempt + 1) * 60 * self._scale)
        queue = config.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
        if queue:
            context = {"condition": "RetriesExhausted", "approximateInvokeCount": retries + 1, "functionArn": function}
            self._send(queue, json.dumps({"requestContext": context, "requestPayload": event}))

    def close(self) -> None:
        """Waits for running invocations, and drops waiting ones."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class Rules:
    """Schedules and the bus's rules."""

    def __init__(self, rules: Sequence[Rule], submit: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._rules = tuple(rules)
        self._submit = submit

    def heard(self, bus_arn: str, envelope: Mapping[str, Any]) -> None:
        """Handles an event on a bus."""
        account = bus_arn.split(":")[4]
        for rule in self._rules:
            is_own_bus = rule.bus == bus_arn.rsplit("/", 1)[-1] and rule.arn.split(":")[4] == account
            if is_own_bus and rule.pattern is not None and matches(rule.pattern, envelope):
                for target in rule.targets:
                    self._submit(target, envelope)

    def run_schedules(self, stop: threading.Event, scale: float) -> None:
        """Fire each schedule after its interval, again and again, until stopped."""
        timed = {rule.arn: rule for rule in self._rules if rule.every}
        due = {arn: time.monotonic() + rule.every * scale for arn, rule in timed.items()}
        while due and not stop.is_set():
            stop.wait(max(0.0, min(due.values()) - time.monotonic()))
            for arn in [arn for arn, moment in due.items() if moment <= time.monotonic()]:
                due[arn] = time.monotonic() + timed[arn].every * scale
                for target, event in self.scheduled(timed[arn]):
                    if not stop.is_set():
                        self._submit(target, event)

    @staticmethod
    def scheduled(rule: Rule) -> Iterator[tuple[str, dict[str, Any]]]:
        """The event of a schedule for each target."""
        for target in rule.targets:
            yield (
                target,
                {
                    "version": "0",
                    "id": str(uuid.uuid4()),
                    "detail-type": "Scheduled Event",
                    "source": "aws.events",
                    "account": rule.arn.split(":")[4],
                    "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "region": rule.arn.split(":")[3],
                    "resources": [rule.arn],
                    "detail": {},
                },
            )
