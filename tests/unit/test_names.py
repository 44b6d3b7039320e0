"""A name says what it holds: no participle or pronoun stands alone as the name of a variable, function or type."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUNDLES = ROOT / "layers" / "vendor" / "build"
"""Packages of others, as `make synth` installs them for the layer."""
ROOMS = ("functions", "layers", "stacks", "local", "agent", "client", "benchmarks", "tests", "app.py")
BARE = frozenset(
    {
        *("another", "asked", "begun", "brought", "chosen", "ended", "found", "given", "gone", "got", "held", "it"),
        *("kept", "known", "left", "made", "meant", "mine", "one", "others", "ours", "rest", "said", "same", "seen"),
        *("shown", "some", "struck", "taken", "theirs", "them", "told", "wanted", "what", "which", "who"),
    }
)
EXEMPT = {
    "chosen": "a field of the API: what an explanation says was selected",
    "asked": "a field of stored launch groups",
    "made": "a state of the ledger and of launch groups, and the method that records it",
    "gone": "a state of the ledger, and the method that records it",
}
"""Names that callers or stored records know, where they stand in ``KEEPERS``."""
KEEPERS = frozenset(
    {
        "client/stockyard_client/node_models.py",
        "layers/common/python/stockyard/domain/models/nodes/node_claims.py",
        "layers/common/python/stockyard/domain/nodes/records.py",
        "layers/common/python/stockyard/domain/nodes/launch_groups.py",
        "layers/common/python/stockyard/operations/engine/ledger.py",
        "layers/common/python/stockyard/operations/node_claims/launch_groups.py",
        "layers/common/python/stockyard/ports/clusters.py",
        "layers/common/python/stockyard/ports/nodes.py",
        "tests/unit/providers/conftest.py",
    }
)


def _names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno


def bare_names(source: str) -> list[tuple[str, int]]:
    """Each bare participle or pronoun that ``source`` uses as a name, with its line."""
    return [(name, line) for name, line in _names(ast.parse(source)) if name.strip("_").lower() in BARE]


def test_no_name_is_a_bare_participle_or_pronoun() -> None:
    files = (path for room in ROOMS for path in ((ROOT / room).rglob("*.py") if "." not in room else [ROOT / room]))
    hits = [
        f"{path}:{line} {name}"
        for path, source in (
            (str(file.relative_to(ROOT)), file.read_text()) for file in files if BUNDLES not in file.parents
        )
        for name, line in bare_names(source)
        if not (name.lower() in EXEMPT and path in KEEPERS)
    ]
    assert not hits, "\n".join(hits)


def test_check_sees_each_kind_of_name() -> None:
    source = "def found(told, *, one=1):\n    for given in told:\n        wanted = [x for x in given]\nclass Made: ..."
    assert sorted(name for name, _ in bare_names(source)) == ["Made", "found", "given", "one", "told", "wanted"]
