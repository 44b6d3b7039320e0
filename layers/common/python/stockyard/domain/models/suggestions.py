"""What somebody may have meant who wrote a field that there is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel

_LIKENESS = 0.75
"""How much of two names has to agree, 0 to 1; below it, a proposal is of no help."""


def meant(model: type[BaseModel], place: Sequence[str | int]) -> str | None:
    """The field of ``model`` that is most like the unknown one at ``place``. None: none is like it."""
    models = [model]
    for part in place[:-1]:
        # a number is an item of a list, and a name that is no field is the branch of a union
        models = [inner for outer in models for inner in _below(outer, part)] or models
    names = sorted({name for outer in models for name in _names(outer)})
    return next(iter(get_close_matches(str(place[-1]), names, n=1, cutoff=_LIKENESS)), None)


def _names(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield field.alias or name


def _below(model: type[BaseModel], part: str | int) -> Iterator[type[BaseModel]]:
    for name, field in model.model_fields.items():
        if part in (name, field.alias):
            yield from _models(field.annotation)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in a type: itself, members of a union, items of a list, values of a mapping."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
