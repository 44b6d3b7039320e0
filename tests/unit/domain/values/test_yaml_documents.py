"""YAML of people: the core types of YAML 1.2, and nothing that JSON has not."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.values.yaml_documents import YamlFault, read_documents


@pytest.mark.parametrize("text", ["=", "17:00", "8080:53", "010", "On", "2026-01-01", ".inf", "0x1F", "1_000"])
def test_what_only_older_yaml_has_a_type_for_is_a_text(text: str) -> None:
    assert read_documents(f"a: {text}\nb: [{text}]") == [{"a": text, "b": [text]}]


@pytest.mark.parametrize(
    ("text", "detail", "line"),
    [
        ("a: 1\nb: !!binary aGk=", "has a tag of a type; leave it out", 2),
        ("a: !!set {x}", "has a tag of a type; leave it out", 1),
        ("a: &x 1\nb: *x", "has an alias; write the part out", 2),
        ("a: 1\n\na: 2", "has a name twice in one object", 3),
        ("a: 1e999", "has a number that is too large", 1),
        ("[" * 65 + "]" * 65, "is nested deeper than 64 levels", 1),
        ("a: [", "is no YAML", 2),
        ("1: a", "has a name that is no text; put it into quotes", 1),
    ],
)
def test_what_json_has_not_is_refused_with_its_line(text: str, detail: str, line: int) -> None:
    with pytest.raises(YamlFault) as refused:
        read_documents(text)
    assert (refused.value.detail, refused.value.line) == (detail, line)


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(YamlFault):
        read_documents('a: "\\ud800"')


@pytest.mark.parametrize(("name", "text"), [("80", "80"), ("true", "true"), ("1.50", "1.50"), ("'x'", "x")])
def test_names_are_texts_as_kubernetes_has_them(name: str, text: str) -> None:
    read: list[Any] = read_documents(f"{name}: a", texts_of_names=True)
    assert read == [{text: "a"}]


def test_no_name_is_still_none() -> None:
    with pytest.raises(YamlFault, match="no text"):
        read_documents("~: a", texts_of_names=True)
