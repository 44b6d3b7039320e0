"""Patterns that are compiled at their first use."""

from __future__ import annotations

import re

import pytest

from stockyard.domain.values.patterns import pattern


def test_a_pattern_is_compiled_when_it_is_used_first(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    make = re.compile
    monkeypatch.setattr(re, "compile", lambda text, flags=0: texts.append(text) or make(text, flags))
    word = pattern(r"([a-z]+)(?P<rest>\d*)", re.IGNORECASE)
    assert texts == []
    match = word.fullmatch("Ab12")
    assert match is not None
    assert (match["rest"], word.sub("-", "a1 b2"), word.pattern) == ("12", "- -", r"([a-z]+)(?P<rest>\d*)")
    assert word.fullmatch("1") is None
    assert len(texts) == 3


def test_a_wrong_pattern_is_told_at_its_first_use() -> None:
    wrong = pattern("(")
    with pytest.raises(re.error):
        wrong.search("a")
