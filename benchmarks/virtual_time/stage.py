"""Our own account in virtual time: functions with their handlers, the stream, the bus, executions, and each call's
delay.

Handlers are the product's, with botocore's calls answered here. What a handler takes itself is its thread's CPU time,
as long as a function of its memory takes for it. All functions share one process, so that what a process keeps
(clients, sessions, the catalogue) is there as in a function that has worked before.
"""

from __future__ import annotations

import importlib
import json
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from time import thread_time
from typing import Any
from unittest.mock import patch
from zlib import crc32

from botocore.client import BaseClient
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from benchmarks.virtual_time.cloud import Cloud
from benchmarks.virtual_time.delays import CLIENT_MS, FULL_CORE_MB, Delays
from benchmarks.virtual_time.engine import VirtualTime
from benchmarks.virtual_time.executions import Executions, Mark
from benchmarks.virtual_time.lanes import Lanes, Running
from local.aws.accounts import REGION
from local.aws.corrections import capacity
from local.aws.corrections.quick.tables import quick_tables
from local.aws.corrections.tables import atomic_tables
from local.functions.patterns import any_filter, matches
from local.testing import direct_table
from local.testing.fresh_wiring import fresh_wiring
from stacks.functions import FUNCTIONS
from stockyard import side_by_side, wiring

TABLE = "bench"
SHARDS = 4
"""Of the stream of a table that is new."""
ENVIRONMENT = {
    "AWS_DEFAULT_REGION": REGION,
    "AWS_REGION": REGION,
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_EC2_METADATA_DISABLED": "true",
    "POWERTOOLS_SERVICE_NAME": "bench",
    "POWERTOOLS_LOG_LEVEL": "CRITICAL",
    "POWERTOOLS_TRACE_DISABLED": "true",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
    "STOCKYARD_TABLE": TABLE,
    "STOCKYARD_BUS": "bench",
    "STOCKYARD_ISSUER": "https://id.example/realms/bench",
    "STOCKYARD_API_URL": "https://api.example",
    "STOCKYARD_PAGE_KEY_SECRET": "bench/page-key",
    "STOCKYARD_MACHINE_KEY_SECRET": "bench/machine-key",
    "STOCKYARD_WORKFLOW_PREFIX": "workflow:",
}
DELAY_OF: Mapping[str, str] = {
    "GetItem": "read", "BatchGetItem": "read", "Query": "query", "TransactWriteItems": "write", "PutItem": "write",
    "UpdateItem": "write", "StartExecution": "start", "StopExecution": "start", "DescribeExecution": "start",
    "PutEvents": "events", "Invoke": "lambda", "GetSecretValue": "secret", "AssumeRole": "session",
    "CreateFleet": "fleet", "CreateLaunchTemplate": "change", "TerminateInstances": "change",
}  # fmt: skip
"""The delay of a call; one of EC2 that is not named only reads."""


