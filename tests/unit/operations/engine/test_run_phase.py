"""Messages of a phase that waits for what a cloud does not show yet."""

from __future__ import annotations

import pytest

from stockyard.operations.engine.run_phase import _awaited


@pytest.mark.parametrize(
    ("detail", "text"),
    [
        ("route table rtb-1 is not shown yet", "Waiting until the cloud shows route table rtb-1, which was just made."),
        ("vpc exists and is not shown yet", "Waiting until the cloud shows vpc, which was just made."),
        (
            "vpc main may have been made and is not shown yet",
            "Waiting until the cloud shows vpc main, which was just made.",
        ),
        ("Another worker launches the claims of the group.", "Another worker launches the claims of the group."),
    ],
)
def test_words_for_people(detail: str, text: str) -> None:
    assert _awaited(detail) == text
