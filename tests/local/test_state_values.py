"""Paths, payload templates, result paths and the conditions of ``Choice``."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.harness.worlds.state_values import holds, read, render, with_result

DATA: dict[str, Any] = {"a": {"b": 7, "none": None}, "text": "x", "yes": True, "number": 2.5, "list": [1]}
CONTEXT = {"Task": {"Token": "t-1"}}


def test_a_path_selects_from_the_data_or_the_context() -> None:
    assert read("$", DATA, CONTEXT) == DATA
    assert read("$.a.b", DATA, CONTEXT) == 7
    assert read("$.a.none", DATA, CONTEXT) is None
    assert read("$$.Task.Token", DATA, CONTEXT) == "t-1"


@pytest.mark.parametrize("path", ["$.nothing", "$.text.deeper", "$.a.b.c", "$$.Task.Name"])
def test_a_path_to_a_missing_value_is_an_error(path: str) -> None:
    with pytest.raises(KeyError):
        read(path, DATA, CONTEXT)


@pytest.mark.parametrize("path", ["a.b", "$a", "$.list[0]", "$.*", "$..b"])
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        read(path, DATA, CONTEXT)


def test_a_template_is_filled_at_every_depth() -> None:
    template = {"plain": "$.text", "n.$": "$.a.b", "deep": [{"t.$": "$$.Task.Token"}, 3]}
    assert render(template, DATA, CONTEXT) == {"plain": "$.text", "n": 7, "deep": [{"t": "t-1"}, 3]}


def test_a_result_is_set_in_a_copy() -> None:
    before = copy.deepcopy(DATA)
    assert with_result("$.a.c.d", DATA, 1)["a"] == {"b": 7, "none": None, "c": {"d": 1}}
    assert before == DATA
    assert with_result("$", DATA, 1) == 1
    assert with_result(None, DATA, 1) == DATA
    for path in ("a", "$x"):
        with pytest.raises(ValueError, match="not supported"):
            with_result(path, DATA, 1)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"Variable": "$.text", "StringEquals": "x"}, True),
        ({"Variable": "$.text", "StringEquals": "y"}, False),
        ({"Variable": "$.a.b", "StringEquals": "7"}, False),
        ({"Variable": "$.yes", "BooleanEquals": True}, True),
        ({"Variable": "$.a.b", "BooleanEquals": True}, False),
        ({"Variable": "$.a.b", "NumericEquals": 7}, True),
        ({"Variable": "$.yes", "NumericEquals": 1}, False),
        ({"Variable": "$.number", "NumericGreaterThan": 2}, True),
        ({"Variable": "$.number", "NumericLessThan": 2}, False),
        ({"Variable": "$.text", "NumericLessThan": 2}, False),
        ({"Variable": "$.a.none", "IsPresent": True}, True),
        ({"Variable": "$.nothing", "IsPresent": True}, False),
        ({"Variable": "$.nothing", "IsPresent": False}, True),
        ({"Not": {"Variable": "$.yes", "BooleanEquals": True}}, False),
        ({"And": [{"Variable": "$.yes", "BooleanEquals": True}, {"Variable": "$.text", "StringEquals": "y"}]}, False),
        ({"Or": [{"Variable": "$.yes", "BooleanEquals": False}, {"Variable": "$.text", "StringEquals": "x"}]}, True),
    ],
)
def test_a_condition_is_evaluated(rule: dict[str, Any], expected: bool) -> None:
    assert holds({**rule, "Next": "there"}, DATA, CONTEXT) is expected


def test_a_missing_variable_and_an_unknown_operator_are_errors() -> None:
    with pytest.raises(KeyError):
        holds({"Variable": "$.nothing", "StringEquals": "x", "Next": "there"}, DATA, CONTEXT)
    with pytest.raises(ValueError, match="StringMatches"):
        holds({"Variable": "$.text", "StringMatches": "x*", "Next": "there"}, DATA, CONTEXT)
