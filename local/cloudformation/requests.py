"""Requests to custom resources, the response URL of each, and what comes back within its time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from local.cloudformation.answers import Answer, AnswerError, read_answer
from local.cloudformation.framework import Fault, Provider
from local.cloudformation.timeline import Timeline

MOST_SECONDS = 3600
_LATE_SECONDS = 1_800
_TOO_LATE_SECONDS = 5_400
"""Longer than CloudFormation waits."""
_URL = "https://cloudformation-custom-resource-response-useast1.s3.us-east-1.amazonaws.com"


@dataclass(slots=True)
class Pending:
    """A request that was sent, and its first valid answer. ``faults`` are answers that CloudFormation does not take."""

    request: Mapping[str, Any]
    answer: Answer | None = None
    faults: list[str] = field(default_factory=list)

    def put(self, content: bytes) -> None:
        """Takes the body of a PUT to the response URL; one that comes later changes nothing."""
        try:
            answer = read_answer(content, self.request)
        except AnswerError as error:
            self.faults.append(str(error))
            return
        if self.answer is None:
            self.answer = answer


@dataclass(slots=True)
class Requests:
    """Sends requests to a provider, and waits."""

    provider: Provider
    timeline: Timeline
    fault: Fault
    sent: list[Pending] = field(default_factory=list)

    def send(self, kind: str, properties: Mapping[str, Any], **fields: Any) -> Answer | None:
        """The answer to a request, None when none came in time. ``fields`` are those of the type of the request."""
        number = len(self.sent) + 1
        request_id = hashlib.sha256(f"{fields['StackId']}/{number}".encode()).hexdigest()[:32]
        signed = f"{self.timeline.now():%Y%m%dT%H%M%SZ}"
        request = {
            "RequestType": kind,
            "ServiceToken": properties["ServiceToken"],
            "ResponseURL": f"{_URL}/{request_id}?X-Amz-Date={signed}&X-Amz-Expires=7200",
            "RequestId": request_id,
            "ResourceProperties": properties,
            **fields,
        }
        pending = Pending(request)
        self.sent.append(pending)
        if not self.fault("request lost"):
            self.timeline.after(self._delay(0), lambda: self.provider.deliver(request, pending.put))
            if self.fault("request twice"):
                self.timeline.after(self._delay(20), lambda: self.provider.deliver(request, pending.put))
        self.timeline.run(lambda: pending.answer is not None, seconds_of(properties))
        return pending.answer

    def _delay(self, usual: float) -> float:
        """Seconds until a request is delivered: Lambda keeps one for six hours at most."""
        if self.fault("request late"):
            return _LATE_SECONDS
        return _TOO_LATE_SECONDS if self.fault("request too late") else usual


def seconds_of(properties: Mapping[str, Any]) -> int:
    """Seconds for which CloudFormation waits for an answer. ``ValueError`` for a ``ServiceTimeout`` that it refuses."""
    text = str(properties.get("ServiceTimeout", MOST_SECONDS))
    if not text.isdigit() or not 1 <= int(text) <= MOST_SECONDS:
        raise ValueError(f"ServiceTimeout is {text}; it is a whole number from 1 to {MOST_SECONDS}")
    return int(text)
