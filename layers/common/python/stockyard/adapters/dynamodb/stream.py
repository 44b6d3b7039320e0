"""Records of the table's stream as the changes of our records that they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from stockyard.adapters.dynamodb import codec
from stockyard.domain.records import Record
from stockyard.ports import RecordChange


def changes(records: Iterable[Mapping[str, Any]]) -> Iterator[RecordChange]:
    """The changes in their order. What removes a record, or has no kind, is left out."""
    for record in records:
        stream = record.get("dynamodb", {})
        image = stream.get("NewImage") or {}
        if "kind" in image:
            text = {name: image.get(name, {}).get("S", "") for name in ("tenant", "kind", "sk", "status", "moved")}
            yield RecordChange(
                tenant=text["tenant"],
                kind=text["kind"],
                id=text["sk"],
                created=record.get("eventName") == "INSERT",
                status=text["status"],
                lowered=text["moved"] == "down",
                position=stream.get("SequenceNumber", ""),
                record=partial(_record, image),
            )


def _record(image: Mapping[str, Any]) -> Record:
    return codec.read(image)[1]
