"""No files import each other in a circle, not even for types alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOTS = {
    "stockyard": ROOT / "layers" / "common" / "python",
    "functions": ROOT,
    "stacks": ROOT,
    "local": ROOT,
    "agent": ROOT,
    "benchmarks": ROOT,
    "stockyard_client": ROOT / "client",
    "stockyard_cdk": ROOT / "constructs",
    "stockyard_stack_resources": ROOT / "constructs",
}


def modules_of(root: Path, package: str) -> dict[str, Path]:
    """The files of a package by the name of their module."""
    files = sorted((root / package).rglob("*.py"))
    names = {file: ".".join(file.relative_to(root).with_suffix("").parts) for file in files}
    return {name.removesuffix(".__init__"): file for file, name in names.items()}


def imports_of(tree: ast.AST, modules: Mapping[str, Path]) -> Iterator[str]:
    """The modules that a file names in its imports, wherever they stand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                yield inner if inner in modules else node.module


def circle_of(edges: Mapping[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, the first one again at the end; none where there is no circle."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def edges_of(modules: Mapping[str, Path]) -> dict[str, set[str]]:
    """Imports of each module from the others."""
    trees = {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in modules.items()}
    return {
        name: {each for each in imports_of(tree, modules) if each in modules} - {name} for name, tree in trees.items()
    }


def test_no_files_import_each_other_in_a_circle() -> None:
    modules: dict[str, Path] = {}
    for package, root in ROOTS.items():
        modules |= modules_of(root, package)
    assert len(modules) > 900
    assert circle_of(edges_of(modules)) == []


@pytest.mark.parametrize(
    "statement", ["import p.b", "from p import b", "from p.b import B", "if TYPE_CHECKING:\n    import p.b"]
)
def test_circle_is_found(tmp_path: Path, statement: str) -> None:
    (tmp_path / "p").mkdir()
    for name, text in {"__init__": "", "a": statement, "b": "from p.c import C", "c": "import p.a"}.items():
        (tmp_path / "p" / f"{name}.py").write_text(text)
    assert set(circle_of(edges_of(modules_of(tmp_path, "p")))) == {"p.a", "p.b", "p.c"}
