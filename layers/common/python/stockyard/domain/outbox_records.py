"""The records of messages that leave after a commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.nodes.records import VersionedRecord
from stockyard.domain.values.frozen import dataclass

MESSAGES = "messages"
"""The kind of an outbox item that has several messages."""


@dataclass(frozen=True, slots=True)
class Outbox(VersionedRecord):
    """Message that must leave after a commit: ``workflow`` starts an execution, ``event`` goes to EventBridge.

    Several of a commit are one item of kind ``messages``, whose payload has a list of them, each with its ``kind``: an
    item of its own would cost three more write units. Removed when sent; what stands here too long is sent again by the
    minute schedule.
    """

    kind: str
    payload: dict[str, Any]
    due_at: str
    sender: str | None = None
    """The function that sends the item itself once it is written, so that the relay has it only from the minute
    schedule; None where the relay sends it."""

    @property
    def messages(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """Kind and payload of each message, in the order in which they are sent."""
        if self.kind != MESSAGES:
            return [(self.kind, self.payload)]
        return [(str(message["kind"]), message) for message in self.payload["messages"]]
