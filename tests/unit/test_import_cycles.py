"""No files import each other in a circle, not even for types alone."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

PACKAGES = (
    "stockyard",
    "functions",
    "stacks",
    "local",
    "agent",
    "benchmarks",
    "stockyard_client",
    "stockyard_cdk",
    "stockyard_stack_resources",
)


def circle_of(edges: Mapping[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, the first one again at the end; none where there is no circle."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def edges_of(*packages: str) -> dict[str, set[str]]:
    """Imports of each module of the packages from the others, wherever they stand in it."""
    graph = grimp.build_graph(*packages, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def test_no_files_import_each_other_in_a_circle() -> None:
    edges = edges_of(*PACKAGES)
    assert len(edges) > 900
    assert circle_of(edges) == []


@pytest.mark.parametrize(
    "statement",
    [
        "import circular.b",
        "from circular import b",
        "from circular.b import B",
        "if TYPE_CHECKING:\n    import circular.b",
        "def late():\n    import circular.b",
    ],
)
def test_circle_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    folder = tmp_path / "circular"
    folder.mkdir()
    texts = {"__init__": "", "a": statement, "b": "from circular.c import C", "c": "import circular.a"}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    assert set(circle_of(edges_of("circular"))) == {"circular.a", "circular.b", "circular.c"}
