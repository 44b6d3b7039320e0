"""Faults of several documents, told so that a person finds the document that is meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from stockyard.errors import CallerError, FieldProblem, InvalidInput


@contextmanager
def told_by_document(documents: Sequence[Mapping[str, Any]]) -> Iterator[None]:
    """Whatever is refused within is told with number, kind and name of the document that its pointer begins with."""
    try:
        yield
    except CallerError as refused:
        refused.errors = tuple(_with_document(fault, documents) for fault in refused.errors)
        if isinstance(refused, InvalidInput) and len(refused.errors) == 1 and refused.errors[0].kind:
            (fault,) = refused.errors
            below = fault.pointer.removeprefix(f"/{fault.index}")
            refused.detail = f"{' '.join(filter(None, (fault.kind, fault.name)))}: {below}: {fault.detail}"
        raise


def _with_document(fault: FieldProblem, documents: Sequence[Mapping[str, Any]]) -> FieldProblem:
    number = fault.pointer.split("/")[1] if fault.pointer else ""
    if not number.isdigit() or int(number) >= len(documents):
        return fault
    document = documents[int(number)]
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    kind = document.get("kind")
    return replace(
        fault,
        index=int(number),
        kind=kind if isinstance(kind, str) else "",
        name=name if isinstance(name, str) else "",
    )
