"""Aligned columns without frames, so that a line is a record for ``grep`` and ``awk``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from stockyard_client.base_models import Model
from stockyard_client.cli.context import Context
from stockyard_client.cli.output.ages import age

M = TypeVar("M", bound=Model)

GAP, NARROW_GAP = 3, 2
"""Blanks between columns; fewer on a terminal that is too narrow."""
LEAST_WIDTH = 8
"""What stays of a column that is shortened, unless its heading is longer."""
READABLE_WIDTH = 20
"""What a column that is shortened should have: columns that can be spared go before it has less."""


@dataclass(frozen=True, slots=True)
class Column(Generic[M]):
    """One column: heading and value.

    Only ``wide`` shows one that is ``wide``, and all but ``wide`` one that is ``brief``. The value of one that
    ``is_age`` is a moment. On a terminal that is too narrow those that ``give`` are shortened, the highest first;
    before one of them can be read no more, those that are ``spare`` are left out, the first one first.
    """

    heading: str
    value: Callable[[M], Any]
    wide: bool = False
    brief: bool = False
    is_age: bool = False
    give: int = 0
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Printer(Generic[M]):
    """Columns of the table of one kind of record, and the text that ``-o name`` prints."""

    columns: tuple[Column[M], ...]
    name: Callable[[M], Any]

    def columns_of(self, *, wide: bool) -> list[Column[M]]:
        """The columns of this form."""
        return [column for column in self.columns if not (column.brief if wide else column.wide)]


def rows_of(context: Context, columns: Sequence[Column[M]], records: Sequence[M]) -> list[list[str]]:
    """The cells of the records."""
    now = context.now()
    return [
        [cell(age(column.value(record), now) if column.is_age else column.value(record)) for column in columns]
        for record in records
    ]


def cell(value: Any) -> str:
    """A value on one line; ``-`` where there is none."""
    text = "-" if value is None or value == "" else str(value)
    return " ".join(text.split())


def write_table(
    context: Context,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    give: Sequence[int] = (),
    spare: Sequence[bool] = (),
) -> None:
    """Writes the rows below the headings. ``give`` has a number for each column that may be shortened on a terminal,
    the highest first, and is left out there when it is empty; elsewhere nothing is. ``spare`` says which columns are
    left out where that is not enough."""
    indexes, gap = list(range(len(headings))), GAP
    widths = [max(cells(row[index]) for row in [headings, *rows]) for index in indexes]
    room = context.room
    if room is not None and _length(widths, gap) > room:
        gap = NARROW_GAP
        indexes = _needed(headings, rows, give)
        indexes = spared(indexes, widths, headings, give, spare, room)
        widths = [widths[index] for index in indexes]
        names, yields = [headings[index] for index in indexes], [give[index] for index in indexes] if give else []
        widths = fitted(widths, names, yields, room)
    for number, row in enumerate([headings, *rows]):
        line = Text()
        for position, index in enumerate(indexes):
            text = ellipsis(row[index], widths[position], context.out.encoding)
            # the last column is not padded: no line ends in blanks
            part = padded(text, widths[position] + gap) if position < len(indexes) - 1 else text
            line.append(part, style="bold" if number == 0 else style_of(row[index]))
        line.rstrip()
        context.out.print(line, soft_wrap=True)


def _needed(headings: Sequence[str], rows: Sequence[Sequence[str]], give: Sequence[int]) -> list[int]:
    """The columns without those that may give and are empty in all rows."""
    return [
        index
        for index in range(len(headings))
        if not (give and give[index]) or any(row[index].strip(" -") for row in rows)
    ]


def spared(
    indexes: Sequence[int],
    widths: Sequence[int],
    headings: Sequence[str],
    give: Sequence[int],
    spare: Sequence[bool],
    room: int,
) -> list[int]:
    """The columns without as many of those that can be spared as the others need to be read."""
    kept_columns = list(indexes)
    for candidate in [index for index in indexes if spare and spare[index]]:
        own_widths = [widths[index] for index in kept_columns]
        found_widths = fitted(
            own_widths, [headings[index] for index in kept_columns], [give[index] for index in kept_columns], room
        )
        needed = all(width >= min(full, READABLE_WIDTH) for width, full in zip(found_widths, own_widths, strict=True))
        if needed and _length(found_widths, NARROW_GAP) <= room:
            break
        kept_columns.remove(candidate)
    return kept_columns


def _length(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def fitted(widths: Sequence[int], headings: Sequence[str], give: Sequence[int], room: int) -> list[int]:
    """The widths of columns for lines of ``room`` cells, as far as the flexible columns can shrink."""
    found_widths = list(widths)
    excess = _length(widths, NARROW_GAP) - room
    for index in sorted(range(len(give)), key=lambda index: -give[index]):
        if excess <= 0 or not give[index]:
            break
        least = min(found_widths[index], max(LEAST_WIDTH, cells(headings[index])))
        less = min(excess, found_widths[index] - least)
        found_widths[index] -= less
        excess -= less
    return found_widths


def cells(text: str) -> int:
    """Number of cells of a terminal that the text takes: a wide letter of East Asia takes two, a combining mark
    none."""
    return len(text) if text.isascii() else cell_len(text)


def padded(text: str, width: int) -> str:
    """The text with blanks after it, so that it takes ``width`` cells."""
    return text + " " * (width - cells(text))


def ellipsis(text: str, width: int, encoding: str = "utf-8") -> str:
    """The text, or its beginning with dots where it takes more than ``width`` cells."""
    if cells(text) <= width:
        return text
    dots = "…" if encoding.lower().startswith("utf") else "..."
    room = max(0, width - len(dots))
    # half a wide letter would be a blank
    return (text[:room] if text.isascii() else set_cell_size(text, room).rstrip()) + dots


_STYLES = {
    "ready": "green",
    "succeeded": "green",
    "verified": "green",
    "Available": "green",
    "created": "green",
    "True": "green",
    "Ready": "green",
    "failed": "red",
    "Failed": "red",
    "False": "red",
    "preparing": "yellow",
    "running": "yellow",
    "queued": "yellow",
    "reverted": "yellow",
    "cancelled": "yellow",
    "Applying": "yellow",
    "Pending": "yellow",
    "changed": "yellow",
    "unverified": "yellow",
    "deleting": "magenta",
    "Deleting": "magenta",
}


def style_of(state: str) -> str | None:
    """The colour of a status word."""
    return _STYLES.get(state)
