"""The runner of cases of bugs: our own cases pass, what is not so fails, and so does what is not known."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance import bugs
from tests.conformance.bug_levels.reading import Unreadable, as_expected

ROOT = Path(__file__).resolve().parents[2]
OWN = Path(__file__).with_name("cases") / "bugs"
SHARED = ROOT.parent / "shared" / "cases" / "bugs"
WRONG: Mapping[str, Any] = {
    "left_out": 7,
    "nodes": {"min": 7},
    "on": {"open": 7},
    "zones_used": 7,
    "pods": "more than 7",
    "requests": {"cpu": "7"},
    "reason_names": ["unicorns"],
    "refused": "/7",
    "status": 418,
    "pointer": "/7",
    "warning": "unicorns",
    "pools": 7,
    "types_that_fit": 7,
    "among_them": ["t3.unicorn"],
    "complete": False,
    "decisions": {"min": 77},
    "evictions": {"min": 77},
    "pods_pending_at_end": {"min": 77},
    "running_pods_lost": "more than 77",
    "nodes_at_end": 77,
    "running": ["unicorn"],
    "type_of": {"a": "t3.unicorn"},
    "placed_on": {"a": "t3.unicorn"},
    "new_claims": {"min": 77},
    "claims_available": 77,
    "empty_nodes": "at least 77",
    "decision_reason_contains": "unicorns",
    "never": {
        "waiting": "a",
        "longer_than_seconds": 1,
        "with_condition": {"pool": "p", "type": "PodsHaveRoom", "status": "True"},
    },
}
"""Something that no case comes to, for each expectation of our own cases."""


@pytest.fixture(scope="module")
def levels() -> Iterator[bugs.Levels]:
    with ExitStack() as stack:
        yield bugs.Levels(stack)


def own_cases() -> dict[str, dict[str, Any]]:
    return dict(bugs.cases([OWN]))


def runner(*arguments: str) -> tuple[int, list[str]]:
    """The runner as a person starts it: exit code and lines."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "tests/conformance/bugs.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_our_own_cases_pass(levels: bugs.Levels) -> None:
    assert [str(levels.outcome(name, case)) for name, case in own_cases().items()] == [
        f"PASS {name}" for name in own_cases()
    ]


def test_types_fit_the_pool_of_the_example_for_karpenter(levels: bugs.Levels) -> None:
    text = (ROOT / "examples" / "karpenter.yaml").read_text(encoding="utf-8")
    expected = {"status": 200, "pools": 1, "types_that_fit": {"min": 2}, "among_them": ["m6i.large", "m7i.xlarge"]}
    case = {"id": "example", "level": "apply", "what": "x", "rule": "x", "text": text, "expected": expected}
    assert levels.outcome("example", case).problem is None


@pytest.mark.skipif(not SHARED.is_dir(), reason="the cases of public bug reports are not beside the project")
def test_cases_of_public_bug_reports_pass(levels: bugs.Levels) -> None:
    outcomes = [levels.outcome(name, case) for name, case in bugs.cases([SHARED])]
    assert [str(outcome) for outcome in outcomes if outcome.problem is not None] == []
    assert sum(outcome.skipped is None for outcome in outcomes) > 30


def test_each_expectation_fails_where_it_is_wrong(levels: bugs.Levels) -> None:
    played = set()
    for name, case in own_cases().items():
        wrong = {expectation: WRONG.get(expectation, value) for expectation, value in case["expected"].items()}
        problem = levels.outcome(name, {**case, "expected": wrong}).problem or ""
        assert [each for each in wrong if each in WRONG and f"{each}: expected" not in problem] == [], (name, problem)
        played |= wrong.keys() & WRONG.keys()
    assert played == WRONG.keys()


def test_what_is_not_known_fails_by_name(levels: bugs.Levels) -> None:
    for name, case in own_cases().items():
        changes: dict[str, dict[str, Any]] = {
            "unicorns": {"expected": {**case["expected"], "unicorns": 1}},
            "horses": {"horses": []},
            "stable": {"level": "stable"},
            "nothing": {"expected": {}},
        }
        if case["level"] == "cluster":
            changes["gallop"] = {"steps": [{"gallop": 1}]}
            changes["saddle"] = {"steps": [{"scale": {"pods": "a", "count": 1, "saddle": 1}}]}
            changes["pony"] = {"steps": [{"cordon": "pony"}]}
        elif case["level"] == "hours":
            changes["gallop"] = {"trace": {**case["trace"], "steps": [{"at_minutes": 1, "gallop": 1}]}}
        for word, change in changes.items():
            outcome = levels.outcome(name, {**case, **change})
            assert word in (outcome.problem or ""), (name, outcome)


def test_numbers_ranges_and_words() -> None:
    right = (
        2,
        2.0,
        {"min": 1},
        {"max": 2},
        {"min": 2, "max": 2},
        "at most 2",
        "at least 2",
        "more than 1 (such as two)",
    )
    wrong = (3, {"min": 3}, {"max": 1}, "at most 1", "more than 2", "less than 2", "fewer than 2", "exactly 3")
    assert [expected for expected in right if not as_expected(expected, 2)] == []
    assert [expected for expected in wrong if as_expected(expected, 2)] == []
    for unknown in ("a few", {}, {"least": 1}, None, True, [2]):
        with pytest.raises(Unreadable):
            as_expected(unknown, 2)


def test_a_person_reads_a_line_a_case_and_the_sum(tmp_path: Path) -> None:
    case = own_cases()["refused-manifest"]
    documents = {
        "a": case,
        "b": {**case, "id": "other", "expected": {"refused": "/1"}},
        "c": {"id": "words", "level": "api", "steps": ["do something"], "expected": {"it": "works"}},
    }
    for name, document in documents.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(document))
    (tmp_path / "README.md").write_text("no case")
    code, lines = runner(str(tmp_path))
    assert (code, lines[0], lines[-1]) == (1, "PASS refused-manifest", "1 passed, 1 failed, 1 skipped")
    assert lines[1].startswith("FAIL other: refused: expected '/1', came /0/spec/replicas")
    assert lines[2].startswith("SKIP words: ")
    (tmp_path / "b.yaml").write_text("a: [")
    assert runner(str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml"))[1][1].startswith("FAIL b: cannot be read")
    assert runner(str(tmp_path / "none"))[0] == runner()[0] == 2
