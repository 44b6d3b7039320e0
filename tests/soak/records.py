"""Records of the parts: the outcome of the last run of each, with its commit."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

FOLDER = "STOCKYARD_SOAK_RECORDS"
"""Variable of the environment with the folder that a run writes the records of its parts to."""
FIGURE = "figure:"
"""A test hands in a figure with ``record_property("figure:<name>", value)``; any JSON value will do."""


@dataclass(frozen=True, slots=True)
class Record:
    """The last run of a part. ``digest``: of all that the part reads; ``seconds``: of its tests, added up."""

    part: str
    commit: str | None
    digest: str
    seed: int
    seconds: float
    tests: Mapping[str, int]
    """Numbers by outcome: passed, failed, skipped, error."""
    failures: Sequence[str]
    """Ids of the tests that failed."""
    figures: Mapping[str, Any]

    @property
    def passed(self) -> bool:
        """Whether no test failed, and some ran."""
        return not self.failures and bool(self.tests)


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one seed, a file a part, in a folder."""

    folder: Path

    def path(self, part: str) -> Path:
        """File of a part."""
        return self.folder / f"{part.replace('/', '.')}.json"

    def get(self, part: str) -> Record | None:
        """Record of a part; None where it has none, or one that cannot be read."""
        try:
            return Record(**json.loads(self.path(part).read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def put(self, record: Record) -> None:
        """Write a record whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(record.part)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(asdict(record)) + "\n", encoding="utf-8")
        fresh.replace(path)


def figures_of(reports: Sequence[pytest.TestReport]) -> dict[str, Any]:
    """Figures that tests handed in, by name."""
    return {
        name.removeprefix(FIGURE): value
        for report in reports
        if report.when == "call"
        for name, value in report.user_properties
        if name.startswith(FIGURE)
    }
