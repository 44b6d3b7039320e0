"""The runner of custom resources takes what CloudFormation takes, and refuses what its documentation refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from local.cloudformation import AnswerError, Provider, Runner, StackFailed, custom_resources
from local.cloudformation.answers import as_texts, read_answer
from local.cloudformation.requests import seconds_of
from local.cloudformation.timeline import Timeline

REQUEST = {
    "RequestType": "Create",
    "StackId": "arn:aws:cloudformation:us-east-1:1:stack/a/b",
    "RequestId": "r-1",
    "LogicalResourceId": "Thing",
}
ANSWER = {
    "Status": "SUCCESS",
    "PhysicalResourceId": "thing-1",
    **{name: REQUEST[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
}


def read(request: Mapping[str, Any] = REQUEST, **changes: Any) -> Any:
    answer = {**ANSWER, **changes}
    return read_answer(json.dumps({k: v for k, v in answer.items() if v is not None}).encode(), request)


def test_an_answer_is_read_and_its_data_are_texts() -> None:
    answer = read(Data={"Count": 2, "On": True, "Name": "a"}, NoEcho=False)
    assert (answer.succeeded, answer.physical_id) == (True, "thing-1")
    assert answer.data == {"Count": "2", "On": "true", "Name": "a"}
    assert read(PhysicalResourceId="x" * 1024, Reason="").physical_id == "x" * 1024


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"Status": "OK"}, "Status"),
        ({"Status": "FAILED"}, "Reason"),
        ({"Status": "FAILED", "Reason": ""}, "Reason"),
        ({"PhysicalResourceId": ""}, "PhysicalResourceId"),
        ({"PhysicalResourceId": None}, "PhysicalResourceId"),
        ({"PhysicalResourceId": "x" * 1025}, "1024 bytes"),
        ({"PhysicalResourceId": 7}, "no text"),
        ({"StackId": "other"}, "StackId"),
        ({"RequestId": None}, "RequestId"),
        ({"LogicalResourceId": "Other"}, "LogicalResourceId"),
        ({"Data": [1]}, "Data"),
        ({"NoEcho": "true"}, "NoEcho"),
        ({"Extra": 1}, "Extra"),
        ({"Reason": "x" * 4096}, "4096"),
    ],
)
def test_answers_that_cloudformation_does_not_take(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(AnswerError, match=fault):
        read(**changes)


def test_what_is_no_object_is_no_answer_and_a_deletion_keeps_its_physical_id() -> None:
    for content in (b"", b"[]", b"SUCCESS"):
        with pytest.raises(AnswerError):
            read_answer(content, REQUEST)
    with pytest.raises(AnswerError, match="a deletion"):
        read({**REQUEST, "RequestType": "Delete", "PhysicalResourceId": "thing-0"})


def test_properties_are_texts_and_the_timeout_is_from_a_second_to_an_hour() -> None:
    assert as_texts({"a": 1, "b": [True, None], "c": {"d": 1.5}}) == {
        "a": "1",
        "b": ["true", "null"],
        "c": {"d": "1.5"},
    }
    assert [seconds_of(properties) for properties in ({}, {"ServiceTimeout": "60"})] == [3600, 60]
    for wrong in ("0", "3601", "1.5", "-1", "an hour"):
        with pytest.raises(ValueError, match="ServiceTimeout"):
            seconds_of({"ServiceTimeout": wrong})


# --- a provider of things in a dictionary ----------------------------------------------------------------------------


class Things:
    """Makes things with a name and a colour; another name is another thing. ``broken`` colours fail."""

    def __init__(self, *broken: str) -> None:
        self.things: dict[str, str] = {}
        self.broken = broken
        self.seen: list[tuple[str, str | None]] = []

    def on_event(self, event: dict[str, Any]) -> dict[str, Any]:
        properties = event["ResourceProperties"]
        self.seen.append((event["RequestType"], event.get("PhysicalResourceId")))
        if event["RequestType"] == "Delete":
            self.things.pop(event["PhysicalResourceId"], None)
            return {}
        if properties["Colour"] in self.broken:
            raise RuntimeError(f"no {properties['Colour']} today")
        self.things[properties["Name"]] = properties["Colour"]
        return {"PhysicalResourceId": properties["Name"], "Data": {"Colour": properties["Colour"]}}

    def is_complete(self, _event: dict[str, Any]) -> dict[str, Any]:
        return {"IsComplete": True}


def runner(things: Any, **more: Any) -> Runner:
    timeline = Timeline()
    return Runner(Provider(things.on_event, things.is_complete, timeline, **more), timeline)


def template(**colours: str) -> dict[str, Any]:
    """Things by their logical ids: ``name:colour``. Each depends on the one before it."""
    resources, before = {}, None
    for logical, text in colours.items():
        name, _, colour = text.partition(":")
        body: dict[str, Any] = {"Type": "Custom::Thing", "Properties": {"ServiceToken": "t", "Name": name}}
        body["Properties"]["Colour"] = colour
        if before is not None:
            body["DependsOn"] = before
        resources[logical], before = body, logical
    return {"Resources": resources}


def test_a_stack_is_created_changed_replaced_and_deleted_in_order() -> None:
    things = Things()
    region = runner(things)
    stack = region.create("s", template(A="a:red", B="b:red"))
    region.update(stack, template(A="a:blue", B="c:red"))
    assert things.things == {"a": "blue", "c": "red"}
    assert things.seen[2:] == [("Update", "a"), ("Update", "b"), ("Delete", "b")]
    region.update(stack, template(A="a:blue"))
    region.update(stack, template(A="a:blue"))
    region.delete(stack)
    assert things.things == {}
    assert things.seen[5:] == [("Delete", "c"), ("Delete", "a")]
    assert stack.status == "DELETE_COMPLETE"


def test_what_is_retained_is_not_deleted() -> None:
    things = Things()
    region = runner(things)
    retained = template(A="a:red", B="b:red", C="c:red")
    for logical in ("A", "B"):
        retained["Resources"][logical]["DeletionPolicy"] = "Retain"
    stack = region.create("s", retained)
    del retained["Resources"]["B"], retained["Resources"]["C"]["DependsOn"]
    region.update(stack, {"Resources": dict(retained["Resources"])})
    region.delete(stack)
    assert things.things == {"a": "red", "b": "red"}


def test_a_failed_creation_is_rolled_back_and_the_framework_spares_its_deletion() -> None:
    things = Things("green")
    region = runner(things)
    with pytest.raises(StackFailed, match="ROLLBACK_COMPLETE: B: no green today"):
        region.create("s", template(A="a:red", B="b:green", C="c:red"))
    assert things.things == {}
    assert things.seen == [("Create", None), ("Create", None), ("Delete", "a")]


def test_a_failed_change_is_rolled_back_in_reverse_order() -> None:
    things = Things("green")
    region = runner(things)
    stack = region.create("s", template(A="a:red", B="b:red"))
    with pytest.raises(StackFailed, match="UPDATE_ROLLBACK_COMPLETE"):
        region.update(stack, template(A="x:red", B="b:green"))
    assert things.things == {"a": "red", "b": "red"}
    assert things.seen[2:] == [("Update", "a"), ("Update", "b"), ("Update", "b"), ("Update", "x"), ("Delete", "x")]
    assert {name: resource.physical_id for name, resource in stack.resources.items()} == {"A": "a", "B": "b"}


def test_a_function_that_never_ends_runs_into_the_time_of_the_framework_or_of_the_stack() -> None:
    class Endless(Things):
        def is_complete(self, event: dict[str, Any]) -> dict[str, Any]:
            return {"IsComplete": event["RequestType"] == "Delete"}

    with pytest.raises(StackFailed, match="Operation timed out"):
        runner(Endless(), total=600.0).create("s", template(A="a:red"))
    with pytest.raises(StackFailed, match="did not receive a response"):
        runner(Endless(), total=7_200.0).create("s", template(A="a:red"))


def test_data_before_the_end_and_attributes_that_nobody_gives_are_faults() -> None:
    class Hasty(Things):
        def is_complete(self, event: dict[str, Any]) -> dict[str, Any]:
            return {"IsComplete": False, "Data": {"a": 1}}

    with pytest.raises(StackFailed, match="is not allowed"):
        runner(Hasty()).create("s", template(A="a:red"))
    wanting = template(A="a:red", B="b:red")
    wanting["Resources"]["B"]["Properties"]["Colour"] = {"Fn::GetAtt": ["A", "Size"]}
    with pytest.raises(StackFailed, match="no attribute Size"):
        runner(Things()).create("s", wanting)


def test_resources_come_behind_those_that_they_need() -> None:
    document = template(A="a:red", B="b:red")["Resources"]
    document["A"]["Properties"]["Name"] = {"Fn::Join": ["", [{"Ref": "B"}, {"Ref": "AWS::Region"}]]}
    del document["B"]["DependsOn"]
    document["Role"] = {"Type": "AWS::IAM::Role"}
    assert custom_resources({"Resources": document}) == ["B", "A"]
