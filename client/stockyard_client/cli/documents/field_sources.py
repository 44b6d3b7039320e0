"""Origins of a request's fields, so that a refusal names what a person wrote, and not the request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stockyard_client.cli.documents.pointers import dotted, tokens_of

if TYPE_CHECKING:
    from stockyard_client.cli.documents.documents import Document


@dataclass(frozen=True, slots=True)
class FieldSource:
    """``document`` stands at the pointer ``at`` of the request, from its own pointer ``inner`` on. ``noun`` is what a
    body without a kind is called. ``options`` gave the fields of these pointers of the request, by name."""

    document: Document | None = None
    at: str = ""
    inner: str = ""
    noun: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


def location_of(pointer: str, field_sources: Iterable[FieldSource]) -> str:
    """Name, for a person, of the field at ``pointer`` of the request: an option, a line of a file, else its path."""
    fitting = [source for source in field_sources if _is_below(pointer, source.at)]
    for source in fitting:
        for pointer_given, option in source.options.items():
            if _is_below(pointer, pointer_given):
                return option
    nearest = _nearest(fitting)
    if nearest is None or nearest.document is None:
        return dotted(tokens_of(pointer))
    return nearest.document.location(tokens_of(nearest.inner + pointer.removeprefix(nearest.at)), nearest.noun)


def position_of(pointer: str, field_sources: Iterable[FieldSource]) -> tuple[str, int | None] | None:
    """File and line of the field at ``pointer`` of the request; None where no file has it."""
    nearest = _nearest([source for source in field_sources if _is_below(pointer, source.at)])
    if nearest is None or nearest.document is None:
        return None
    document = nearest.document
    return document.source, document.line(tokens_of(nearest.inner + pointer.removeprefix(nearest.at)))


def _nearest(fitting: Iterable[FieldSource]) -> FieldSource | None:
    named = [source for source in fitting if source.document is not None]
    return max(named, key=lambda source: len(source.at)) if named else None


def _is_below(pointer: str, at: str) -> bool:
    return pointer == at or pointer.startswith(f"{at}/")
