"""A reason is a text or None: no function says by an empty text that there is none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("functions", "layers/common/python", "agent")
OF_REASONS = re.compile(
    r"Reasons? |Words for who has |(Node|News|Thing) that has to |[^.:;]*\bwhat is waited for\b", re.IGNORECASE
)
"""How the docstring of a function begins that tells a reason."""


def _empty(value: ast.expr | None) -> bool:
    if isinstance(value, ast.IfExp):
        return _empty(value.body) or _empty(value.orelse)
    return isinstance(value, ast.Constant) and value.value == ""


def empty_reasons(source: str) -> Iterator[str]:
    """The functions that tell a reason, and may return an empty text for none."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef) or not OF_REASONS.match(ast.get_docstring(node) or ""):
            continue
        if any(isinstance(part, ast.Return) and _empty(part.value) for part in ast.walk(node)):
            yield node.name


def test_no_function_returns_an_empty_text_for_no_reason() -> None:
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    assert len(files) > 500
    hits = {str(path): names for path in files if (names := list(empty_reasons(path.read_text(encoding="utf-8"))))}
    assert hits == {}


def test_an_empty_reason_is_found() -> None:
    assert OF_REASONS.match("Look at an update, and tell what is waited for while it goes on.")
    source = 'def why() -> str:\n    """Reason why it waits."""\n    return "" if done else "its node is not ready"\n'
    assert list(empty_reasons(source)) == ["why"]
    assert list(empty_reasons(source.replace('return ""', "return None"))) == []
