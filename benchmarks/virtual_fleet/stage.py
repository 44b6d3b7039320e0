"""The stage of a fleet: the table is in memory, schedules run, and everything is counted.

As ``benchmarks.virtual_time.stage``; what differs is what thousands of clusters need: nothing is kept of what happened
but counts, an invocation that fails is tried again as Lambda does, and each cloud account has machines of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import patch
from zlib import crc32

from benchmarks.virtual_fleet.cloud import FleetCloud, number_of
from benchmarks.virtual_fleet.posts import Posts
from benchmarks.virtual_fleet.shortcuts import Shortcuts
from benchmarks.virtual_fleet.table import Item, LeanTable
from benchmarks.virtual_fleet.tally import Tally
from benchmarks.virtual_time.cold_starts import COLD_SECONDS
from benchmarks.virtual_time.delays import Delays
from benchmarks.virtual_time.executions import Mark
from benchmarks.virtual_time.stage import SHARDS, Reader, Stage
from local.functions.patterns import matches
from stacks.functions import SCHEDULES
from stockyard.adapters.catalog import Ec2PriceList
from stockyard.adapters.dynamodb.store import DynamoStore
from stockyard.adapters.price_requests import StoredPriceRequests
from stockyard.domain.values import times
from stockyard.edge.fairness import TenantLimits
from stockyard.operations.fleet.pools.passes import AHEAD_SECONDS, NEXT_SECONDS, Passes
from stockyard.operations.sweep.run import LAST_SWEPT

TRIES, AGAIN_SECONDS = 3, 60.0
"""How often an invocation for which nobody waits is tried, and after how long again (Lambda's guide: two retries)."""
Change = Callable[[Item | None, Item | None], None]


class _Nothing(list[Mark]):
    """A list of marks that keeps none, and tells of states of executions."""

    def __init__(self, state: Callable[[], None]) -> None:
        super().__init__()
        self._state = state

    def append(self, mark: Mark) -> None:
        if mark.name.startswith("state "):
            self._state()


class FleetStage(Stage):
    """``watchers`` are told each change of the table: the item before and after."""

    def __init__(self, delays: Delays) -> None:
        super().__init__(delays, COLD_SECONDS)
        self.tally = Tally(lambda: self.time.now)
        self.marks = _Nothing(lambda: self.tally.called("transitions", "own"))
        self.executions.marks = self.marks
        self.clouds = FleetCloud(self.time.moment)
        self.table = LeanTable(self._used)
        self.shortcuts, self.posts = Shortcuts(self.charge, self.table.has), Posts(self.charge)
        self.watchers: list[Change] = [self.shortcuts.forget, self._note_bound, self._note_late]
        self._patterns: dict[int, list[Any]] = {}
        self._created: dict[str, float] = {}
        self._turns: dict[str, float] = {}
        self._position = 0
        self.failures: dict[str, Exception] = {}
        """The first failure of each kind."""

    # --- what is deployed ---

    @contextmanager
    def tables(self) -> Iterator[None]:
        """See ``Stage.tables``. What counts seconds or sleeps does so by the clock of the stage."""
        own = {time.monotonic: lambda: self.time.now, time.sleep: self.time.sleep}
        with ExitStack() as stack:
            for kind in (Passes, Ec2PriceList, StoredPriceRequests, TenantLimits, DynamoStore):
                make: Any = kind.__init__
                defaults = tuple(own.get(value, value) for value in make.__defaults__ or ())
                named = {name: own.get(value, value) for name, value in (make.__kwdefaults__ or {}).items()}
                stack.enter_context(patch.object(make, "__defaults__", defaults or None))
                stack.enter_context(patch.object(make, "__kwdefaults__", named or None))
            stack.enter_context(self.shortcuts.active())
            stack.enter_context(self.posts.active())
            yield

    def deploy(self, template: Mapping[str, Any]) -> None:
        """See ``Stage.deploy``; the schedules too. Every process is new."""
        super().deploy(template)
        for reader in self._readers:
            self._patterns[id(reader)] = [json.loads(text) for text in reader.filters]
        self.freeze()

    def schedule(self) -> None:
        """Begin the schedules, each at a moment of its own."""
        for function, (minutes, _) in SCHEDULES.items():
            self._again(function, minutes * 60.0, self.delays.between(0, min(60.0, minutes * 60.0)))

    def _again(self, function: str, interval: float, wait: float) -> None:
        def tick() -> None:
            self.time.spawn(lambda: self._scheduled(function, interval))
            self.time.after(interval, tick)

        self.time.after(wait, tick)

    def _scheduled(self, function: str, interval: float) -> None:
        began = self.time.now
        self._alone(function, {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}})
        # What lasts longer than the interval makes the next one's work late.
        self.tally.late[f"{function}, scheduled"].append(max(0.0, self.time.now - began - interval))

    # --- invocations ---

    def invoke(self, name: str, event: Mapping[str, Any]) -> Any:
        """See ``Stage.invoke``."""
        began = self.time.now
        self.tally.begin(name)
        try:
            return super().invoke(name, event)
        finally:
            self.tally.end(name, self.time.now - began)

    def _alone(self, name: str, event: Mapping[str, Any]) -> None:
        for attempt in range(TRIES):
            try:
                self.invoke(name, json.loads(json.dumps(event)))
            except Exception as error:  # as Lambda, which tries again
                self._failed(name, error)
                self.time.sleep(AGAIN_SECONDS * (attempt + 1))
            else:
                return

    def _failed(self, name: str, error: Exception) -> None:
        self.tally.counts[f"failed: {name} {type(error).__name__}"] += 1
        self.failures.setdefault(f"{name} {type(error).__name__}", error)

    def charge(self, seconds: float) -> None:
        """Let the invocation under way have computed for so much longer."""
        running = self.running()
        if running is not None:
            running.cpu -= seconds

    # --- calls of services ---

    def _used(self, kind: str, partition: str, units: float) -> None:
        running = self.running()
        if running is not None or self.time.now > 0:
            self.tally.used(kind, partition, units, running.function if running else "-")

    def call(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        """See ``Stage.call``."""
        service = client.meta.service_model.service_name
        if service != "dynamodb":
            self.tally.called(f"{service} {operation}", number_of(client))
        else:
            self.tally.calls[f"dynamodb {operation}"] += 1
        return super().call(client, operation, parameters)

    def _answer(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        service = client.meta.service_model.service_name
        if service == "dynamodb":
            return self.table.answer(client, operation, parameters)
        if service == "kms":
            return {"Plaintext": b"0" * 32, "CiphertextBlob": b"sealed"}
        own = service in ("events", "lambda", "secretsmanager", "stepfunctions")
        if not own:
            return self.clouds.answer(client, operation, parameters)
        return super()._answer(client, operation, parameters)

    # --- the stream ---

    def _stream(self) -> None:
        changes, self.table.changes = self.table.changes, []
        for old, new in changes:
            for watcher in self.watchers:
                watcher(old, new)
            self._position += 1
            record: dict[str, Any] | None = None
            for reader in self._readers:
                kind = (new or {}).get("kind")
                if kind is None:
                    continue
                short = {
                    "eventName": "INSERT" if old is None else "MODIFY",
                    "dynamodb": {"NewImage": new},
                }
                if any(matches(pattern, short) for pattern in self._patterns[id(reader)]):
                    record = record or self._record(old, new, short)
                    self._wait(reader, crc32((new or {})["pk"]["S"].encode()) % (SHARDS * reader.lanes), record)

    def _record(self, old: Item | None, new: Item | None, short: Mapping[str, Any]) -> dict[str, Any]:
        there = new or old or {}
        images = {**({"NewImage": new} if new else {}), **({"OldImage": old} if old else {})}
        return {
            **short,
            "eventID": str(self._position),
            "eventSource": "aws:dynamodb",
            "dynamodb": {
                "Keys": {name: there[name] for name in ("pk", "sk")},
                "SequenceNumber": str(self._position),
                "ApproximateCreationDateTime": self.time.now,
                **images,
            },
        }

    def _deliver(self, reader: Reader, lane: int) -> None:
        while batch := reader.waiting[lane][: reader.batch]:
            reader.waiting[lane] = reader.waiting[lane][reader.batch :]
            self.tally.late[f"{reader.function}, stream"].append(
                self.time.now - float(batch[0]["dynamodb"]["ApproximateCreationDateTime"])
            )
            self.time.sleep(self.delays.draw("invoke"))
            try:
                answer = self.invoke(reader.function, {"Records": batch})
            except Exception as error:  # the batch comes again
                self._failed(reader.function, error)
                self.time.sleep(1.0)
                reader.waiting[lane] = batch + reader.waiting[lane]
                continue
            failed = {each["itemIdentifier"] for each in (answer or {}).get("batchItemFailures", ())}
            if failed:
                numbers = [record["dynamodb"]["SequenceNumber"] for record in batch]
                first = min(numbers.index(each) for each in failed)
                reader.waiting[lane] = batch[first:] + reader.waiting[lane]
                self.tally.counts[f"failed: {reader.function} items"] += 1
                self.time.sleep(1.0)
        reader.busy.discard(lane)

    # --- figures ---

    def figures(self) -> dict[str, Any]:
        """The figures since the last call; see ``Tally.hour``."""
        for name in ("events", "cold starts"):
            self.tally.counts[name] += self.counts.pop(name, 0)
        return self.tally.hour()

    # --- what is late ---

    def _note_bound(self, old: Item | None, new: Item | None) -> None:
        """Seconds from each claim's making to its place."""
        there = new or old or {}
        if there.get("kind", {}).get("S") != "NodeClaim":
            return
        name = there["sk"]["S"]
        if old is None and new is not None and "due_at" in new:
            self._created[name] = self.time.now
        elif name in self._created and (new is None or "due_at" not in new):
            self.tally.bound.append(self.time.now - self._created.pop(name))

    def _note_late(self, old: Item | None, new: Item | None) -> None:
        """Seconds from when a cluster or tenant was due to when its pass begins."""
        if (old is None and new is None) or (new or old or {}).get("kind", {}).get("S") not in LATE:
            return
        now = self.time.moment()
        kind = (new or old or {})["kind"]["S"]
        if kind == "Fact":
            self._note_turn(new)
        elif old is not None and "due_at" in old and new is not None and "due_at" in new:
            due = times.from_text(old["due_at"]["S"])
            lease = times.from_text(new["due_at"]["S"])
            begins = lease - now <= timedelta(seconds=NEXT_SECONDS + 1) and lease > now
            if begins and due <= now + timedelta(seconds=AHEAD_SECONDS):
                self.tally.late[LATE[kind]].append(max(0.0, (now - due).total_seconds()))

    def _note_turn(self, new: Item | None) -> None:
        if new is None or new["sk"]["S"] != LAST_SWEPT:
            return
        tenant, now = new["value"]["S"], self.time.now
        if tenant in self._turns:
            late = now - self._turns[tenant] - 60.0 * SCHEDULES["reaper"][0]
            self.tally.late["turn of the sweep"].append(max(0.0, late))
        self._turns[tenant] = now


LATE = {"Pool": "pass over pools", "ClusterDisruption": "pass over disruption", "Fact": ""}
"""What the passes are called that look at a record which is due, by its kind."""
