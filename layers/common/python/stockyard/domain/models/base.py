"""Common parts of all models: strict inputs that refuse unknown fields by name, views, and faults as JSON pointers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from stockyard.domain.models.fault_words import unknown_field, words
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem, InvalidInput

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
Fault = tuple[tuple[str | int, ...], str]
"""What is wrong at a place: the path to it, and the words."""

_TYPE = re.compile(r"(constrained-)?(str|int|float|bool|decimal)|(list|dict|tuple|set)\[.*\]")
"""Names of the types of a choice in the places of pydantic's faults."""
_FAULTS = "faults"
_HANDED_ON = ("Template", "selector")
"""How the names of objects end that another system reads: nothing is taken out of them."""


class Input(BaseModel):
    """Base of what callers send: no coercion, no unknown field, and no value in an error's text.

    A model is built when it is first used: a function loads many with the few that its request needs.
    """

    model_config = ConfigDict(defer_build=True, extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class View(BaseModel):
    """Base of what callers receive."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


def document_of(model: BaseModel) -> dict[str, Any]:
    """The values of a model's fields by their names, models inside too: as ``model_dump`` of one that has no
    serializers of its own, in less time. Maps and lists of plain values are the model's own."""
    document = dict(model.__dict__)
    for name in _fields_with_models(type(model)):
        document[name] = _document(document[name])
    return document


@cache
def _fields_with_models(model: type[BaseModel]) -> tuple[str, ...]:
    """Names of the fields whose values may have models in them, by their types."""
    return tuple(name for name, field in model.model_fields.items() if _may_have_models(field.annotation))


def _may_have_models(kind: Any) -> bool:
    is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
    return is_model or kind is Any or any(map(_may_have_models, get_args(kind)))


def _document(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return document_of(value)
    if isinstance(value, list | tuple):
        return type(value)(map(_document, value))
    if isinstance(value, dict) and any(isinstance(each, BaseModel | list | tuple) for each in value.values()):
        return {key: _document(each) for key, each in value.items()}
    return value


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


def faults_of(error: ValidationError, model: type[BaseModel]) -> list[Fault]:
    """The faults that an error of a model tells, for who has others to add."""
    return list(_faults(error, model))


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
        problems = [FieldProblem(pointer(*at, *path), detail) for path, detail in _faults(error, model, document)]
    raise InvalidInput.of(problems)


def read_part(models: Sequence[type[M]], document: Any) -> M | None:
    """For a validator: a part of a document whose model something else chooses, among these.

    None when there are several: then who knows the choice has to read it. Raises the error of :func:`refuse`.
    """
    if len(set(models)) != 1:
        return None
    try:
        return models[0].model_validate(document, strict=True)
    except ValidationError as error:
        faults = _faults(error, models[0], document)
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


def _faults(error: ValidationError, model: type[BaseModel] | None = None, document: Any = None) -> list[Fault]:
    """The faults of an error in the ``document``; with the ``model`` that was tried, unknown fields come with the one
    that was meant."""
    faults: list[Fault] = []
    choices: dict[tuple[str | int, ...], list[tuple[str, str]]] = {}
    for fault in error.errors(include_url=False, include_input=False):
        path = tuple(part for part in fault["loc"] if part != "[key]")
        context: Mapping[str, Any] = fault.get("ctx", {})
        if fault["type"] == "stockyard":
            faults.extend(((*path, *below), detail) for below, detail in context[_FAULTS])
        elif fault["type"] == "extra_forbidden":
            faults.append((path, unknown_field(model, path)))
        elif _names_choice(path, document):
            choices.setdefault(path[:-1], []).append((fault["type"], words(fault["type"], fault["msg"], context)))
        else:
            faults.append((path, words(fault["type"], fault["msg"], context)))
    return [*faults, *((path, _of_choice(details)) for path, details in choices.items())]


def _names_choice(path: tuple[str | int, ...], document: Any) -> bool:
    """Whether the last part of a fault's place is no field: of a field that takes values of several types, pydantic
    names the type that was tried."""
    if not path or not _TYPE.fullmatch(str(path[-1])):
        return False
    value = document
    for part in path[:-1]:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return False
    return not isinstance(value, Mapping)


def _of_choice(details: Sequence[tuple[str, str]]) -> str:
    """One sentence for all types of a choice: the fault by the value's own type, else the types that there are."""
    of_its_type = [detail for kind, detail in details if not kind.endswith("_type")]
    texts = list(dict.fromkeys(of_its_type or (detail for _, detail in details)))
    return " or ".join((texts[0], *(text.removeprefix("must be ") for text in texts[1:])))
