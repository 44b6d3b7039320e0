"""Messages in the outbox, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard.domain.records import Outbox
from stockyard.operations.listing import every
from stockyard.ports import Store


def waiting(store: Store, kind: str) -> list[Mapping[str, Any]]:
    """The payloads of all messages of a kind, ``workflow`` or ``event``, oldest first."""
    return [message for item in every(store, Outbox) for each, message in item.messages if each == kind]
