"""Scripts of the console against what they have to agree with: YAML with PyYAML, the calendar of budgets with the
product's own rules. They need Node, which only these tests do."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from stockyard.domain.pools.budgets import Budget

ROOT = Path(__file__).resolve().parents[3]
CORE = ROOT / "console" / "assets" / "core"
Evaluate = Callable[..., Any]


@pytest.fixture
def evaluate(tmp_path: Path) -> Evaluate:
    """Evaluates an expression of ``input`` with the module of a name, by Node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("it needs Node")
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")

    def run(expression: str, input_: Any, module: str = "yaml") -> Any:
        shutil.copy(CORE / f"{module}.js", tmp_path)
        program = (
            f"import * as its from './{module}.js'; let text = '';"
            " for await (const part of process.stdin) text += part;"
            f" const input = JSON.parse(text); console.log(JSON.stringify({expression}));"
        )
        (tmp_path / "run.js").write_text(program, encoding="utf-8")
        command, text = [node, str(tmp_path / "run.js")], json.dumps(input_)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_examples_are_read_as_others_read_them(evaluate: Evaluate) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.yaml"))]
    texts += [
        "a: |\n  one\n   two\n\nb: >-\n  one\n  two\n",
        "- 'it''s'\n- \"a\\n\\u00e9\"\n- ~\n- 1.5\n- 0x\n- '1'\n",
        "--- {a: [1, 2]}\n",
    ]
    texts += [
        "a:\n- b: 1\n  c: 2\n- - x\n  - y\n",
        "base: &b {x: 1, y: 2}\nmore:\n  <<: *b\n  y: 3\n",
        "a: # nothing\nb: 'x # y'\n",
    ]
    read = evaluate("input.map((text) => its.readDocuments(text))", texts)
    expected = [[each for each in yaml.safe_load_all(text) if each is not None] for text in texts]
    assert read == json.loads(json.dumps(expected, default=str))


def test_what_is_no_yaml_is_refused_with_its_line(evaluate: Evaluate) -> None:
    texts = [
        "a: [1, 2",
        "a: 1\n b: 2\n",
        "a: *none\n",
        "\ta: 1\n",
        "a: !!python/object x\n",
        "a: 1\na: 2\n",
        "a: b: c\n",
    ]
    texts.append("x: " + "[" * 100 + "]" * 100)
    lines = evaluate(
        "input.map((text) => { try { return its.readDocuments(text); } catch (error) { return error.line || 0; } })",
        texts,
    )
    assert all(isinstance(line, int) and line >= 1 for line in lines), lines
    harm = evaluate(
        "[its.readDocuments(input)[0].constructor === Object, ({}).polluted ?? null]", "__proto__: {polluted: 1}\n"
    )
    assert harm == [True, None], "a key is a key, whatever it is called"


def test_windows_of_the_calendar_are_those_of_the_product(evaluate: Evaluate) -> None:
    """At moments of weeks with and without a change of clocks, budgets are open there when the product says so."""
    numbers = random.Random(500)
    schedules = [
        "0 9 * * mon-fri",
        "30 1 * * 6",
        "*/20 2-4 * * *",
        "0 0 1,15 * *",
        "15 22 * * 0,3",
        "0 4 29 3 *",
        "@daily",
    ]
    zones, cases = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"], []
    for schedule in schedules:
        for zone in zones:
            base = numbers.choice(
                [
                    datetime(2026, 3, 27, tzinfo=UTC),
                    datetime(2026, 10, 24, tzinfo=UTC),
                    datetime(2026, 6, 1, tzinfo=UTC),
                ]
            )
            moments = [base + timedelta(minutes=numbers.randrange(5 * 1440)) for _ in range(12)]
            cases.append((schedule, zone, numbers.choice(["30m", "3h", "8h", "1h30m"]), moments))
    sent = [
        {
            "nodes": "0",
            "schedule": schedule,
            "time_zone": zone,
            "duration": duration,
            "at": [int(at.timestamp() * 1000) for at in moments],
        }
        for schedule, zone, duration, moments in cases
    ]
    opens = "its.windows(each, at, at + 1).some(([from, to]) => from <= at && to > at)"
    expression = f"input.map((each) => each.at.map((at) => {opens}))"
    answers = evaluate(expression, sent, "calendar")
    for (schedule, zone, duration, moments), opened in zip(cases, answers, strict=True):
        budget = Budget.of({"nodes": "0", "schedule": schedule, "duration": duration, "timeZone": zone})
        assert budget.fault == ""
        expected = [budget.is_open(at) for at in moments]
        differ = [at for at, product, page in zip(moments, expected, opened, strict=True) if product != page]
        # At a change of clocks itself the product skips or repeats as cron does; elsewhere both are the same.
        assert len(differ) <= 1, (schedule, zone, duration, differ)
