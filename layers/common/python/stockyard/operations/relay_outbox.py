"""Send what stands in the outbox: start executions, publish events. Sent twice is as good as once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from stockyard.domain.records import Outbox
from stockyard.errors import StockyardError
from stockyard.ports import EVENTS_AT_ONCE, Bus, Registry, Remove, Workflows, Write

REMOVED_AT_ONCE = 100
"""What one transaction takes."""


@dataclass(frozen=True, slots=True)
class Relay:
    """The ports of the relay, which works for all tenants."""

    registry: Registry
    workflows: Workflows
    bus: Bus

    def send(self, tenant: str, item: Outbox) -> None:
        """Send one item, then remove it. An item that is gone already was sent by someone else."""
        if item.kind == "workflow":
            self._start(item)
        else:
            self.bus.publish_all([_event(item)])
        self.registry.store(tenant).commit(Remove(Outbox, item.id))

    def send_all(self, items: Sequence[tuple[str, Outbox]]) -> tuple[int, StockyardError | None]:
        """Send (tenant, item) in order, few calls for many, then remove them: how many, and what stopped the next."""
        sent, failure = self._send_in_order([item for _, item in items])
        by_tenant: dict[str, dict[str, Write]] = {}
        for tenant, item in items[:sent]:
            by_tenant.setdefault(tenant, {})[item.id] = Remove(Outbox, item.id)
        for tenant, writes in by_tenant.items():
            removals = list(writes.values())
            for start in range(0, len(removals), REMOVED_AT_ONCE):
                self.registry.store(tenant).commit(*removals[start : start + REMOVED_AT_ONCE])
        return sent, failure

    def _send_in_order(self, items: Sequence[Outbox]) -> tuple[int, StockyardError | None]:
        """Events wait until a call is full; an execution starts at once, and twice is as good as once."""
        sent, waiting = 0, 0
        for index, item in enumerate(items):
            try:
                if item.kind == "workflow":
                    self._start(item)
                waiting = index + 1
            except StockyardError as error:
                stopped = self._publish(items[sent:index])
                return (sent, stopped) if stopped else (index, error)
            events = [one for one in items[sent:waiting] if one.kind != "workflow"]
            if len(events) == EVENTS_AT_ONCE or waiting == len(items):
                stopped = self._publish(events)
                if stopped:
                    return sent, stopped
                sent = waiting
        return sent, None

    def _start(self, item: Outbox) -> None:
        payload: Mapping[str, object] = item.payload
        self.workflows.start(str(payload["workflow"]), str(payload["name"]), _mapping(payload["input"]))

    def _publish(self, items: Sequence[Outbox]) -> StockyardError | None:
        """Put the events among these on the bus; what refused them, if anything did."""
        events = [_event(item) for item in items if item.kind != "workflow"]
        try:
            if events:
                self.bus.publish_all(events)
        except StockyardError as error:
            return error
        return None

    def resend(self, before: datetime, limit: int = 200) -> tuple[int, int]:
        """Send what has stood since ``before``: (sent, failed). One failure keeps none of the others."""
        sent = failed = 0
        for tenant, item in self.registry.due(Outbox, before, limit):
            try:
                self.send(tenant, item)
                sent += 1
            except StockyardError:
                failed += 1
        return sent, failed


def _event(item: Outbox) -> tuple[str, Mapping[str, object]]:
    payload: Mapping[str, object] = item.payload
    return str(payload["detail_type"]), _mapping(payload["detail"])


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError("an outbox payload holds objects")
    return value
