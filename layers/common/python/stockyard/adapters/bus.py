"""Our event bus (``ports.Bus``) on EventBridge."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stockyard.adapters.aws_errors import by_code, translated
from stockyard.errors import VendorUnavailable

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

SOURCE = "stockyard"


class EventBridgeBus:
    """Publishes to one bus, ``name``, with the source ``stockyard``."""

    def __init__(self, client: EventBridgeClient, name: str) -> None:
        self._client = client
        self._name = name

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Put one event on the bus."""
        self.publish_all([(detail_type, detail)])

    def publish_all(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Put events on the bus in one call. A refused entry is raised: the call itself answers 200 for it."""
        entries = [
            {
                "EventBusName": self._name,
                "Source": SOURCE,
                "DetailType": detail_type,
                "Detail": json.dumps(detail, separators=(",", ":")),
            }
            for detail_type, detail in events
        ]
        with translated():
            answer = self._client.put_events(Entries=entries)  # type: ignore[arg-type]
        if answer["FailedEntryCount"]:
            failed = next((entry for entry in answer["Entries"] if entry.get("ErrorCode")), None)
            if failed is None:
                raise VendorUnavailable("PutEvents: the event was not taken")
            code = failed.get("ErrorCode", "")
            raise by_code(code, f"PutEvents: {failed.get('ErrorMessage', code)}")
