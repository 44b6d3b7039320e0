"""EventBridge: events on a bus reach a listener, also across accounts. moto does not support functions as targets."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

from moto.events.models import EventsBackend, events_backends

Listener = Callable[[str, Mapping[str, Any]], None]
"""(ARN of the bus, the event's envelope)"""


@contextmanager
def heard_buses(listener: Listener) -> Iterator[None]:
    """Calls ``listener`` with each accepted event. An event for another account's bus goes there, with the sender's
    account in its envelope."""
    original = EventsBackend.put_events

    def put_events(backend: Any, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        answers = []
        for event in events:
            bus = _bus(backend, event.get("EventBusName") or "default")
            account, name = bus.split(":")[4], bus.rsplit("/", 1)[-1]
            if account == backend.account_id:
                answer = original(backend, [event])[0]
            elif name in events_backends[account][backend.region_name].event_buses:
                answer = {"EventId": str(uuid.uuid4())}
            else:
                answer = {"ErrorCode": "ResourceNotFoundException", "ErrorMessage": f"Event bus {name} does not exist."}
            if "EventId" in answer:
                listener(bus, _envelope(backend, event, answer["EventId"]))
            answers.append(answer)
        return answers

    with patch.object(EventsBackend, "put_events", put_events):
        yield


def _bus(backend: Any, name_or_arn: str) -> str:
    if name_or_arn.startswith("arn:"):
        return name_or_arn
    return f"arn:aws:events:{backend.region_name}:{backend.account_id}:event-bus/{name_or_arn}"


def _envelope(backend: Any, event: Mapping[str, Any], event_id: str) -> dict[str, Any]:
    stamp = event.get("Time")
    moment = datetime.fromtimestamp(float(stamp) if isinstance(stamp, int | float) else time.time(), UTC)
    return {
        "version": "0",
        "id": event_id,
        "detail-type": event["DetailType"],
        "source": event["Source"],
        "account": backend.account_id,
        "time": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": backend.region_name,
        "resources": event.get("Resources", []),
        "detail": json.loads(event["Detail"]),
    }
