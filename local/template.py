"""The templates of a cloud assembly, with their intrinsic functions resolved.

Resources are created on demand: a ``Ref`` or ``Fn::GetAtt`` creates its resource first, so no order is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class TemplateError(Exception):
    """The template has something that the local cloud does not know."""


def load(assembly: Path, replacements: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """The templates, each after those whose exports it imports. ``replacements`` are applied to their text."""
    templates = []
    for path in assembly.glob("*.template.json"):
        text = path.read_text(encoding="utf-8")
        for old, new in (replacements or {}).items():
            text = text.replace(old, new)
        templates.append((text.count("Fn::ImportValue"), path.name, json.loads(text)))
    if not templates:
        raise TemplateError(f"there is no template in {assembly}")
    return [template for _, _, template in sorted(templates, key=lambda item: item[:2])]


@dataclass(frozen=True, slots=True)
class CreatedResource:
    """A created resource: the values of ``Ref`` and ``Fn::GetAtt``."""

    ref: str
    attributes: Mapping[str, str] = field(default_factory=dict)


CreateResource = Callable[[str, str, Mapping[str, Any]], CreatedResource]
"""(type, logical id, resolved properties) -> the resource. Raises ``TemplateError`` for an unknown type."""


_NO_VALUE = object()
"""What ``AWS::NoValue`` stands for: the field or item that has it is left out."""


class Stack:
    """Creates the resources of one template. ``imports`` are the exports of earlier stacks; ``parameters`` are those
    that shall not have their defaults."""

    def __init__(
        self,
        template: Mapping[str, Any],
        pseudo: Mapping[str, str],
        imports: Mapping[str, str],
        make: CreateResource,
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        self._template = template
        own = template.get("Parameters", {})
        values = {name: str(parameter["Default"]) for name, parameter in own.items() if "Default" in parameter}
        values |= parameters or {}
        self._parameters = {
            name: value.split(",") if own.get(name, {}).get("Type") == "CommaDelimitedList" else value
            for name, value in values.items()
        }
        self._pseudo = pseudo
        self._imports = imports
        self._make = make
        self._made: dict[str, CreatedResource] = {}
        self._open: set[str] = set()

    def create(self) -> dict[str, str]:
        """Creates every resource, and returns the exports."""
        for logical, body in self._template["Resources"].items():
            if "Condition" not in body or self._holds({"Condition": body["Condition"]}):
                self.resource(logical)
        exports = {}
        for output in self._template.get("Outputs", {}).values():
            if "Export" in output:
                exports[str(self.resolve(output["Export"]["Name"]))] = str(self.resolve(output["Value"]))
        return exports

    def resource(self, logical: str) -> CreatedResource:
        """The resource with that logical id. It is created now if it does not exist yet."""
        if logical in self._made:
            return self._made[logical]
        if logical not in self._template["Resources"]:
            raise TemplateError(f"there is no resource {logical}")
        if logical in self._open:
            raise TemplateError(f"{logical} refers to itself")
        self._open.add(logical)
        body = self._template["Resources"][logical]
        if "Condition" in body and not self._holds({"Condition": body["Condition"]}):
            raise TemplateError(f"{logical} is referred to, and its condition does not hold")
        resource = self._make(body["Type"], logical, self.resolve(body.get("Properties", {})))
        self._open.discard(logical)
        self._made[logical] = resource
        return resource

    def resolve(self, value: Any) -> Any:
        """``value`` with its intrinsic functions replaced."""
        if isinstance(value, list):
            items = (self.resolve(item) for item in value)
            return [item for item in items if item is not _NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            (name, argument), *_ = value.items()
            if name == "Ref":
                return self._ref(argument)
            if name.startswith("Fn::"):
                return self._function(name, argument)
        fields = {key: self.resolve(item) for key, item in value.items()}
        return {key: item for key, item in fields.items() if item is not _NO_VALUE}

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _NO_VALUE
        if name in self._parameters:
            return self._parameters[name]
        return self._pseudo[name] if name.startswith("AWS::") else self.resource(name).ref

    def _function(self, name: str, argument: Any) -> Any:
        if name == "Fn::GetAtt":
            logical, attribute = argument if isinstance(argument, list) else argument.split(".", 1)
            attributes = self.resource(logical).attributes
            if attribute not in attributes:
                raise TemplateError(f"{logical} has no attribute {attribute} here")
            return attributes[attribute]
        if name == "Fn::If":
            condition, value, otherwise = argument
            return self.resolve(value if self._holds({"Condition": condition}) else otherwise)
        if name == "Fn::Join":
            return str(argument[0]).join(str(item) for item in self.resolve(argument[1]))
        if name == "Fn::Sub":
            text, more = (argument, {}) if isinstance(argument, str) else argument
            return re.sub(r"\$\{([^}!]+)\}", lambda match: self._sub(match.group(1), more), text)
        if name == "Fn::ImportValue":
            return self._imports[str(self.resolve(argument))]
        raise TemplateError(f"{name} is not known here")

    def _holds(self, condition: Mapping[str, Any]) -> bool:
        """Whether a condition holds, or the function of one."""
        ((name, argument),) = condition.items()
        if name == "Condition":
            if argument not in self._template.get("Conditions", {}):
                raise TemplateError(f"there is no condition {argument}")
            return self._holds(self._template["Conditions"][argument])
        if name == "Fn::Equals":
            first, second = self.resolve(argument)
            return bool(first == second)
        if name == "Fn::And":
            return all(self._holds(part) for part in argument)
        raise TemplateError(f"{name} is not known here as a condition")

    def _sub(self, name: str, more: Mapping[str, Any]) -> str:
        if name in more:
            return str(self.resolve(more[name]))
        if "." in name:
            return str(self._function("Fn::GetAtt", name))
        return str(self._ref(name))