@dataclass(slots=True)
class Reader:
    """A reader of the stream: what it has not delivered yet, by lane."""

    function: str
    filters: list[str]
    batch: int
    window: float
    lanes: int
    waiting: defaultdict[int, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    busy: set[int] = field(default_factory=set)


class Stage:
    """``marks`` tells what happened; ``units`` and ``counts`` what it cost."""

    def __init__(self, delays: Delays, cold_seconds: Mapping[str, tuple[float, float]] | None = None) -> None:
        self.time, self.delays, self.cloud = VirtualTime(), delays, Cloud()
        self.marks: list[Mark] = []
        self.counts: Counter[str] = Counter()
        self.units: dict[str, float] = {"read": 0.0, "write": 0.0}
        self.seconds: dict[str, float] = {}
        self._specs = {spec.name: spec for spec in FUNCTIONS}
        self._cold = cold_seconds or {}
        self._idle: dict[str, int] = {}
        self.executions = Executions(self.time, delays, self.marks, self.counts, self.invoke)
        self._readers: list[Reader] = []
        self._rules: list[tuple[str, dict[str, Any]]] = []
        self._seen = 0
        self.own: dict[int, Running] = {}

    # --- what is deployed ---

    @contextmanager
    def tables(self) -> Iterator[None]:
        """Inside this context the product's table is there."""
        with ExitStack() as stack:
            stack.enter_context(mock_aws())
            for correction in (quick_tables, capacity.counted_capacity, atomic_tables):
                stack.enter_context(correction())
            direct_table.make(TABLE)
            yield

    def deploy(self, template: Mapping[str, Any]) -> None:
        """Read the stream's readers and the bus's rules off the stage's template."""
        names = {
            key: each["Properties"]["FunctionName"].removeprefix("stockyard-dev-").replace("-", "_")
            for key, each in template["Resources"].items()
            if each["Type"] == "AWS::Lambda::Function" and "FunctionName" in each["Properties"]
        }
        for each in template["Resources"].values():
            properties = each.get("Properties", {})
            if each["Type"] == "AWS::Lambda::EventSourceMapping":
                patterns = [item["Pattern"] for item in properties["FilterCriteria"]["Filters"]]
                self._readers.append(
                    Reader(
                        names[properties["FunctionName"]["Ref"]],
                        patterns,
                        properties["BatchSize"],
                        properties.get("MaximumBatchingWindowInSeconds", 0),
                        properties.get("ParallelizationFactor", 1),
                    )
                )
            if each["Type"] == "AWS::Events::Rule" and "EventPattern" in properties:
                targets = [names[target["Arn"]["Fn::GetAtt"][0]] for target in properties["Targets"]]
                self._rules += [(target, properties["EventPattern"]) for target in targets]

    def freeze(self) -> None:
        """End every process: the next invocation of each function is a cold start."""
        self._idle = dict.fromkeys(self._specs, 0)

    # --- invocations ---

    def invoke(self, name: str, event: Mapping[str, Any]) -> Any:
        """Run a function and wait for its answer, within work of the virtual time. Raises what the handler raises."""
        spec = self._specs[name]
        share = min(1.0, spec.memory / FULL_CORE_MB)
        began = self.time.now
        if name in self._idle:
            if self._idle[name]:
                self._idle[name] -= 1
            else:
                imported, first = self._cold.get(name, (0.0, 0.0))
                self.counts["cold starts"] += 1
                self.time.sleep(self.delays.draw("cold") + imported + first / share)
        handler = importlib.import_module(f"functions.{name}.handler").lambda_handler
        self.marks.append(Mark(self.time.now, f"invoked {name}", event))
        self.counts[f"invocations of {name}"] += 1
        running = Running(name, share, thread_time())
        self.own[threading.get_ident()] = running
        try:
            return handler(dict(event), _Context(name, spec.timeout))
        finally:
            self.spend(running)
            del self.own[threading.get_ident()]
            self.marks.append(Mark(self.time.now, f"ended {name}"))
            self.seconds[name] = self.seconds.get(name, 0.0) + (self.time.now - began) * spec.memory / 1024
            if name in self._idle:
                self._idle[name] += 1

    def begin(self, name: str, event: Mapping[str, Any], delay: str) -> None:
        """Have a function run by itself, after the delay of that name."""
        self.time.spawn(lambda: self._alone(name, event), self.delays.draw(delay))

    def _alone(self, name: str, event: Mapping[str, Any]) -> None:
        self.invoke(name, json.loads(json.dumps(event)))

    def running(self) -> Running | None:
        """The invocation of this thread."""
        return self.own.get(threading.get_ident())

    def spend(self, running: Running, more: float = 0.0) -> None:
        """Let the time pass that this invocation has computed for."""
        spent = thread_time() - running.cpu
        self.time.sleep(running.computed(self.time.now, spent + more))
        running.cpu = thread_time()

    # --- calls of services ---

    def call(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        """Answer a call of botocore, after its delay."""
        running = self.running()
        if running is not None:
            self.spend(running, CLIENT_MS / 1000)
            self.marks.append(Mark(self.time.now, operation, parameters))
            self.counts[operation] += 1
            self.time.sleep(self.delays.draw(DELAY_OF.get(operation, "describe")))
        answer = self._answer(client, operation, parameters)
        self._stream()
        if running is not None:
            running.cpu = thread_time()
        return answer

    def _answer(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        service = client.meta.service_model.service_name
        if service == "dynamodb":
            return self._counted(client, operation, parameters)
        if service in ("ec2", "sts"):
            return self.cloud.answer(operation, parameters)
        if service == "events":
            return self._published(parameters["Entries"])
        if service == "lambda":
            self.begin(parameters["FunctionName"], json.loads(parameters["Payload"]), "asynchronous")
            return {"StatusCode": 202}
        if service == "secretsmanager":
            return {"SecretString": "0123456789abcdef" * 4}
        if service == "stepfunctions":
            return self.executions.answer(client, operation, parameters)
        raise AssertionError(f"nobody plays {service} {operation}")

    def _counted(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        capacity._changes.made = []
        answer = direct_table.answer(client, operation, parameters, DEFAULT_ACCOUNT_ID)
        used = capacity._consumed(parameters, answer)
        for each in used if isinstance(used, list) else [used]:
            self.units["read"] += each["ReadCapacityUnits"]
            self.units["write"] += each["WriteCapacityUnits"]
        return answer

    def _published(self, entries: Sequence[Mapping[str, Any]]) -> Any:
        for entry in entries:
            detail = json.loads(entry["Detail"])
            event = {"source": entry["Source"], "detail-type": entry["DetailType"], "detail": detail}
            self.counts["events"] += 1
            for target, pattern in self._rules:
                if target in self._specs and matches(pattern, event):
                    self.begin(target, event, "bus")
        return {"FailedEntryCount": 0, "Entries": [{"EventId": "1"} for _ in entries]}

    # --- the stream ---

    def _stream(self) -> None:
        """Hand what was written to the readers of the stream."""
        shard = dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables[TABLE].stream_shard
        records = [record.to_json() for record in shard.items[self._seen :]]
        self._seen += len(records)
        self.marks += [mark for record in records if (mark := self._claim_mark(record)) is not None]
        for reader in self._readers:
            for record in records:
                if any_filter(reader.filters, record):
                    partition = json.dumps(record["dynamodb"]["Keys"]["pk"]).encode()
                    self._wait(reader, crc32(partition) % (SHARDS * reader.lanes), _as_lambda_sees(record))

    def _claim_mark(self, record: Mapping[str, Any]) -> Mark | None:
        """The mark of a change of a claim: ``claim created``, ``claim bound`` or ``claim gone``."""
        new, old = record["dynamodb"].get("NewImage"), record["dynamodb"].get("OldImage")
        if (new or old or {}).get("kind", {}).get("S") != "NodeClaim":
            return None
        name = "created" if old is None else "gone" if new is None else None
        if name is None and "due_at" in (old or {}) and "due_at" not in (new or {}):
            name = "bound"
        return Mark(self.time.now, f"claim {name}", {"id": (new or old)["sk"]["S"]}) if name else None

    def _wait(self, reader: Reader, lane: int, record: dict[str, Any]) -> None:
        reader.waiting[lane].append(record)
        if lane not in reader.busy:
            reader.busy.add(lane)
            delay = self.delays.draw("stream") + reader.window
            self.time.spawn(lambda: self._deliver(reader, lane), delay)

    def _deliver(self, reader: Reader, lane: int) -> None:
        while batch := reader.waiting[lane][: reader.batch]:
            reader.waiting[lane] = reader.waiting[lane][reader.batch :]
            self.time.sleep(self.delays.draw("invoke"))
            self.invoke(reader.function, {"Records": batch})
        reader.busy.discard(lane)


@dataclass(frozen=True, slots=True)
class _Context:
    function_name: str
    timeout: int
    aws_request_id: str = "bench"
    function_version: str = "1"
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:1:function:bench"
    memory_limit_in_mb: int = 512

    def get_remaining_time_in_millis(self) -> int:
        """As if the invocation had just begun."""
        return self.timeout * 1000


def _as_lambda_sees(record: Mapping[str, Any]) -> dict[str, Any]:
    change = dict(record["dynamodb"])
    moment = change.get("ApproximateCreationDateTime")
    if isinstance(moment, datetime):
        change["ApproximateCreationDateTime"] = moment.timestamp()
    return {**record, "dynamodb": change}


class _Clock:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def now(self) -> datetime:
        """The virtual moment, with what the invocation has computed since its last call."""
        return self._stage.time.moment()

    def randomness(self, size: int) -> bytes:
        """From the seed."""
        return self._stage.delays.bytes(size)


class _Silence:
    def log(self, message: str, **keys: Any) -> None:
        """Says nothing."""

    def measure(self, message: str, metric: Any, value: float, **keys: Any) -> None:
        """Says nothing."""


@contextmanager
def deployed(stage: Stage, template: Mapping[str, Any], *, fresh: bool = True) -> Iterator[Stage]:
    """Inside this context the product's wiring is the stage's: its clock, table and services. What is not ``fresh``
    goes on with clients and catalogues that stages before have made, as a process does that has served before."""
    from stockyard.adapters.background import LambdaBackground

    def call(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        return stage.call(client, operation, parameters)

    client = cache(lambda: wiring._client("lambda"))

    def background() -> Any:
        running = stage.running()
        return LambdaBackground(client(), running.function if running else "")

    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, ENVIRONMENT))
        if fresh:
            stack.enter_context(fresh_wiring())
        stack.enter_context(stage.tables())
        stack.enter_context(patch.object(BaseClient, "_make_api_call", call))
        stack.enter_context(patch.object(side_by_side, "results", Lanes(stage).results))
        clock, silence = _Clock(stage), _Silence()
        stack.enter_context(patch.object(wiring, "clock", lambda: clock))
        stack.enter_context(patch.object(wiring, "telemetry", lambda: silence))
        stack.enter_context(patch.object(wiring, "background", background))
        stage.deploy(template)
        stack.callback(stage.time.close)
        yield stage
