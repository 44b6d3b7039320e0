"""Send what stands in the outbox: start executions, publish events. Sent twice is as good as once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from stockyard.domain.records import Outbox
from stockyard.errors import StockyardError
from stockyard.ports import Bus, Registry, Remove, Workflows


@dataclass(frozen=True, slots=True)
class Relay:
    """The ports of the relay, which works for all tenants."""

    registry: Registry
    workflows: Workflows
    bus: Bus

    def send(self, tenant: str, item: Outbox) -> None:
        """Send one item, then remove it. An item that is gone already was sent by someone else."""
        payload: Mapping[str, object] = item.payload
        if item.kind == "workflow":
            self.workflows.start(str(payload["workflow"]), str(payload["name"]), _mapping(payload["input"]))
        else:
            self.bus.publish(str(payload["detail_type"]), _mapping(payload["detail"]))
        self.registry.store(tenant).commit(Remove(Outbox, item.id))

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


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError("an outbox payload holds objects")
    return value
