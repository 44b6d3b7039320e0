"""What all models share: strict inputs that refuse unknown fields by name, views, and faults as JSON pointers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from stockyard.domain.models import patterns
from stockyard.domain.pointers import pointer
from stockyard.errors import FieldProblem, InvalidInput

M = TypeVar("M", bound=BaseModel)

_FAULTS = "faults"
_WORDS = {
    "missing": "this field is required",
    "extra_forbidden": "unknown field",
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "string_unicode": "must be valid Unicode text",
}
_LENGTHS = {
    "string_too_short": "characters",
    "string_too_long": "characters",
    "too_short": "entries",
    "too_long": "entries",
}


class Input(BaseModel):
    """Base of what callers send: no coercion, no unknown field, and no value in an error's text."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class View(BaseModel):
    """Base of what callers receive."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def not_null(schema: dict[str, Any]) -> None:
    """For ``Field(json_schema_extra=...)`` of a field that may be absent, but is refused when it is null."""
    (kept,) = (one for one in schema.pop("anyOf") if one != {"type": "null"})
    schema.pop("default")
    schema.update(kept)


def refuse(*faults: tuple[tuple[str | int, ...], str]) -> PydanticCustomError:
    """The error a validator raises for faults at places below its own, each (path, what is wrong)."""
    return PydanticCustomError("stockyard", "not valid", {_FAULTS: list(faults)})


def read(model: type[M], document: Any, *, at: tuple[str | int, ...] = ()) -> M:
    """``document`` as ``model``. Raises ``InvalidInput`` with a pointer per fault, below ``at``.

    The texts name fields and rules, never a value that was sent.
    """
    try:
        return model.model_validate(document, strict=True)
    except ValidationError as error:
        problems = tuple(_problems(error, at))
    raise InvalidInput(summary(problems), errors=problems)


def summary(problems: Iterable[FieldProblem]) -> str:
    """One sentence for a person: the first faults and how many more there are."""
    listed = [f"{one.pointer or 'the body'}: {one.detail}" for one in problems]
    more = f" (and {len(listed) - 3} more)" if len(listed) > 3 else ""
    return "; ".join(listed[:3]) + more


def _problems(error: ValidationError, at: tuple[str | int, ...]) -> Iterable[FieldProblem]:
    for fault in error.errors(include_url=False, include_input=False):
        place = at + tuple(part for part in fault["loc"] if part != "[key]")
        context: Mapping[str, Any] = fault.get("ctx", {})
        if fault["type"] == "stockyard":
            for below, detail in context[_FAULTS]:
                yield FieldProblem(pointer(*place, *below), detail)
        else:
            yield FieldProblem(pointer(*place), _words(fault["type"], fault["msg"], context))


def _words(kind: str, message: str, context: Mapping[str, Any]) -> str:
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "value_error":
        return str(context["error"])
    if kind in _LENGTHS:
        least, most = context.get("min_length"), context.get("max_length")
        return f"must have {f'at least {least}' if most is None else f'at most {most}'} {_LENGTHS[kind]}"
    if kind == "string_pattern_mismatch":
        return f"must be {patterns.WORDS.get(context['pattern'], context['pattern'])}"
    return message[:1].lower() + message[1:]
