"""The help, in a terminal of 80 columns: whole summaries, and no words of the programming language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from stockyard_client.cli.app import app

ROOT: Any = typer.main.get_command(app)


def _paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name in getattr(command, "commands", {}):
        yield from _paths(command.commands[name], (*path, name))


PATHS = list(_paths(ROOT))


def _help(path: tuple[str, ...]) -> str:
    command, context = ROOT, ROOT.context_class(ROOT, info_name="stockyard", terminal_width=80)
    for name in path:
        command = command.commands[name]
        context = command.context_class(command, info_name=name, parent=context)
    return str(command.get_help(context))


def test_there_are_many_commands():
    assert len(PATHS) > 80


@pytest.mark.parametrize("path", [path for path in PATHS if len(path) < 2], ids=" ".join)
def test_each_summary_is_a_line(path):
    commands = _help(path).partition("Commands:\n")[2].partition("\n\n")[0]
    for line in commands.splitlines():
        assert re.match(r"  \S+  +[A-Z].*\w\.?$|  \S+  +[A-Z].*\)\.$", line), line
        assert "..." not in line
        assert len(line) <= 80


GROUPS = [path for path in PATHS if not path or (len(path) == 1 and hasattr(ROOT.commands[path[0]], "commands"))]


@pytest.mark.parametrize("path", GROUPS, ids=lambda path: " ".join(path) or "stockyard")
def test_a_group_without_arguments_is_its_help(cli, api, path):
    result = cli(*path)
    assert result.exit_code == 0
    assert result.stdout == cli(*path, "--help").stdout
    assert result.stdout.startswith("Usage: stockyard")
    assert result.stderr == ""
    assert not api.requests


def test_an_unknown_command_is_a_fault(cli):
    for arguments in (["bogus"], ["cluster", "bogus"]):
        result = cli(*arguments)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert "No such command 'bogus'" in result.stderr


def test_no_type_of_the_language_is_named():
    for path in PATHS:
        text = _help(path)
        assert text.startswith("Usage: stockyard")
        assert not re.search(r"<(str|int|float|bool|list|path|file|uuid)\b|\bStrEnum\b", text), text
        assert "[[" not in text, text


def test_the_readme_lists_each_command():
    readme = (Path(__file__).parents[3] / "client" / "README.md").read_text()
    rows = [line.split(" | ")[0] for line in readme.splitlines() if line.startswith("| `")]
    lost = []
    for path in PATHS:
        command: Any = ROOT
        for name in path:
            command = command.commands[name]
        if path and not command.hidden and not hasattr(command, "commands"):
            # a row begins with the group, and goes on with the names of its commands
            words = [set(re.findall(r"[\w-]+", row)) for row in rows]
            if not any(set(path) <= row for row in words):
                lost.append(" ".join(path))
    assert lost == []
