"""Tests that are one unit of work."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

from tests.distribution import AFTER, FIRST, PRIVILEGE, SERVED, UNITS, ordered, unit

TESTS = Path(__file__).resolve().parents[1]


def test_whoever_wants_the_served_cloud_is_where_it_is_served() -> None:
    """Otherwise one more worker starts a local cloud for it, and keeps that until the end."""
    for path in TESTS.rglob("test_*.py"):
        text, file = path.read_text(encoding="utf-8"), path.relative_to(TESTS.parent).as_posix()
        if re.search(r"\bserved: Served\b", text) and "def served(" not in text:
            assert unit(f"{file}::test") in {SERVED, PRIVILEGE}, file


def test_what_is_listed_is_there() -> None:
    assert [name for name in (*UNITS, *FIRST, *AFTER) if not (TESTS.parent / name).exists()] == []


def test_shared_units_come_first_and_stay_together() -> None:
    files = (
        *("tests/unit/domain/test_ids.py", "tests/workflows/test_rolling.py", "tests/e2e/test_claims.py"),
        *("tests/local/test_cloud.py", "tests/unit/edge/test_body.py", "tests/e2e/test_zones.py"),
    )
    items = [SimpleNamespace(nodeid=f"{file}::{number}") for file in files for number in (1, 2)]
    ordered(items)
    assert [item.nodeid for item in items] == [
        f"{files[index]}::{number}" for index in (2, 5, 3, 1, 0, 4) for number in (1, 2)
    ]
