"""Folders stay small enough to be read at a glance."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
TREES = (
    "layers/common",
    "functions",
    "stacks",
    "client",
    "constructs",
    "agent",
    "local",
    "benchmarks",
    "tests/harness",
)
MOST_MODULES = 20


def test_no_folder_has_more_than_twenty_modules():
    modules = [path for tree in TREES for path in (ROOT / tree).rglob("*.py") if path.name != "__init__.py"]
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules)
    assert len(counts) > 100
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}
