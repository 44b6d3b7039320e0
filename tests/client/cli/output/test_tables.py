"""Tables on a terminal and in a pipe, and ages."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from stockyard_client.cli.context import Context
from stockyard_client.cli.output import sections, tables
from stockyard_client.cli.output.ages import age

MOMENT = "2026-01-31T12:00:00.000Z"
NOW = 1_769_860_800.0
"""That moment in seconds since 1970."""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (601, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600 + 61, "3h1m"),
        (9 * 3600, "9h"),
        (2 * 86_400 + 4 * 3600, "2d4h"),
        (40 * 86_400, "40d"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(seconds, text):
    assert age(MOMENT, NOW + seconds) == text


@pytest.mark.parametrize("moment", [None, "", "yesterday"])
def test_what_is_no_moment_has_no_age(moment):
    assert age(moment, NOW) is None


def _written(width, rows, give, *, terminal=True, headings=("NAME", "TYPE", "WHY"), spare=()):
    context, stream = _context(width, terminal=terminal)
    tables.write_table(context, headings, rows, give, spare)
    return stream.getvalue().splitlines()


def _context(width, *, terminal=True):
    context, stream = Context(environment={}), io.StringIO()
    context.__dict__["out"] = Console(
        file=stream, force_terminal=terminal, color_system=None, width=width, highlight=False, markup=False
    )
    return context, stream


ROW = ["a-name-of-twenty-two-c", "m5a.xlarge", "NoNodeType: nothing of what is on offer has 900 cores"]


def test_a_pipe_is_never_cut():
    lines = _written(40, [ROW], (1, 2, 3), terminal=False)
    assert lines[1] == "   ".join(ROW)


@pytest.mark.parametrize("width", [80, 60, 50])
def test_a_terminal_shortens_the_least_useful_column_with_an_ellipsis(width):
    lines = _written(width, [ROW], (1, 2, 3))
    assert max(map(len, lines)) <= width
    assert lines[1].startswith("a-name-of-twenty-two-c  m5a.xlarge  NoNo")
    assert lines[1].endswith("…")


def test_a_column_that_is_empty_goes_first():
    lines = _written(34, [[*ROW[:2], "-"]], (1, 2, 3))
    assert lines == ["NAME                    TYPE", "a-name-of-twenty-two-c  m5a.xlarge"]


def test_what_may_not_give_is_whole():
    lines = _written(20, [ROW], (0, 0, 3))
    assert lines[1] == "a-name-of-twenty-two-c  m5a.xlarge  NoNodeT…"


SPARE = ("NAME", "TYPE", "ZONE", "CAPACITY", "WHY")
WITH_SPARE = [*ROW[:2], "us-east-1a", "on-demand", ROW[2]]


@pytest.mark.parametrize(
    ("width", "headings"),
    [
        (200, ["NAME", "TYPE", "ZONE", "CAPACITY", "WHY"]),
        (79, ["NAME", "TYPE", "ZONE", "CAPACITY", "WHY"]),
        (78, ["NAME", "TYPE", "CAPACITY", "WHY"]),
        (60, ["NAME", "TYPE", "WHY"]),
    ],
)
def test_columns_that_can_be_spared_go_before_others_cannot_be_read(width, headings):
    lines = _written(width, [WITH_SPARE], (1, 0, 0, 0, 3), headings=SPARE, spare=(False, False, True, True, False))
    assert lines[0].split() == headings
    assert max(map(len, lines)) <= width


def test_a_pipe_has_columns_that_can_be_spared():
    lines = _written(40, [WITH_SPARE], (), terminal=False, headings=SPARE, spare=(False, False, True, True, False))
    assert lines[1] == "   ".join(WITH_SPARE)


def test_a_terminal_that_is_wide_enough_shows_all():
    lines = _written(200, [[*ROW[:2], "-"]], (1, 2, 3))
    assert lines[0].split() == ["NAME", "TYPE", "WHY"]


def test_dots_where_there_is_no_ellipsis():
    assert tables.ellipsis("a-long-name", 8, "ascii") == "a-lon..."


WIDE, MARKED, EMOJI = "日本語の名前", "cafe\u0301", "\N{ROCKET} rocket"
"""Letters of two cells, a mark that takes none, and a picture."""


@pytest.mark.parametrize("terminal", [True, False])
def test_columns_stand_below_each_other_whatever_their_letters(terminal):
    rows = [[name, "m5a.xlarge", "-"] for name in ("plain", WIDE, MARKED, EMOJI)]
    lines = _written(80, rows, (), terminal=terminal)
    columns = {cell_len(line[: line.index("m5a.xlarge")]) for line in lines[1:]}
    assert columns == {cell_len(WIDE) + tables.GAP} == {lines[0].index("TYPE")}


@pytest.mark.parametrize("width", range(30, 60))
def test_a_line_of_wide_letters_is_never_wider_than_the_terminal(width):
    lines = _written(width, [["demo", "m5a.xlarge", f"{WIDE}: {EMOJI} {MARKED} " * 3]], (0, 0, 1))
    assert width - 2 <= cell_len(lines[1]) <= width
    assert lines[1].endswith("…")


@pytest.mark.parametrize(
    ("text", "width", "result"),
    [
        (WIDE, 12, WIDE),
        (WIDE, 11, "日本語の名…"),
        (WIDE, 10, "日本語の…"),
        (WIDE, 1, "…"),
        (MARKED, 4, MARKED),
        (f"{MARKED}s", 4, "caf…"),
        (f"{MARKED} bar", 5, f"{MARKED}…"),
    ],
)
def test_a_text_is_cut_at_a_cell(text, width, result):
    assert tables.ellipsis(text, width) == result


@pytest.mark.parametrize(
    ("width", "terminal", "lines"),
    [
        (80, True, ["cluster demo  ready  a text of many words"]),
        (30, True, ["cluster demo  ready", "  a text of many words"]),
        (30, False, ["cluster demo  ready  a text of many words"]),
    ],
)
def test_a_title_that_has_no_room_for_its_text_has_it_below(width, terminal, lines):
    context, stream = _context(width, terminal=terminal)
    sections.title(context, "cluster demo", "ready", "a text of many words")
    assert stream.getvalue().splitlines() == lines
