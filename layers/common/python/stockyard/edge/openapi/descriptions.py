"""Meanings of models' fields, read from the sources: the text below a field's declaration is its description.

Python drops such texts when it compiles, so they cost a function neither time nor memory. A field without one has the
text of the alias that it is declared by (``name: fields.Name``). Never imported while serving.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

_WRAPPERS = frozenset({"Annotated", "Irremovable"})
"""What stands around a type without changing what a value means."""


class DescribedSchema(GenerateJsonSchema):
    """JSON Schema with a description for each field of a model that has one in the sources."""

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        """The schema of a model, as pydantic makes it, with the descriptions of its fields."""
        document = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        properties = document.get("properties", {})
        for name, field in model.model_fields.items():
            field_schema = properties.get(
                field.serialization_alias if self.mode == "serialization" else field.alias or name
            )
            if field_schema is None:
                field_schema = properties.get(field.alias or name)
            if field_schema is not None and "description" not in field_schema and (text := description(model, name)):
                field_schema["description"] = text
        return document


def description(model: type[BaseModel], name: str) -> str:
    """Meaning of the field, in the words of the sources; empty where they have none."""
    for owner in model.__mro__:
        if text := _classes(owner.__module__).get(owner.__qualname__, {}).get(name):
            return text
    for owner in model.__mro__:
        annotation = _annotations(owner.__module__).get((owner.__qualname__, name))
        if annotation is not None:
            return _alias_text(owner.__module__, annotation)
    original = getattr(model, "DESCRIBED_BY", None)
    return description(original, name) if original is not None and original is not model else ""


def first_sentence(model: type[BaseModel]) -> str:
    """The first sentence of what the model says of itself."""
    return plain(model.__doc__ or "").partition(". ")[0].removesuffix(".") + "."


def plain(text: str) -> str:
    """A docstring as a text of one paragraph for each of its own, without the marks of code that Markdown has not."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs).replace("``", "`")


@cache
def _tree(module: str) -> ast.Module:
    source = getattr(sys.modules.get(module), "__file__", None)
    if source is None or not source.endswith(".py"):
        return ast.Module([], [])
    with open(source, encoding="utf-8") as file:
        return ast.parse(file.read())


def _texts(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """The names that a block declares with a text below, and that text."""
    for statement, following in pairwise(body):
        targets: list[ast.expr] = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        if (
            len(targets) == 1
            and isinstance(targets[0], ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
            and isinstance(following.value.value, str)
        ):
            yield targets[0].id, plain(following.value.value)


@cache
def _classes(module: str) -> Mapping[str, Mapping[str, str]]:
    """Class -> field -> text."""
    nodes = (node for node in _tree(module).body if isinstance(node, ast.ClassDef))
    return {node.name: dict(_texts(node.body)) for node in nodes}


@cache
def _annotations(module: str) -> Mapping[tuple[str, str], ast.expr]:
    """Class and field -> how the field is declared."""
    return {
        (node.name, line.target.id): line.annotation
        for node in _tree(module).body
        if isinstance(node, ast.ClassDef)
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    }


def _alias_text(module: str, annotation: ast.expr) -> str:
    """The text of the alias that a field is declared by, however many wrappers are around it."""
    if isinstance(annotation, ast.BinOp):
        sides = [side for side in (annotation.left, annotation.right) if not _is_none(side)]
        return _alias_text(module, sides[0]) if len(sides) == 1 else ""
    if isinstance(annotation, ast.Subscript):
        wrapped = annotation.slice.elts[0] if isinstance(annotation.slice, ast.Tuple) else annotation.slice
        named = isinstance(annotation.value, ast.Name) and annotation.value.id in _WRAPPERS
        return _alias_text(module, wrapped) if named else ""
    if isinstance(annotation, ast.Attribute) and isinstance(annotation.value, ast.Name):
        owner = getattr(sys.modules[module], annotation.value.id, None)
        return _aliases(owner.__name__).get(annotation.attr, "") if inspect.ismodule(owner) else ""
    return _named(module, annotation.id) if isinstance(annotation, ast.Name) else ""


def _named(module: str, name: str) -> str:
    """The text of an alias, from the module itself or from the module that declares the alias."""
    if text := _aliases(module).get(name):
        return text
    for statement in _tree(module).body:
        for imported in statement.names if isinstance(statement, ast.ImportFrom) else ():
            if (imported.asname or imported.name) == name and isinstance(statement, ast.ImportFrom):
                return _named(statement.module, imported.name) if statement.module in sys.modules else ""
    return ""


@cache
def _aliases(module: str) -> Mapping[str, str]:
    return dict(_texts(_tree(module).body))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
