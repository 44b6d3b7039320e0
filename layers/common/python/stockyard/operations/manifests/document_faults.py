"""Faults of several documents, told so that a person finds the document that is meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from stockyard.domain.nodes.manifests import FieldPath
from stockyard.domain.values.pointers import pointer
from stockyard.errors import CallerError, FieldProblem, InvalidInput


@contextmanager
def told_by_document(documents: Sequence[Mapping[str, Any]], paths: Sequence[FieldPath]) -> Iterator[None]:
    """Whatever is refused within is told with number, kind and name of the document whose place its pointer begins
    with. An item of a list has the number of the list."""
    named = [(pointer(*path), path, document) for path, document in zip(paths, documents, strict=True)]
    try:
        yield
    except CallerError as refused:
        refused.errors = tuple(_with_document(fault, named) for fault in refused.errors)
        if isinstance(refused, InvalidInput) and len(refused.errors) == 1 and refused.errors[0].kind:
            (fault,) = refused.errors
            below = next(fault.pointer.removeprefix(at) for at, _, _ in named if _is_below(fault, at))
            refused.detail = f"{' '.join(filter(None, (fault.kind, fault.name)))}: {below}: {fault.detail}"
        raise


def _is_below(fault: FieldProblem, at: str) -> bool:
    return fault.pointer == at or fault.pointer.startswith(f"{at}/")


def _with_document(fault: FieldProblem, named: Sequence[tuple[str, FieldPath, Mapping[str, Any]]]) -> FieldProblem:
    its = next(((path, document) for at, path, document in named if _is_below(fault, at)), None)
    if its is None:
        return fault
    path, document = its
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    kind = document.get("kind")
    return replace(
        fault,
        index=int(path[0]),
        kind=kind if isinstance(kind, str) else "",
        name=name if isinstance(name, str) else "",
    )
