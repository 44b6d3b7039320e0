"""Parts of the soak: a crash matrix each, and the other tests by folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from tests.soak.inputs import TESTS, Inputs

ALWAYS = ("pyproject.toml", "Makefile")
"""Files that every part reads: the options of the runs."""
LONG = "tests/workflows/"
"""Folder of which each file that has full counts is a part: they take from minutes to an hour."""


def has_counts(root: Path, path: str) -> bool:
    """Whether a file of ``LONG`` has tests with counts of their own in the soak."""
    return path.startswith(LONG) and "soaking" in (root / path).read_text(encoding="utf-8")


def parts(inputs: Inputs) -> Mapping[str, list[str]]:
    """Files of tests by part, both in the order of their names."""
    files = [each for each in inputs.paths if each.startswith(f"{TESTS}/") and PurePosixPath(each).match("test_*.py")]
    by_part: dict[str, list[str]] = {}
    for file in sorted(files):
        part = file if has_counts(inputs.root, file) else "/".join(PurePosixPath(file).parts[:2])
        by_part.setdefault(part, []).append(file)
    return dict(sorted(by_part.items()))


def digest(inputs: Inputs, files: Iterable[str]) -> str:
    """Digest of all that a part reads: its files, the fixtures of their folders, and what these import and name."""
    read = set(files)
    for file in tuple(read):
        fixtures = {f"{folder}/conftest.py" for folder in PurePosixPath(file).parents}
        read |= fixtures & set(inputs.paths)
    return inputs.digest([*read, *(set(ALWAYS) & set(inputs.paths))])
