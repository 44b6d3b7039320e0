"""Intrinsic functions are resolved and resources created in the order of their references; unknown ones are errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from local.deployment import NO_LOCAL_MEANING, ResourceFactory
from local.template import CreatedResource, Stack, TemplateError, load

PSEUDO = {"AWS::AccountId": "111111111111", "AWS::Region": "us-east-1", "AWS::Partition": "aws"}


def stack(resources: Mapping[str, Any], imports: Mapping[str, str] | None = None, **more: Any) -> tuple[Any, Any]:
    properties_by_id: dict[str, Mapping[str, Any]] = {}

    def make(kind: str, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        properties_by_id[logical] = properties
        return CreatedResource(f"ref-{logical}", {"Arn": f"arn-{logical}"})

    return Stack({"Resources": resources, **more}, PSEUDO, imports or {}, make), properties_by_id


def test_referenced_resources_are_created_first() -> None:
    created_stack, properties_by_id = stack(
        {
            "B": {
                "Type": "T",
                "Properties": {
                    "a": {"Ref": "A"},
                    "arn": {"Fn::GetAtt": ["A", "Arn"]},
                    "joined": {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":", {"Fn::GetAtt": "A.Arn"}]]},
                    "sub": {"Fn::Sub": "x-${AWS::Region}-${A}-${A.Arn}-${own}-${!kept}".replace("-${own}", "")},
                    "subs": {"Fn::Sub": ["${own}!", {"own": {"Ref": "A"}}]},
                    "imported": {"Fn::ImportValue": "theirs"},
                    "list": [{"Ref": "A"}, 1, {"Fn": "plain"}],
                },
            },
            "A": {"Type": "T"},
        },
        {"theirs": "value"},
        Outputs={"O": {"Value": {"Ref": "B"}, "Export": {"Name": "mine"}}, "P": {"Value": 1}},
    )
    assert created_stack.create() == {"mine": "ref-B"}
    assert list(properties_by_id) == ["A", "B"]
    assert properties_by_id["B"] == {
        "a": "ref-A",
        "arn": "arn-A",
        "joined": "arn:aws:arn-A",
        "sub": "x-us-east-1-ref-A-arn-A-${!kept}",
        "subs": "ref-A!",
        "imported": "value",
        "list": ["ref-A", 1, {"Fn": "plain"}],
    }


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"A": {"Type": "T", "Properties": {"x": {"Fn::GetAtt": ["A", "Arn"]}}}}, "refers to itself"),
        ({"A": {"Type": "T", "Properties": {"x": {"Ref": "none"}}}}, "no resource none"),
        ({"A": {"Type": "T", "Properties": {"x": {"Fn::Base64": "y"}}}}, "Fn::Base64"),
        ({"A": {"Type": "T", "Condition": "c"}}, "condition"),
        ({"A": {"Type": "T", "Properties": {"x": {"Fn::If": ["c", 1, 2]}}}}, "condition c"),
        ({"A": {"Type": "T"}, "B": {"Type": "T", "Properties": {"x": {"Fn::GetAtt": ["A", "Url"]}}}}, "attribute Url"),
    ],
)
def test_unknown_references_and_functions_are_errors(resources: Mapping[str, Any], message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        stack(resources)[0].create()


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, {"A": {}, "B": {"list": ["ref-A", "x"], "text": "b a c", "field": "yes"}}),
        ({"Inner": "no"}, {"A": {}, "B": {"list": ["ref-A"], "text": "b a", "field": "no"}}),
        ({"Outer": "no"}, {"B": {"list": [], "text": "b", "field": "yes"}}),
    ],
)
def test_conditions_decide_what_is_made_and_what_it_has(parameters: dict[str, str], expected: dict[str, Any]) -> None:
    def item(condition: str, value: Any) -> dict[str, Any]:
        return {"Fn::If": [condition, value, {"Ref": "AWS::NoValue"}]}

    properties = {
        "list": [item("HasOuter", {"Ref": "A"}), item("HasInner", "x")],
        "text": {"Fn::Join": ["", ["b", item("HasOuter", " a"), item("HasInner", " c")]]},
        "field": {"Ref": "Inner"},
        "absent": {"Ref": "AWS::NoValue"},
    }
    own = {"Fn::Equals": [{"Ref": "Inner"}, "yes"]}
    template = {
        "Parameters": {"Outer": {"Default": "yes"}, "Inner": {"Default": "yes"}},
        "Conditions": {
            "HasOuter": {"Fn::Equals": [{"Ref": "Outer"}, "yes"]},
            "HasInner": {"Fn::And": [{"Condition": "HasOuter"}, own]},
        },
        "Resources": {"A": {"Type": "T", "Condition": "HasOuter"}, "B": {"Type": "T", "Properties": properties}},
    }
    properties_by_id: dict[str, Mapping[str, Any]] = {}

    def make(kind: str, logical: str, properties: Mapping[str, Any]) -> CreatedResource:
        properties_by_id[logical] = properties
        return CreatedResource(f"ref-{logical}")

    Stack(template, PSEUDO, {}, make, parameters).create()
    assert properties_by_id == expected


def test_a_condition_that_is_no_known_function_is_an_error() -> None:
    resources, conditions = {"A": {"Type": "T", "Condition": "c"}}, {"c": {"Fn::Not": [{"Condition": "d"}]}}
    with pytest.raises(TemplateError, match="Fn::Not"):
        stack(resources, Conditions=conditions)[0].create()


def test_a_reference_to_what_a_condition_leaves_out_is_an_error() -> None:
    resources = {"A": {"Type": "T", "Condition": "c"}, "B": {"Type": "T", "Properties": {"x": {"Ref": "A"}}}}
    with pytest.raises(TemplateError, match="A is referred to"):
        stack(resources, Conditions={"c": {"Fn::Equals": ["1", "2"]}})[0].create()


def test_an_unknown_type_is_an_error_and_a_skipped_one_has_a_reason() -> None:
    factory = ResourceFactory(lambda _service: None, Path(), "http://api", "111111111111", "us-east-1")
    with pytest.raises(TemplateError, match="AWS::Kinesis::Stream"):
        factory("AWS::Kinesis::Stream", "S", {})
    assert all(len(reason) > 15 for reason in NO_LOCAL_MEANING.values())
    assert factory("AWS::CloudWatch::Alarm", "Alarm", {}).ref == "Alarm"


def test_templates_are_loaded_exporters_first_with_replacements(tmp_path: Path) -> None:
    (tmp_path / "a.template.json").write_text(json.dumps({"x": {"Fn::ImportValue": "y"}, "issuer": "https://old"}))
    (tmp_path / "b.template.json").write_text(json.dumps({"exports": True}))
    templates = load(tmp_path, {"https://old": "http://new"})
    assert templates[0] == {"exports": True}
    assert templates[1]["issuer"] == "http://new"
    with pytest.raises(TemplateError, match="no template"):
        load(tmp_path / "none")
