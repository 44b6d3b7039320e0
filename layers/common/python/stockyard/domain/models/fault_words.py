"""Faults of models in words for people: no word of the library that found them, and the name that was meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from stockyard.domain.models import patterns
from stockyard.domain.values.spelling import closest

_WORDS = {
    "missing": "this field is required",
    "extra_forbidden": "unknown field",
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "string_unicode": "must be valid Unicode text",
    "finite_number": "must be a finite number",
}
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_LENGTHS = {
    "string_too_short": "characters",
    "string_too_long": "characters",
    "too_short": "entries",
    "too_long": "entries",
}
_SINGULAR = {"characters": "character", "entries": "entry"}


def words(kind: str, message: str, context: Mapping[str, Any]) -> str:
    """Words for a fault, from the library's name of the fault, its message and its context."""
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "value_error":
        return str(context["error"])
    if kind in _LENGTHS:
        return _length(_LENGTHS[kind], context)
    if kind in _BOUNDS:
        text, name = _BOUNDS[kind]
        return f"must be {text} {context[name]:g}"
    if kind == "string_pattern_mismatch":
        return f"must be {patterns.WORDS.get(context['pattern'], context['pattern'])}"
    return message.replace("Input should be", "must be")


def _length(plural: str, context: Mapping[str, Any]) -> str:
    least, most = context.get("min_length"), context.get("max_length")
    bound, count = (f"at least {least}", least) if most is None else (f"at most {most}", most)
    return f"must have {bound} {_SINGULAR[plural] if count == 1 else plural}"


def unknown_field(model: type[BaseModel] | None, path: Sequence[str | int]) -> str:
    """Message that the last of ``path`` is no field there, with the field that was probably meant."""
    likely = closest(str(path[-1]), _names_at(model, path[:-1])) if model is not None else ""
    return f"unknown field; did you mean {likely}?" if likely else "unknown field"


def _names_at(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """The names of the fields at a place of a document. Parts that name no field are numbers and names of entries, or
    say which model of several was tried."""
    models = _models(model)
    for part in path:
        inner = [
            inner_model
            for each in models
            for name, field in each.model_fields.items()
            if part in (name, field.alias)
            for inner_model in _models(field.annotation)
        ]
        models = inner or models
    return [field.alias or name for each in models for name, field in each.model_fields.items()]


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models that a value of this type is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        root = annotation.model_fields.get("root")
        return [annotation] if root is None else _models(root.annotation)
    generic, arguments = get_origin(annotation), get_args(annotation)
    if generic is Annotated:
        return _models(arguments[0])
    inner = arguments if generic in (Union, UnionType) else arguments[-1:]
    return [model for argument in inner for model in _models(argument)]
