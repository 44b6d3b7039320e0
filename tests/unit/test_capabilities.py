"""A capability of a port is a method with a default, or a value that says so: nobody looks at what a class has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PORTS = ROOT / "layers/common/python/stockyard/ports"
CODE = [ROOT / name for name in ("layers/common", "functions", "stacks", "local", "benchmarks", "tests")]


def _protocols() -> set[str]:
    nodes = (node for path in PORTS.glob("*.py") for node in ast.parse(path.read_text()).body)
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    return {
        node.name for node in classes if "Protocol" in {base.id for base in node.bases if isinstance(base, ast.Name)}
    }


def _checks(path: Path) -> Iterator[str]:
    """Checks of a file by structure, each as ``file:line``."""
    text = path.read_text()
    if path != Path(__file__) and "runtime_checkable" in text:
        yield f"{path.relative_to(ROOT)} runtime_checkable"
    if "isinstance" not in text or "stockyard.ports" not in text:
        return
    protocols = _protocols()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            names = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
            yield from (f"{path.relative_to(ROOT)}:{node.lineno} {name}" for name in names & protocols)


def test_no_code_asks_a_class_for_a_port() -> None:
    assert len(_protocols()) > 60
    assert [check for folder in CODE for path in folder.rglob("*.py") for check in _checks(path)] == []
