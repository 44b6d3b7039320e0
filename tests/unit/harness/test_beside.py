"""Parts that run side by side."""

from __future__ import annotations

import threading

import pytest

from tests.harness.beside import side_by_side


def test_parts_run_at_once_and_answer_in_their_order() -> None:
    meeting = threading.Barrier(2, timeout=30)
    assert side_by_side(lambda: (meeting.wait(), "a")[1], lambda: (meeting.wait(), "b")[1]) == ["a", "b"]


def test_every_failure_is_told_after_all_have_ended() -> None:
    names_of_ended = list[str]()

    def fails(name: str) -> None:
        assert name == "", name
        names_of_ended.append(name)

    with pytest.raises(BaseExceptionGroup) as raised:
        side_by_side(lambda: fails("one"), lambda: fails("two"), lambda: fails(""))
    assert [str(fault).split("\n")[0] for fault in raised.value.exceptions] == ["one", "two"]
    assert names_of_ended == [""]
