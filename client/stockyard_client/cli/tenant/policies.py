"""The managed policies of an account's template, as IAM takes them without CloudFormation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MOST_CHARACTERS = 6144
"""What IAM takes of a managed policy, spaces not counted."""
INLINE_CHARACTERS = 2048
"""What IAM takes of all inline policies of a user together."""
EXPECTED_WARNING = (
    "This policy defines some actions, resources, or conditions that do not provide permissions."
    " To grant access, policies must have an action that has an applicable resource or condition."
)
"""What IAM's console says of policies whose statements name several kinds of things for several actions."""
NOTE = (
    f"Attach them as managed policies: they do not fit into the {INLINE_CHARACTERS:,} characters of inline policies."
    f' IAM\'s console warns of some of them, which is expected: "{EXPECTED_WARNING}"'
)


@dataclass(frozen=True, slots=True)
class Policy:
    """A managed policy. ``part`` is the condition of the template that it belongs to; empty: it is always needed."""

    name: str
    part: str
    document: dict[str, Any]

    @property
    def text(self) -> str:
        """The document as IAM takes it, without spaces."""
        return json.dumps(self.document, separators=(",", ":"))


def policies_of(template: Mapping[str, Any], partition: str) -> list[Policy]:
    """The policies of a CloudFormation template, by name. ``partition`` is ``aws``, ``aws-cn`` or ``aws-us-gov``.

    Those that bound the roles of machines are among them: they have the names by which these roles refer to them. What
    depends on a parameter of the template is as its default has it.
    """
    resolve = _Resolver(template, partition)
    return [
        Policy(
            str(resource["Properties"].get("ManagedPolicyName") or name),
            str(resource.get("Condition") or ""),
            resolve.value(resource["Properties"]["PolicyDocument"]),
        )
        for name, resource in sorted(template.get("Resources", {}).items())
        if resource.get("Type") == "AWS::IAM::ManagedPolicy"
    ]


_NO_VALUE = {"Ref": "AWS::NoValue"}


@dataclass(frozen=True, slots=True)
class _Resolver:
    """CloudFormation's substitutions and choices, with each parameter's default."""

    template: Mapping[str, Any]
    partition: str

    def value(self, value: Any) -> Any:
        """The value without functions."""
        if isinstance(value, dict) and set(value) == {"Fn::Sub"}:
            return str(value["Fn::Sub"]).replace("${AWS::Partition}", self.partition)
        if isinstance(value, dict):
            chosen_parts = {key: self._choose(part) for key, part in value.items()}
            return {key: self.value(part) for key, part in chosen_parts.items() if part != _NO_VALUE}
        if isinstance(value, list):
            return [self.value(part) for part in map(self._choose, value) if part != _NO_VALUE]
        return value

    def _choose(self, value: Any) -> Any:
        if not isinstance(value, dict) or set(value) != {"Fn::If"}:
            return value
        condition, then, otherwise = value["Fn::If"]
        return self._choose(then if self._holds({"Condition": condition}) else otherwise)

    def _holds(self, condition: Mapping[str, Any]) -> bool:
        ((function, argument),) = condition.items()
        if function == "Condition":
            return self._holds(self.template["Conditions"][argument])
        if function == "Fn::And":
            return all(self._holds(part) for part in argument)
        parameter, expected = argument
        return bool(self.template["Parameters"][parameter["Ref"]]["Default"] == expected)
