"""Plays cases of bug reports: ``python tests/conformance/bugs.py FOLDER...``.

Each file of a folder is one case; their form is in ``cases/bugs/README.md``. Prints a line a case, and last how many
passed, failed and were skipped; exit 1 when one failed. No case is known by its id. A level, step, expectation or field
that is not known fails its case by name; levels that are written in words are skipped, because a test of their own
plays them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "layers" / "common" / "python"))

import yaml

from stockyard.providers.registry import introduce
from tests.conformance.bug_levels import api_requests, cluster, hours, packing
from tests.conformance.bug_levels.bench import Bench, open_bench
from tests.conformance.bug_levels.reading import Different, Unreadable, check_fields

Json = Any
Play = Callable[[Mapping[str, Json]], None]
IN_WORDS = ("api", "cli", "reading")
"""Levels whose steps are sentences."""
ENDINGS = (".yaml", ".yml", ".json")
COMMON = frozenset({"id", "level", "what", "rule", "source", "expected"})
SEEN_PREFIX = "seen_"
"""How the name of a field begins that says what happened at some day, which is no expectation."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a case: ``problem`` is None where it passed, ``skipped`` says why it was not played."""

    name: str
    problem: str | None = None
    skipped: str | None = None

    def __str__(self) -> str:
        if self.skipped is not None:
            return f"SKIP {self.name}: {self.skipped}"
        return f"PASS {self.name}" if self.problem is None else f"FAIL {self.name}: {self.problem}"


class Levels:
    """Plays cases by their level. A level's world is made when its first case comes."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._requests: api_requests.Requests | None = None
        self.known: Mapping[str, tuple[frozenset[str], Play]] = {
            "pack": (packing.FIELDS, packing.play),
            "apply": (api_requests.APPLY_FIELDS, self._apply),
            "cluster": (cluster.FIELDS, self._cluster),
            "hours": (hours.FIELDS, hours.play),
            "simulate": (api_requests.SIMULATE_FIELDS, self._simulate),
        }
        """By level the fields that only its cases have, and what plays one."""

    @cached_property
    def _bench(self) -> Bench:
        return self._stack.enter_context(open_bench())

    def _requests_there(self) -> api_requests.Requests:
        """Sender of the requests. A case of a cluster leaves nothing of what was there before."""
        if self._requests is None:
            self._requests = api_requests.Requests(self._bench)
        return self._requests

    def _apply(self, case: Mapping[str, Json]) -> None:
        self._requests_there().apply(case)

    def _simulate(self, case: Mapping[str, Json]) -> None:
        self._requests_there().simulate(case)

    def _cluster(self, case: Mapping[str, Json]) -> None:
        self._requests = None
        cluster.play(self._bench, case)

    def outcome(self, name: str, case: Mapping[str, Json]) -> Outcome:
        """Outcome of a case."""
        level = case.get("level")
        if level in IN_WORDS:
            return Outcome(name, skipped=f"a case of level {level} is in words, for a test of its own")
        try:
            if level not in self.known:
                raise Unreadable(f"unknown level {level!r}")
            fields, play = self.known[str(level)]
            given_fields = {field: None for field in case if not str(field).startswith(SEEN_PREFIX)}
            check_fields("case", given_fields, COMMON | fields)
            if not case.get("expected"):
                raise Unreadable("it expects nothing")
            play(case)
        except Different as different:
            return Outcome(name, str(different))
        except Unreadable as unreadable:
            return Outcome(name, f"cannot be played: {unreadable}")
        except Exception as wrong:  # one case keeps no other from being played
            return Outcome(name, f"cannot be played: {type(wrong).__name__}: {wrong}")
        return Outcome(name)


def cases(paths: Sequence[Path]) -> Iterator[tuple[str, Json]]:
    """Each case with its name: the id in the case, else the id of the file. A path is a folder or a file."""
    for path in paths:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        for file in files:
            if file.suffix in ENDINGS:
                try:
                    case = yaml.safe_load(file.read_text(encoding="utf-8"))
                except (OSError, ValueError, yaml.YAMLError) as wrong:
                    case = f"cannot be read: {wrong}"
                yield str(case.get("id", file.stem)) if isinstance(case, dict) else file.stem, case


def play(paths: Sequence[Path]) -> Iterator[Outcome]:
    """Play all cases of some folders or files, one after the other."""
    introduce()
    with ExitStack() as stack:
        levels = Levels(stack)
        for name, case in cases(paths):
            if isinstance(case, dict):
                yield levels.outcome(name, case)
            else:
                yield Outcome(name, case if isinstance(case, str) else "cannot be read: no object")


def main(arguments: Sequence[str]) -> int:
    """Play, print, judge."""
    paths = [Path(argument) for argument in arguments]
    missing = [str(path) for path in paths if not path.exists()]
    if not paths or missing:
        print(f"not there: {', '.join(missing)}" if missing else "usage: bugs.py FOLDER...", file=sys.stderr)
        return 2
    outcomes = []
    for outcome in play(paths):
        print(outcome, flush=True)
        outcomes.append(outcome)
    failed = sum(outcome.problem is not None for outcome in outcomes)
    skipped = sum(outcome.skipped is not None for outcome in outcomes)
    print(f"{len(outcomes) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
