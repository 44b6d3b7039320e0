"""Templates as the runner reads them: their custom resources in order of dependence, and stand-ins for all others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from graphlib import TopologicalSorter
from typing import Any

from local.template import CreatedResource, Stack

Template = Mapping[str, Any]
Make = Callable[[str, Mapping[str, Any]], CreatedResource]
"""(logical id, resolved properties) -> the custom resource."""


def custom_resources(template: Template) -> list[str]:
    """Logical ids of the custom resources, each behind those that it needs."""
    resources = template["Resources"]
    graph = {name: (set(_needs(body, resources)) & resources.keys()) - {name} for name, body in resources.items()}
    return [name for name in TopologicalSorter(graph).static_order() if is_custom(resources[name])]


def is_custom(body: Mapping[str, Any]) -> bool:
    """Whether a resource is one of the two forms of custom resources."""
    kind = str(body["Type"])
    return kind.startswith("Custom::") or kind == "AWS::CloudFormation::CustomResource"


def walked(template: Template, pseudo: Mapping[str, str], make: Make) -> Iterator[str]:
    """Makes the custom resources in order, and gives the logical id of each. Others only have a name and ARNs."""

    def create(kind: str, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        if is_custom({"Type": kind}):
            return make(logical, properties)
        return CreatedResource(logical, _StandIn(logical))

    stack = Stack(template, pseudo, {}, create, dict.fromkeys(template.get("Parameters", {}), ""))
    for logical in custom_resources(template):
        stack.resource(logical)
        yield logical


class _StandIn(dict[str, str]):
    """Attributes of a resource that is not made here: each is an ARN that names both."""

    def __init__(self, logical: str) -> None:
        super().__init__()
        self._logical = logical

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return f"arn:aws:local:us-east-1:222222222222:{self._logical}/{name}"


def _needs(body: Any, resources: Mapping[str, Any]) -> Iterator[str]:
    """The resources that a part of a template refers to."""
    if isinstance(body, list):
        for item in body:
            yield from _needs(item, resources)
        return
    if not isinstance(body, Mapping):
        return
    for key, value in body.items():
        if key in ("Ref", "DependsOn"):
            yield from ([value] if isinstance(value, str) else value)
        elif key == "Fn::GetAtt":
            yield value[0] if isinstance(value, list) else str(value).partition(".")[0]
        elif key == "Fn::Sub":
            text = value if isinstance(value, str) else value[0]
            yield from (name for name in re.findall(r"\$\{([A-Za-z0-9]+)[.}]", text) if name in resources)
        else:
            yield from _needs(value, resources)
