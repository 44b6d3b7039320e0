"""The command line starts fast: what a run does not need is not imported."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from stockyard_client.cli import lazy
from stockyard_client.cli.app import COMMANDS

_HEAVY = ("httpx", "pydantic", "rich.console", "yaml", "stamina")
_UNUSED = ("httpx._main", "click", "pygments", "rich.progress")
_LOADED = "print([name for name in {names!r} if sys.modules.get(name)])"
_COLLECTIONS = "import gc; print(sum(part['collections'] for part in gc.get_stats()))"


def _after(arguments: str, look: str) -> str:
    """Output of ``look`` after the command line has run with these arguments."""
    program = (
        "import runpy, sys\n"
        f"sys.argv = ['stockyard', *{arguments.split()!r}]\n"
        "try:\n    runpy.run_module('stockyard_client', run_name='__main__')\n"
        "except SystemExit:\n    pass\n" + look
    )
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.splitlines()[-1]


def _imported_by(arguments: str, names: tuple[str, ...] = _HEAVY) -> str:
    """Modules of ``names`` that are there then."""
    return _after(arguments, _LOADED.format(names=names))


@pytest.mark.parametrize("arguments", ["", "--help", "--bogus"])
def test_the_help_imports_nothing_heavy(arguments):
    assert _imported_by(arguments) == "[]"


def test_a_call_imports_no_command_line_of_others():
    # nobody listens there, which is found after the client was imported and used
    assert _imported_by("--url https://nobody.invalid cluster list", ("httpx", *_UNUSED)) == "['httpx']"


def test_memory_is_hardly_looked_through_while_a_call_starts():
    assert int(_after("--url https://nobody.invalid cluster list", _COLLECTIONS)) < 60


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_says_what_the_commands_say(name):
    command = lazy.Commands(COMMANDS)[name]
    assert isinstance(command, typer.core.TyperCommand | typer.core.TyperGroup)
    assert command.name == name
    assert command.help.startswith(COMMANDS[name].help)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_line_of_the_help_fits_into_80_columns(name):
    assert len(COMMANDS[name].help) < 66
