"""The runner: what passes, what fails, what it prints, and the shared files where they are at hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance import run

ROOT = Path(__file__).resolve().parents[2]
OWN = Path(__file__).with_name("cases") / "requirements.json"
SHARED = ROOT.parent / "shared" / "conformance"
COUNTS = {"requirement_intersection.json": 362, "requirements_compatibility.json": 225}


def runner(*paths: Path) -> tuple[int, list[str]]:
    """The runner as a person starts it: exit code and lines."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "tests/conformance/run.py", *map(str, paths)]
    done = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, check=False, timeout=120)
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def file(tmp_path):
    """Writes a conformance file."""

    def write(document) -> Path:
        path = tmp_path / "some.json"
        path.write_text(json.dumps(document))
        return path

    return write


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared conformance files are not beside this repository")
@pytest.mark.parametrize("name", COUNTS)
def test_every_shared_case_passes(name):
    assert runner(SHARED / name) == (0, [f"{COUNTS[name]} passed, 0 failed, 0 skipped"])


def test_our_own_cases_pass():
    assert runner(OWN) == (0, [f"{len(json.loads(OWN.read_text())['cases'])} passed, 0 failed, 0 skipped"])


@pytest.mark.parametrize("number", range(len(json.loads(OWN.read_text())["cases"])))
def test_a_wrong_expectation_fails(number):
    case = json.loads(OWN.read_text())["cases"][number]
    match case["expected"]:
        case bool():
            case["expected"] = not case["expected"]
        case str():
            case["expected"] = "Nonsense"
        case dict():
            case["expected"]["operator"] = "Nonsense"
        case list():
            case["expected"].pop()
    outcome = run.run_case(case, case["kind"])
    assert outcome.problem is not None
    assert outcome.problem.startswith("expected ")
    assert ", came " in outcome.problem


CASE = {
    "id": "one",
    "kind": "has",
    "source": "own",
    "requirement": {"operator": "Exists"},
    "value": "a",
    "expected": True,
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "scenario"}, "unknown kind 'scenario'"),
        ({"kind": None}, "unknown kind None"),
        ({"surprise": 1}, "unknown field surprise"),
        ({"requirement": {"operator": "Exists", "strict": True}}, "unknown field strict"),
        ({"requirement": {"operator": "Near", "values": ["a"]}}, "'Near' is not known"),
        ({"expected": 1}, "expected 1, came true"),
    ],
)
def test_what_is_not_known_fails(file, change, words):
    path = file({"cases": [{**CASE, **change}, CASE]})
    code, lines = runner(path)
    assert code == 1
    assert lines[0].startswith("FAIL one: ")
    assert words in lines[0]
    assert lines[1:] == ["1 passed, 1 failed, 0 skipped"]


def test_a_missing_field_fails():
    assert "KeyError" in str(run.run_case({name: CASE[name] for name in CASE if name != "value"}, "has").problem)


def test_an_unknown_field_of_what_is_expected_fails():
    case = json.loads(OWN.read_text())["cases"][0]
    case["expected"]["more"] = 1
    assert "unknown field more" in str(run.run_case(case, "intersection").problem)


def test_scenarios_are_not_known_yet(file):
    assert runner(file({"scenarios": [{"id": "s", "steps": []}]}))[1] == [
        "FAIL s: cannot be run: unknown kind 'scenario'",
        "0 passed, 1 failed, 0 skipped",
    ]


def test_a_catalogue_has_no_cases_and_anything_else_fails(file, tmp_path):
    assert runner(file({"catalogs": {}})) == (0, ["0 passed, 0 failed, 0 skipped"])
    assert runner(file({"meta": {}}))[0] == 1
    assert runner(tmp_path / "missing.json")[0] == 1


def test_a_skipped_case_says_why(monkeypatch, file, capsys):
    monkeypatch.setitem(run.SKIPPED, "one", "decided otherwise")
    assert run.main([str(file({"cases": [CASE]}))]) == 0
    assert capsys.readouterr().out.splitlines() == ["SKIP one: decided otherwise", "0 passed, 0 failed, 1 skipped"]
