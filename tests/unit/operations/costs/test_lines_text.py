"""Lines of a report of costs as JSON: what is written at once is what each line says by itself."""

from __future__ import annotations

import json
from random import Random

from stockyard.operations.costs.lines_text import lines_text
from stockyard.operations.costs.report import Line, line_view

NAMES = {"c1": 'a"b', "c2": "größe"}


def test_lines_are_written_as_each_is_told():
    chance = Random(7)
    lines = [
        (
            (chance.choice(("cluster", "nodes")), *(chance.choice(("", "c1", "c2", "\\", "\n")) for _ in range(4))),
            Line(
                chance.randrange(3),
                chance.choice((0.0, 1.0, 0.1234567, 1e-9)),
                chance.choice((0.0, 3.0, 1234.56785, 1e-7)),
                chance.random() < 0.7,
                chance.random() < 0.7,
            ),
        )
        for _ in range(500)
    ]
    assert json.loads(lines_text(lines, NAMES)) == [line_view(key, line, NAMES) for key, line in lines]
    assert lines_text([], NAMES) == "[]"
