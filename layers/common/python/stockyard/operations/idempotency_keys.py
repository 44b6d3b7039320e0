"""The idempotency records of a tenant, over its store (the edge's ``Keys``)."""

from __future__ import annotations

from stockyard.domain.records import Idempotency
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import Conflict
from stockyard.ports import Create, Remove, Replace, Store, Write


@dataclass(frozen=True, slots=True)
class IdempotencyKeys:
    """Each change is one conditional write; False when the condition did not hold."""

    store: Store

    def get(self, id: str) -> Idempotency | None:
        """The record, read consistently."""
        return self.store.get(Idempotency, id)

    def insert(self, record: Idempotency) -> bool:
        """Create it; False when there is one."""
        return self._write(Create(record))

    def replace(self, record: Idempotency) -> bool:
        """Overwrite version ``record.version - 1``; False when that is not what is there."""
        return self._write(Replace(record))

    def remove(self, record: Idempotency) -> bool:
        """Delete that version; False when that is not what is there."""
        return self._write(Remove(Idempotency, record.id, version=record.version))

    def _write(self, write: Write) -> bool:
        try:
            self.store.commit(write)
        except Conflict:
            return False
        return True
