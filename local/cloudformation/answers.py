"""Answers of custom resources, checked by the documentation of CloudFormation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MOST_BYTES = 4096
MOST_BYTES_OF_ID = 1024
_COPIED = ("StackId", "RequestId", "LogicalResourceId")
_FIELDS = {"Status", "Reason", "PhysicalResourceId", "NoEcho", "Data", *_COPIED}


class AnswerError(Exception):
    """CloudFormation takes no such answer; the text says which rule it breaks."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to one request. ``data`` are the values of ``Fn::GetAtt``, as texts."""

    succeeded: bool
    reason: str
    physical_id: str
    data: Mapping[str, str]


def read_answer(content: bytes, request: Mapping[str, Any]) -> Answer:
    """The answer to ``request`` that is in the body of a PUT. Raises ``AnswerError``."""
    if len(content) > MOST_BYTES:
        raise AnswerError(f"the answer has {len(content)} bytes; it may have {MOST_BYTES}")
    try:
        document = json.loads(content)
    except ValueError as error:
        raise AnswerError("the answer is no JSON") from error
    if not isinstance(document, dict):
        raise AnswerError("the answer is no object")
    if unknown := sorted(document.keys() - _FIELDS):
        raise AnswerError(f"the answer has unknown fields: {', '.join(unknown)}")
    for name in _COPIED:
        if document.get(name) != request[name]:
            raise AnswerError(f"{name} is not that of the request")
    if document.get("Status") not in ("SUCCESS", "FAILED"):
        raise AnswerError("Status is neither SUCCESS nor FAILED")
    reason = document.get("Reason")
    if document["Status"] == "FAILED" and not (isinstance(reason, str) and reason):
        raise AnswerError("Reason is needed where Status is FAILED")
    data = document.get("Data", {})
    if not isinstance(data, dict):
        raise AnswerError("Data is no object")
    if not isinstance(document.get("NoEcho", False), bool):
        raise AnswerError("NoEcho is no boolean")
    physical_id = _physical_id(document.get("PhysicalResourceId"))
    if request["RequestType"] == "Delete" and physical_id != request["PhysicalResourceId"]:
        raise AnswerError("a deletion cannot change PhysicalResourceId")
    texts = {name: text_of(value) for name, value in data.items()}
    return Answer(document["Status"] == "SUCCESS", str(reason or ""), physical_id, texts)


def _physical_id(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise AnswerError("PhysicalResourceId is no text, or is empty")
    if len(value.encode()) > MOST_BYTES_OF_ID:
        raise AnswerError(f"PhysicalResourceId has more than {MOST_BYTES_OF_ID} bytes")
    return value


def text_of(value: Any) -> str:
    """A value as CloudFormation hands it on: always a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)


def as_texts(value: Any) -> Any:
    """Properties as a request has them: each number and each boolean is a text."""
    if isinstance(value, Mapping):
        return {key: as_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_texts(item) for item in value]
    return text_of(value)
