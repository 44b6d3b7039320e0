"""Variables of profiles: their types and expressions."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.profiles import Variable
from stockyard.domain.profiles.cluster_profiles import is_regex, value_fault
from stockyard.errors import InvalidInput


def _text(regex: str) -> dict[str, Any]:
    return {"name": "v", "type": "string", "regex": regex}


@pytest.mark.parametrize(
    "regex", ["(a|a)*b", "(a?){30}a{30}b", "(a*)*b", "a*a*a*a*a*a*b", "(.*)(.*)(.*)(.*)(.*)c", "(a|aa)+$b"]
)
def test_no_expression_takes_long(regex: str) -> None:
    """Each takes from seconds to for ever where it is tried one way after the other."""
    assert read(Variable, {"name": "v", "regex": regex}).regex == regex
    assert value_fault(_text(regex), "a" * 60_000) == f"does not match the variable's regex {regex}"


@pytest.mark.parametrize("regex", ["(", "(?=a)b", r"(a)\1", "a{1001}", "((a{100}){100}){100}", "[z-a]", "(?P<n"])
def test_what_is_none_of_re2_is_refused(regex: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(Variable, {"name": "v", "regex": regex})
    text = "is no regular expression of RE2, which has no references back and does not look around"
    assert [(fault.pointer, fault.detail) for fault in refused.value.errors] == [("/regex", text)]
    assert not is_regex(regex)
    fault = value_fault(_text(regex), "a")
    assert fault == f"cannot be matched: {regex} is no regular expression of RE2", "a version of an earlier release"


def test_a_value_matches_as_a_whole() -> None:
    regex = r"[a-z가-힣]+-\d{1,3}(\.example)?"
    assert [value_fault(_text(regex), text) for text in ("ab-1", "한글-123.example")] == [None, None]
    assert all(value_fault(_text(regex), text) for text in ("", "ab-1\n", "xab-1234", "AB-1"))
