"""The table of requirements in docs/spectro.md: each row is there, and names only what is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from typer.main import get_command

from stockyard_client.cli.app import app

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "spectro.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")] for line in TEXT.splitlines() if line.startswith("| 001-")
]
QUOTED = re.compile(r"`([^`]+)`")


def test_each_requirement_has_a_row_and_what_works_is_shown():
    assert [row[0].strip() for row in ROWS] == [f"001-{number}" for number in range(1, 39)]
    for name, _, evidence, state in ROWS:
        assert state.startswith(("works", "partly", "not yet")), name
        assert state.startswith("not yet") or QUOTED.findall(evidence), name


def test_every_test_that_shows_a_requirement_is_there():
    paths = [text for row in ROWS for text in QUOTED.findall(row[2]) if text.startswith("tests/")]
    assert len(paths) > len(ROWS) - 10
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_every_command_that_shows_a_requirement_is_one():
    commands = [text for row in ROWS for text in QUOTED.findall(row[2]) if not text.startswith("tests/")]
    assert commands
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "stockyard"
        level, names = get_command(app), words[1:]
        while getattr(level, "commands", None):
            assert names[0] in level.commands, command  # type: ignore[attr-defined]
            level, names = level.commands[names[0]], names[1:]  # type: ignore[attr-defined]
        options = {option for parameter in level.params for option in parameter.opts}
        assert {word for word in names if word.startswith("-")} <= options, command
