"""Recording of a run: a part has its record when its last test has ended, so that a stopped run keeps the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.soak.inputs import Inputs, tracked
from tests.soak.parts import digest, parts
from tests.soak.records import Record, Records, figures_of


@dataclass(slots=True)
class Recorder:
    """Collects the reports of a run, and writes the record of each part when all of its tests have ended.

    ``part_of`` names the part of a test by its id, and ``digest`` digests all that a part reads now: a part that was
    changed while it ran has no record.
    """

    records: Records
    commit: str | None
    seed: int
    part_of: Callable[[str], str]
    digest: Callable[[str], str]
    digests_before: Mapping[str, str] = field(default_factory=dict)
    """The digest of each part of the run, from before it."""
    _waiting: dict[str, set[str]] = field(default_factory=dict)
    _reports: dict[str, list[pytest.TestReport]] = field(default_factory=dict)

    def expect(self, ids: Sequence[str]) -> None:
        """Tests that were collected. Called once for each worker with the same ids."""
        if not self._waiting:
            for each in ids:
                self._waiting.setdefault(self.part_of(each), set()).add(each)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Tests that a run without workers collected."""
        if session.items:
            self.expect([each.nodeid for each in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Tests that a worker collected."""
        self.expect(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test has ended."""
        part = self.part_of(report.nodeid)
        self._reports.setdefault(part, []).append(report)
        if report.when == "teardown":
            waiting = self._waiting.get(part, set())
            waiting.discard(report.nodeid)
            if not waiting and part in self.digests_before:
                self._end(part)

    def _end(self, part: str) -> None:
        if self.digest(part) != self.digests_before[part]:
            return
        reports = self._reports.pop(part)
        self.records.put(
            Record(
                part=part,
                commit=self.commit,
                digest=self.digests_before[part],
                seed=self.seed,
                seconds=round(sum(each.duration for each in reports), 1),
                tests=dict(Counter(_outcomes(reports))),
                failures=sorted({each.nodeid for each in reports if each.failed}),
                figures=figures_of(reports),
            )
        )


def _outcomes(reports: Sequence[pytest.TestReport]) -> Iterator[str]:
    for each in reports:
        if each.when == "call" or each.outcome == "skipped":
            yield each.outcome
        elif each.failed:
            yield "error"


def recorder(root: Path, folder: Path, commit: str | None, seed: int) -> Recorder:
    """Recorder of a run of the tests of ``root``, with the digests that their parts have now."""

    def digests() -> dict[str, str]:
        inputs = Inputs(root, tuple(tracked(root)))
        return {part: digest(inputs, files) for part, files in parts(inputs).items()}

    part_by_file = {file: part for part, files in parts(Inputs(root, tuple(tracked(root)))).items() for file in files}
    return Recorder(
        Records(folder),
        commit,
        seed,
        part_of=lambda test: part_by_file[test.split("::", 1)[0]],
        digest=lambda part: digests()[part],
        digests_before=digests(),
    )
