"""Documents in camel case of models whose fields are in snake case, both ways, and the places in them.

Only names of fields are changed. Keys of maps, such as those of labels, stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from stockyard.domain.models.base import Fault
from stockyard.domain.values.spelling import closest


def snake_document(model: Any, document: Any) -> tuple[Any, list[Fault]]:
    """The document with the names that the model's fields have, and a fault for each field that it does not have.

    ``model`` is a model or the annotation of a field. Unknown fields are left out of the document.
    """
    faults: list[Fault] = []
    return _renamed(model, document, (), faults), faults


def _renamed(annotation: Any, value: Any, at: tuple[str | int, ...], faults: list[Fault]) -> Any:
    model, item = _kind(annotation)
    if isinstance(value, list) and item is not None:
        return [_renamed(item, entry, (*at, index), faults) for index, entry in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if model is None:
        return (
            value if item is None else {key: _renamed(item, entry, (*at, key), faults) for key, entry in value.items()}
        )
    names = {to_camel(name): name for name in model.model_fields}
    document: dict[str, Any] = {}
    for key, entry in value.items():
        if key in names:
            name = names[key]
            document[name] = _renamed(model.model_fields[name].annotation, entry, (*at, key), faults)
        else:
            likely = names_like(str(key), names)
            faults.append(((*at, key), f"unknown field; did you mean {likely}?" if likely else "unknown field"))
    return document


def names_like(key: str, names: Mapping[str, str]) -> str:
    """The name in camel case that was probably meant by the key; empty where none is like it."""
    return to_camel(key) if to_camel(key) in names else closest(key, names)


def camel_document(model: Any, value: Any) -> Any:
    """The value of a model, or of a field with this annotation, with its fields in camel case. Fields that may be left
    out and have no value are left out."""
    inner_model, item = _kind(model)
    if isinstance(value, list | tuple) and item is not None:
        return [camel_document(item, entry) for entry in value]
    if not isinstance(value, Mapping):
        return value
    if inner_model is None:
        return dict(value) if item is None else {key: camel_document(item, entry) for key, entry in value.items()}
    return {
        to_camel(name): camel_document(inner_model.model_fields[name].annotation, entry)
        for name, entry in value.items()
        if name in inner_model.model_fields and not _is_usual(inner_model, name, entry)
    }


def _is_usual(model: type[BaseModel], name: str, value: Any) -> bool:
    """Whether the field has this value where a document does not say it."""
    field = model.model_fields[name]
    if field.is_required():
        return False
    usual = field.get_default(call_default_factory=True)
    return bool(value == (usual.model_dump() if isinstance(usual, BaseModel) else usual))


def camel_path(model: Any, path: Sequence[str]) -> list[str]:
    """The place in a document of the model, with its fields in camel case. Keys of maps and numbers stay."""
    names: list[str] = []
    annotation: Any = model
    for part in path:
        inner_model, item = _kind(annotation)
        if inner_model is not None and part in inner_model.model_fields:
            names.append(to_camel(part))
            annotation = inner_model.model_fields[part].annotation
        else:
            names.append(part)
            annotation = item
    return names


def _kind(annotation: Any) -> tuple[type[BaseModel] | None, Any]:
    """The model that a value of this annotation is, or the annotation of the entries of a list or a map; None for
    either that it has not."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, None
    generic, arguments = get_origin(annotation), get_args(annotation)
    if generic is Annotated:
        return _kind(arguments[0])
    if generic in (Union, UnionType):
        kinds = [_kind(argument) for argument in arguments if argument is not NoneType]
        return next((kind for kind in kinds if kind != (None, None)), (None, None))
    if generic is list or generic is dict:
        return None, arguments[-1]
    return None, None
