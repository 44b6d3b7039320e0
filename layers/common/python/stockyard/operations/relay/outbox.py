"""Send what stands in the outbox: start executions, publish events. Sent twice is as good as once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from stockyard.domain.records import Outbox
from stockyard.domain.values import times
from stockyard.errors import Internal, StockyardError
from stockyard.metrics import RELAY_LAG
from stockyard.ports import EVENTS_AT_ONCE, Bus, Clock, Registry, Remove, Replace, Telemetry, Workflows, Write

REMOVED_AT_ONCE = 100
"""What one transaction takes."""
WORKFLOW, EVENT = "workflow", "event"
PAGE = 500
"""Overdue items that are read together, so that what starts an execution overtakes messages that are as late."""
PAUSE = timedelta(seconds=60)
LONGEST_PAUSE = timedelta(minutes=10)
"""How long an item that was not taken waits for the next time: doubled each time up to the longest."""

Waiting = tuple[str, Outbox]
"""(tenant, item)"""


@dataclass(slots=True)
class Resent:
    """Result for overdue items. Those that ``failed`` wait; ``refused`` are the ids of those refused for good."""

    sent: int = 0
    failed: int = 0
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Relay:
    """The ports of the relay, which works for all tenants. Most times there is nothing to start or to publish."""

    registry: Registry
    workflows: Callable[[], Workflows]
    bus: Callable[[], Bus]
    clock: Clock
    telemetry: Telemetry

    def send_all(self, items: Sequence[Waiting]) -> tuple[int, StockyardError | None]:
        """Send (tenant, item) in order, few calls for many, then remove them: how many, and what stopped the next."""
        sent, failure = self._send_in_order([item for _, item in items])
        by_tenant: dict[str, dict[str, Write]] = {}
        for tenant, item in items[:sent]:
            by_tenant.setdefault(tenant, {})[item.id] = Remove(Outbox, item.id)
        for tenant, writes in by_tenant.items():
            removals = list(writes.values())
            for start in range(0, len(removals), REMOVED_AT_ONCE):
                self.registry.store(tenant).commit(*removals[start : start + REMOVED_AT_ONCE])
        if sent:
            due = times.from_text(min(item.due_at for _, item in items[:sent]))
            lag = (self.clock.now() - due).total_seconds()
            self.telemetry.measure("outbox sent", RELAY_LAG, lag, items=sent)
        return sent, failure

    def send_own(self, tenant: str, item: Outbox) -> None:
        """Send an item whose ``sender`` is the caller, right after it was written. What is not taken now is sent by the
        minute schedule, as what a sender leaves that dies."""
        with suppress(StockyardError):
            self.send_all([(tenant, item)])

    def send_acceptable(self, items: Sequence[Waiting]) -> tuple[int, StockyardError | None, Sequence[str]]:
        """As ``send_all``, but what is refused for good is passed over and stays in the outbox: trying it again and
        again would hold up all that comes behind it. Its ids come last in the answer."""
        done, refused = 0, list[str]()
        while True:
            sent, failure = self.send_all(items[done:])
            done += sent
            if failure is None or failure.retryable:
                return done, failure, refused
            # One of the events that went together; alone, each is told which one.
            for item in items[done : done + EVENTS_AT_ONCE]:
                _, failure = self.send_all([item])
                if failure is not None and failure.retryable:
                    return done, failure, refused
                if failure is not None:
                    refused.append(item[1].id)
                done += 1

    def resend(self, before: datetime, remaining: Callable[[], float]) -> Resent:
        """Send what has been due since ``before``, page by page, while seconds are ``remaining``. What is not taken
        is due again later, behind the others: it hides none of them."""
        resent, tried = Resent(), set[tuple[str, str]]()
        while remaining() > 0:
            # The index may still show what was removed a moment ago.
            page = [item for item in self.registry.due(Outbox, before, PAGE) if _key(item) not in tried]
            if not page:
                break
            page.sort(key=lambda item: (_count(item[1], WORKFLOW) == 0, item[1].version))
            while page and remaining() > 0:
                size = _together(page[0][1])
                batch, page = page[:size], page[size:]
                tried.update(map(_key, batch))
                self._resend(batch, before, resent)
        return resent

    def _resend(self, batch: Sequence[Waiting], before: datetime, resent: Resent) -> None:
        try:
            sent, failure = self.send_all(batch)
        except StockyardError as error:
            # Sent, and not removed: sent again.
            sent, failure = 0, error
        resent.sent += sent
        unsent_items = batch[sent:]
        if failure is None:
            return
        if not failure.retryable and len(unsent_items) > 1:
            for waiting_item in unsent_items:
                self._resend([waiting_item], before, resent)
            return
        resent.failed += len(unsent_items)
        if not failure.retryable:
            resent.refused += [item.id for _, item in unsent_items]
        for waiting_item in unsent_items:
            self._put_off(waiting_item, before)

    def _put_off(self, waiting: Waiting, before: datetime) -> None:
        tenant, item = waiting
        pause = min(PAUSE * 2 ** min(item.version - 1, 10), LONGEST_PAUSE)
        later = replace(item, due_at=times.to_text(before + pause), version=item.version + 1)
        # Sent by someone else, or put off: at its version only, so that it does not come back. What fails otherwise
        # stays where it was, and is tried again by the next run.
        with suppress(StockyardError):
            self.registry.store(tenant).commit(Replace(later))

    def _send_in_order(self, items: Sequence[Outbox]) -> tuple[int, StockyardError | None]:
        """Events wait until a call is full; an execution starts at once, and twice is as good as once."""
        sent, waiting = 0, 0
        for index, item in enumerate(items):
            if waiting + _count(item, EVENT) > EVENTS_AT_ONCE:
                stopped = self._publish(items[sent:index])
                if stopped:
                    return sent, stopped
                sent, waiting = index, 0
            try:
                self._start(item)
                waiting += _count(item, EVENT)
            except StockyardError as error:
                stopped = self._publish(items[sent:index])
                return (sent, stopped) if stopped else (index, error)
        stopped = self._publish(items[sent:])
        return (sent, stopped) if stopped else (len(items), None)

    def _start(self, item: Outbox) -> None:
        """Start the executions of an item."""
        for kind, message in item.messages:
            if kind == WORKFLOW:
                workflow, payload = str(_part(item, message, "workflow")), _mapping(item, message, "input")
                self.workflows().start(workflow, str(_part(item, message, "name")), payload)
                self.telemetry.log("execution started", workflow=workflow, **payload)

    def _publish(self, items: Sequence[Outbox]) -> StockyardError | None:
        """Put the events among these on the bus; what refused them, if anything did."""
        try:
            events = [
                (str(_part(item, message, "detail_type")), _mapping(item, message, "detail"))
                for item in items
                for kind, message in item.messages
                if kind == EVENT
            ]
            for start in range(0, len(events), EVENTS_AT_ONCE):
                self.bus().publish_all(events[start : start + EVENTS_AT_ONCE])
        except StockyardError as error:
            return error
        return None


def _key(waiting: Waiting) -> tuple[str, str]:
    return waiting[0], waiting[1].id


def _together(item: Outbox) -> int:
    """Number of items that go together from this one on. Each time it was put off they are half as many, so that an
    item that is never taken does not take the same others with it for ever."""
    return max(1, EVENTS_AT_ONCE >> min(item.version - 1, 10))


def _count(item: Outbox, kind: str) -> int:
    return sum(each == kind for each, _ in item.messages)


def _part(item: Outbox, message: Mapping[str, Any], name: str) -> object:
    if name not in message:
        raise Internal(f"The outbox item {item.id} has no {name}")
    return message[name]


def _mapping(item: Outbox, message: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = _part(item, message, name)
    if not isinstance(value, Mapping):
        raise Internal(f"The {name} of the outbox item {item.id} is no object")
    return value
