"""EventBridge: events on a bus reach a listener, also across accounts, and rules reach targets that moto does not know:
buses of other accounts, state machines, topics and addresses of the web. Functions as targets are the listener's."""

from __future__ import annotations

import copy
import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import httpx
from moto.core.exceptions import JsonRESTError
from moto.events.models import EventsBackend, events_backends
from moto.events.models import Rule as MotoRule
from moto.stepfunctions.parser.models import stepfunctions_parser_backends

_PLACEHOLDER = re.compile(r"<([\w.-]+)>")
_PART = re.compile(r'"(?:[^"\\]|\\.)*"|<([\w.-]+)>')
"""Text of a template, or a placeholder of a value."""
_TIME = "%Y-%m-%dT%H:%M:%SZ"
Listener = Callable[[str, Mapping[str, Any]], None]
"""(ARN of the bus, the event's envelope)"""


@contextmanager
def heard_buses(listener: Listener) -> Iterator[None]:
    """Calls ``listener`` with each accepted event. An event for another account's bus goes there, with the sender's
    account in its envelope."""
    original, original_send = EventsBackend.put_events, MotoRule.send_to_targets

    def put_events(backend: Any, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        answers = []
        for event in events:
            bus = _bus(backend, event.get("EventBusName") or "default")
            account, name = bus.split(":")[4], bus.rsplit("/", 1)[-1]
            if account == backend.account_id:
                answer = original(backend, [event])[0]
                if "EventId" in answer:
                    listener(bus, _envelope(backend, event, answer["EventId"]))
            elif name in events_backends[account][backend.region_name].event_buses:
                answer = {"EventId": str(uuid.uuid4())}
                forward(bus, _envelope(backend, event, answer["EventId"]))
            else:
                answer = {"ErrorCode": "ResourceNotFoundException", "ErrorMessage": f"Event bus {name} does not exist."}
            answers.append(answer)
        return answers

    def forward(bus: str, envelope: Mapping[str, Any]) -> None:
        *_, region, account, name = bus.replace("event-bus/", "").split(":")
        moment = datetime.strptime(envelope["time"], _TIME).replace(tzinfo=UTC).timestamp()
        for rule in list(events_backends[account][region].event_buses[name].rules.values()):
            rule.send_to_targets({**envelope, "time": moment})
        listener(bus, envelope)

    def send(rule: Any, event: Any, transform_input: bool = True) -> None:
        own_targets = [target for target in rule.targets if _kind(target) in (*_SENDERS, "event-bus")]
        envelope = {**event, "time": _text(event["time"])}
        for target in own_targets if rule.event_pattern.matches_event(event) else ():
            if _kind(target) == "event-bus":
                forward(target["Arn"], envelope)
            else:
                # whoever has put the event never hears of a target that is gone
                with suppress(JsonRESTError, httpx.HTTPError):
                    _SENDERS[_kind(target)](target, _input(target, envelope))
        for target in rule.targets:
            if target not in own_targets:
                # moto's own template of a whole event breaks where a text has a quotation mark
                part = copy.copy(rule)
                part.targets = [target]
                original_send(part, event, transform_input and "InputTransformer" in target)

    with patch.object(EventsBackend, "put_events", put_events), patch.object(MotoRule, "send_to_targets", send):
        yield


def _bus(backend: Any, name_or_arn: str) -> str:
    if name_or_arn.startswith("arn:"):
        return name_or_arn
    return f"arn:aws:events:{backend.region_name}:{backend.account_id}:event-bus/{name_or_arn}"


def _text(stamp: float) -> str:
    return datetime.fromtimestamp(float(stamp), UTC).strftime(_TIME)


def _envelope(backend: Any, event: Mapping[str, Any], event_id: str) -> dict[str, Any]:
    stamp = event.get("Time")
    return {
        "version": "0",
        "id": event_id,
        "detail-type": event["DetailType"],
        "source": event["Source"],
        "account": backend.account_id,
        "time": _text(stamp if isinstance(stamp, int | float) else time.time()),
        "region": backend.region_name,
        "resources": event.get("Resources", []),
        "detail": json.loads(event["Detail"]),
    }


def _kind(target: Mapping[str, Any]) -> str:
    """``event-bus``, ``api-destination``, or the service of the target."""
    service, resource = str(target["Arn"]).split(":")[2], str(target["Arn"]).split(":")[5]
    return resource.partition("/")[0] if service == "events" else service


def _input(target: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    """Input of a target, as text: the event, or what the target's template makes of it. A whole value comes as JSON,
    a part of a text without its quotation marks."""
    transformer = target.get("InputTransformer")
    if transformer is None:
        return json.dumps(event)
    values = {name: _at(event, path) for name, path in transformer.get("InputPathsMap", {}).items()}

    def whole(match: re.Match[str]) -> str:
        return json.dumps(values[match[1]]) if match[1] else _PLACEHOLDER.sub(inner, match[0])

    def inner(match: re.Match[str]) -> str:
        value = values[match[1]]
        return json.dumps(value if isinstance(value, str) else json.dumps(value))[1:-1]

    document = json.loads(_PART.sub(whole, transformer["InputTemplate"]))
    return document if isinstance(document, str) else json.dumps(document)


def _at(event: Mapping[str, Any], path: str) -> Any:
    value: Any = event
    for name in path.removeprefix("$.").split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _start(target: Mapping[str, Any], text: str) -> None:
    *_, region, account, _, _ = target["Arn"].split(":")
    backend: Any = stepfunctions_parser_backends[account][region]
    backend.start_execution(target["Arn"], str(uuid.uuid4()), text)


def _publish(target: Mapping[str, Any], text: str) -> None:
    from moto.sns.models import sns_backends  # loaded by whoever has a topic

    *_, region, account, _ = target["Arn"].split(":")
    sns_backends[account][region].publish(text, arn=target["Arn"])


def _call(target: Mapping[str, Any], text: str) -> None:
    *_, region, account, _ = target["Arn"].split(":")
    backend = events_backends[account][region]
    destination = next(each for each in backend.destinations.values() if each.arn == target["Arn"])
    headers = {"Content-Type": "application/json"}
    with httpx.Client(trust_env=False, timeout=5) as client:
        client.request(destination.http_method, destination.invocation_endpoint, content=text, headers=headers)


_SENDERS = {"states": _start, "sns": _publish, "api-destination": _call}
