"""The runner: what passes, what fails, what it prints, and the shared files where they are at hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest

from tests.conformance import disruption, run

ROOT = Path(__file__).resolve().parents[2]
OWN = Path(__file__).with_name("cases") / "requirements.json"
SHARED = ROOT.parent / "shared" / "conformance"
COUNTS = {
    "requirement_intersection.json": 362,
    "requirements_compatibility.json": 225,
    "scheduling_scenarios.json": 100,
    "disruption_budgets.json": 34,
    "disruption_misc.json": 22,
}


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
        ({"kind": "scenery"}, "unknown kind 'scenery'"),
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


SCENARIOS = Path(__file__).with_name("cases") / "scenarios.json"
EXPECTATIONS = [
    (number, name)
    for number, case in enumerate(json.loads(SCENARIOS.read_text())["scenarios"])
    for name in case["expected"]
]


def test_our_own_scenarios_pass():
    count = len(json.loads(SCENARIOS.read_text())["scenarios"])
    assert runner(SCENARIOS) == (0, [f"{count} passed, 0 failed, 0 skipped"])


@pytest.mark.parametrize(("number", "name"), EXPECTATIONS)
def test_a_scenario_with_another_expectation_fails(number, name):
    case = json.loads(SCENARIOS.read_text())["scenarios"][number]
    match case["expected"][name]:
        case bool() as value:
            case["expected"] = {name: not value}
        case int() as value:
            case["expected"] = {name: value + 1}
        case float() as value:
            case["expected"] = {name: value / 2}
        case list():
            case["expected"] = {name: ["nothing"]}
        case dict():
            case["expected"] = {name: {"cpu": "77"}}
        case str():
            case["expected"] = {name: "kubernetes.io/arch"}
    assert str(run.run_case(case, "scenario", SCENARIOS.parent).problem).startswith(f"{name}: expected ")


def test_an_unknown_expectation_or_field_of_a_scenario_fails():
    case = json.loads(SCENARIOS.read_text())["scenarios"][0]
    unknown = {**case, "expected": {"surprise": 1}}
    assert "unknown expectation surprise" in str(run.run_case(unknown, "scenario", SCENARIOS.parent).problem)
    case["steps"][0]["pods"][0]["surprise"] = 1
    assert "unknown field surprise" in str(run.run_case(case, "scenario", SCENARIOS.parent).problem)


DISRUPTION = Path(__file__).with_name("cases") / "disruption.json"
DISRUPTION_CASES = json.loads(DISRUPTION.read_text())["cases"]


def test_our_own_cases_of_disruption_are_of_each_kind_and_pass():
    assert {case["kind"] for case in DISRUPTION_CASES} == disruption.KINDS
    assert runner(DISRUPTION) == (0, [f"{len(DISRUPTION_CASES)} passed, 0 failed, 0 skipped"])


@pytest.mark.parametrize(
    ("number", "name"), [(number, name) for number, case in enumerate(DISRUPTION_CASES) for name in case["expected"]]
)
def test_a_wrong_expectation_of_disruption_fails(number, name):
    case = deepcopy(DISRUPTION_CASES[number])
    match case["expected"][name]:
        case bool() as value:
            case["expected"][name] = not value
        case int() | float() as value:
            case["expected"][name] = value + 1
        case _:
            case["expected"][name] = "nonsense"
    assert str(run.run_case(case, case["kind"]).problem).startswith("expected ")


@pytest.mark.parametrize(
    ("number", "section"),
    [
        *((number, section) for number in range(len(DISRUPTION_CASES)) for section in ("input", "expected")),
        *((0, ("input", "budgets", 0)), (3, ("input", "budget")), (10, ("input", "nodes"))),
        (11, ("input", "pools", 0)),
    ],
)
def test_an_unknown_field_of_disruption_fails(number, section):
    case = deepcopy(DISRUPTION_CASES[number])
    parent = case
    for step in (section,) if isinstance(section, str) else section:
        parent = parent[step]
    parent["surprise"] = 1
    assert "unknown field surprise" in str(run.run_case(case, case["kind"]).problem)


@pytest.mark.parametrize(
    ("number", "change", "words"),
    [
        (11, {"input": {"reason": "Expired", "pools": []}}, "unknown reason Expired"),
        (12, {"expected": {}}, "nothing is expected"),
        (23, {"input": {"changed_field": "colour"}}, "unknown field of a pool colour"),
        (23, {"input": {}}, "cannot be run"),
        (0, {"input": {}}, "KeyError"),
    ],
)
def test_a_case_of_disruption_that_is_not_understood_fails(number, change, words):
    case = {**DISRUPTION_CASES[number], **change}
    assert words in str(run.run_case(case, case["kind"]).problem)


def test_a_catalogue_has_no_cases_and_anything_else_fails(file, tmp_path):
    assert runner(file({"catalogs": {}})) == (0, ["0 passed, 0 failed, 0 skipped"])
    assert runner(file({"meta": {}}))[0] == 1
    assert runner(tmp_path / "missing.json")[0] == 1


def test_a_skipped_case_says_why(monkeypatch, file, capsys):
    monkeypatch.setitem(run.SKIPPED, "one", "decided otherwise")
    assert run.main([str(file({"cases": [CASE]}))]) == 0
    assert capsys.readouterr().out.splitlines() == ["SKIP one: decided otherwise", "0 passed, 0 failed, 1 skipped"]
