"""Which tests are one unit of work."""

from __future__ import annotations

import re
from pathlib import Path

from tests.distribution import PRIVILEGE, SECONDS, SERVED, UNITS, unit

TESTS = Path(__file__).resolve().parents[1]


def test_whoever_wants_the_served_cloud_is_where_it_is_served() -> None:
    """Otherwise one more worker starts a local cloud for it, and keeps that until the end."""
    for path in TESTS.rglob("test_*.py"):
        text, file = path.read_text(encoding="utf-8"), path.relative_to(TESTS.parent).as_posix()
        if re.search(r"\bserved: Served\b", text) and "def served(" not in text:
            assert unit(f"{file}::test") in {SERVED, PRIVILEGE}, file


def test_what_is_listed_is_there() -> None:
    names = {name for name in {*UNITS, *SECONDS} if name.startswith("tests/")}
    assert [name for name in sorted(names) if not (TESTS.parent / name).exists()] == []
