"""Texts beside plans: warnings, and notes that only tell."""

from __future__ import annotations

from stockyard.domain.values.notes import Note, remark


def test_a_note_says_that_it_is_one() -> None:
    assert remark("/a", "mind this") == {"pointer": "/a", "detail": "mind this"}
    noted = remark("", Note("this is so"))
    assert noted == {"pointer": "", "detail": "this is so", "note": True}
    assert type(noted["detail"]) is str
