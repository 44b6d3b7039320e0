"""No text of other people steers the terminal of who reads it."""

from __future__ import annotations

import ast
import io
import json
from pathlib import Path

import pytest
import yaml
from rich.live import Live
from rich.table import Table
from rich.text import Text

import stockyard_client.cli
from stockyard_client.cli.context import console
from stockyard_client.cli.visible import STEERING, json_text, visible, yaml_text

HOSTILE = "\x1b]0;PWNED\x07\x1b[31mred\x1b[2J\r\x9b5m\x7f\u202eevil\u2066\u200b"
OF_PEOPLE = "line\n\ttab, é, 한국어, \U0001f468\u200d\U0001f469, \u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
ROOT = Path(stockyard_client.cli.__file__).parent


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_what_steers_a_terminal_is_shown_as_its_escape():
    assert visible("a\x1b[2J\u202eb\x85") == r"a\x1b[2J\u202eb\x85"
    assert visible(OF_PEOPLE) == OF_PEOPLE


def test_documents_keep_what_they_say():
    document = {"name": HOSTILE, "other": OF_PEOPLE, HOSTILE: [HOSTILE]}
    for text, read in ((json_text(document), json.loads), (yaml_text(document), yaml.safe_load)):
        assert not STEERING.search(text)
        assert read(text) == document
    assert OF_PEOPLE.splitlines()[1].strip() in yaml_text({"name": OF_PEOPLE.splitlines()[1].strip()})


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_console_shows_it_whatever_is_drawn(environment):
    stream = Terminal()
    screen = console(stream, {"TERM": "xterm-256color", **environment})
    table = Table(HOSTILE)
    table.add_row(Text(HOSTILE, style="red"))
    screen.print(HOSTILE)
    screen.print(Text.assemble((HOSTILE, "bold"), HOSTILE), style="green", soft_wrap=True)
    screen.print(table)
    with Live(Text(HOSTILE), console=screen, auto_refresh=False) as live:
        live.update(table, refresh=True)
    output = stream.getvalue()
    assert "PWNED" in output
    assert [
        mark for mark in ("\x1b]0", "\x1b[31mred", "\x1b[2J", "\x9b", "\x7f", "\u202e", "\u2066") if mark in output
    ] == []


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "name"])
def test_no_command_shows_it_raw(cli, api, cluster_document, form):
    document = cluster_document(description=HOSTILE, message=HOSTILE, reason=HOSTILE, name=f"demo{HOSTILE}")
    api.answer("GET", "/v1/clusters", {"items": [document], "next_page_token": None})
    ran = cli("cluster", "list", "-o", form)
    assert not STEERING.search(ran.stdout + ran.stderr)
    assert "demo" in ran.stdout


def test_no_error_shows_it_raw(cli, api):
    problem = {"type": "about:blank", "title": HOSTILE, "status": 404, "detail": HOSTILE, "error": "NotFound"}
    api.answer("GET", "/v1/clusters/demo", problem, status=404)
    ran = cli("cluster", "get", "demo")
    assert "PWNED" in ran.stderr
    assert not STEERING.search(ran.stdout + ran.stderr)


def test_commands_write_by_the_functions_that_show_it():
    """``typer.echo``, ``print`` and dumps of documents for stdout stand in one module."""
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in ROOT.rglob("*.py")
        if path.name != "visible.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("typer.echo", "print", "click.echo", "typer.secho")
    ]
    assert calls == []
