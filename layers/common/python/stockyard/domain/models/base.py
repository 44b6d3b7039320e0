"""What all models share: strict inputs that refuse unknown fields by name, views, and faults as JSON pointers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from stockyard.domain.models import patterns
from stockyard.domain.pointers import pointer
from stockyard.errors import FieldProblem, InvalidInput

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
Fault = tuple[tuple[str | int, ...], str]
"""What is wrong at a place: the path to it, and the words."""

_FAULTS = "faults"
_HANDED_ON = ("Template", "selector")
"""How the names of objects end that another system reads: nothing is taken out of them."""
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
_SINGULAR = {"characters": "character", "entries": "entry"}


class Input(BaseModel):
    """Base of what callers send: no coercion, no unknown field, and no value in an error's text.

    A model is built when it is first used: a function loads many with the few that its request needs.
    """

    model_config = ConfigDict(defer_build=True, extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class View(BaseModel):
    """Base of what callers receive."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


def not_null(schema: dict[str, Any]) -> None:
    """For ``Field(json_schema_extra=...)`` of a field that may be absent, but is refused when it is null."""
    members = [member for member in schema.pop("anyOf") if member != {"type": "null"}]
    schema.pop("default")
    schema.update(members[0] if len(members) == 1 else {"anyOf": members})


def _stays(value: T | None) -> T | None:
    if value is None:
        raise ValueError("cannot be removed")
    return value


Irremovable = Annotated[T | None, AfterValidator(_stays), Field(json_schema_extra=not_null)]
"""A field of a merge patch that may be absent, and cannot be removed."""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Annotates an object that is one of these models, which the API's document shows."""

    models: Callable[[], Sequence[type[BaseModel]]]

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        models = self.models()
        for model in models:
            model.model_rebuild()
        return handler(core_schema.union_schema([model.__pydantic_core_schema__ for model in models]))


def refuse(*faults: Fault) -> PydanticCustomError:
    """The error a validator raises for faults at places below its own."""
    return PydanticCustomError("stockyard", "not valid", {_FAULTS: list(faults)})


def check(faults: Sequence[Fault]) -> None:
    """Raise the error of :func:`refuse` if there are faults."""
    if faults:
        raise refuse(*faults)


def faults_of(error: ValidationError) -> list[Fault]:
    """The faults that an error of a model tells, for who has others to add."""
    return list(_faults(error))


def repeated(items: Sequence[Any], text: str, *below: str) -> list[Fault]:
    """A fault of this text for each item that stands in the list before, at its index and ``below``."""
    return [((index, *below), text) for index, item in enumerate(items) if item in items[:index]]


def check_fixed(document: Any, names: Set[str]) -> Any:
    """``document``, unless it is an object that gives one of ``names``: these cannot be changed after creation."""
    if isinstance(document, dict):
        check([((name,), "cannot be changed after creation") for name in document if name in names])
    return document


def read(model: type[M], document: Any, *, at: tuple[str | int, ...] = ()) -> M:
    """``document`` as ``model``. Raises ``InvalidInput`` with a pointer per fault, below ``at``.

    The texts name fields and rules, never a value that was sent.
    """
    try:
        return model.model_validate(document, strict=True)
    except ValidationError as error:
        problems = [FieldProblem(pointer(*at, *place), detail) for place, detail in _faults(error)]
    raise InvalidInput(summary(problems), errors=problems)


def read_part(models: Sequence[type[M]], document: Any) -> M | None:
    """For a validator: a part of a document whose model something else chooses, among these.

    None when there are several: then who knows the choice has to read it. Raises the error of :func:`refuse`.
    """
    if len(set(models)) != 1:
        return None
    try:
        return models[0].model_validate(document, strict=True)
    except ValidationError as error:
        faults = _faults(error)
    raise refuse(*faults)


def merged(current: Any, patch: Any) -> Any:
    """``current`` after a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(current) if isinstance(current, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def without_nulls(value: Any, name: str = "") -> Any:
    """``value`` without the fields that are null: to Kubernetes they are not there."""
    if name.endswith(_HANDED_ON):
        return value
    if isinstance(value, dict):
        return {key: without_nulls(inner, str(key)) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value]
    return value


def summary(problems: Iterable[FieldProblem]) -> str:
    """One sentence for a person: the first faults and how many more there are."""
    listed = [f"{problem.pointer or 'the body'}: {problem.detail}" for problem in problems]
    more = f" (and {len(listed) - 3} more)" if len(listed) > 3 else ""
    return "; ".join(listed[:3]) + more


def _faults(error: ValidationError) -> list[Fault]:
    faults: list[Fault] = []
    for fault in error.errors(include_url=False, include_input=False):
        place = tuple(part for part in fault["loc"] if part != "[key]")
        context: Mapping[str, Any] = fault.get("ctx", {})
        if fault["type"] == "stockyard":
            faults.extend(((*place, *below), detail) for below, detail in context[_FAULTS])
        else:
            faults.append((place, _words(fault["type"], fault["msg"], context)))
    return faults


def _words(kind: str, message: str, context: Mapping[str, Any]) -> str:
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "value_error":
        return str(context["error"])
    if kind in _LENGTHS:
        least, most = context.get("min_length"), context.get("max_length")
        bound, count = (f"at least {least}", least) if most is None else (f"at most {most}", most)
        plural = _LENGTHS[kind]
        return f"must have {bound} {_SINGULAR[plural] if count == 1 else plural}"
    if kind == "string_pattern_mismatch":
        return f"must be {patterns.WORDS.get(context['pattern'], context['pattern'])}"
    return message[:1].lower() + message[1:]
