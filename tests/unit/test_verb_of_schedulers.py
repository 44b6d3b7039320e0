"""Place is the verb of schedulers: names of the product have it in their packages alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.unit.test_names import BUNDLES, PRODUCT, ROOT, words

SCHEDULERS = ("layers/common/python/stockyard/scheduling/",)
"""Packages that place pods and claims."""
ROOMS = (*PRODUCT, "constructs")
_MODELS = "layers/common/python/stockyard/domain/models/"
CONTRACTS = frozenset(
    {
        ("client/stockyard_client/resources/simulations.py", "WithoutPlace"),
        ("client/stockyard_client/resources/simulations.py", "without_place"),
        ("layers/common/python/stockyard/domain/records.py", "place"),
        (f"{_MODELS}clusters/kubeconfig_secrets.py", "SecretPlace"),
        (f"{_MODELS}clusters/machines.py", "OverlayPlace"),
        (f"{_MODELS}clusters/views.py", "place"),
        (f"{_MODELS}pools/pending_pods.py", "VolumePlace"),
        (f"{_MODELS}pools/simulations.py", "WithoutPlaceView"),
        (f"{_MODELS}pools/simulations.py", "without_place"),
    }
)
"""Names with the word that callers or stored records know, each with its module."""


def _names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names that a module gives: of variables, attributes, parameters, functions and classes, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno


def is_foreign(path: str, name: str) -> bool:
    """Whether the name has the verb of schedulers in a module that is of none, and is of no contract."""
    return "place" in words(name) and not path.startswith(SCHEDULERS) and (path, name) not in CONTRACTS


def test_only_schedulers_place() -> None:
    faults = list[str]()
    for file in (file for room in ROOMS for file in (ROOT / room).rglob("*.py") if BUNDLES not in file.parents):
        path = str(file.relative_to(ROOT))
        names = [(file.stem, 0), *_names(ast.parse(file.read_text()))]
        faults += [f"{path}:{line} {name}" for name, line in names if is_foreign(path, name)]
    assert not faults, "\n".join(faults)


def test_check_sees_the_verb_elsewhere() -> None:
    tree = ast.parse("def place(pod):\n    self.own_place = placement = unplaced = PLACE_ALL = pod\n")
    names = {name for name, _ in _names(tree) if is_foreign("agent/a.py", name)}
    assert names == {"place", "own_place", "PLACE_ALL"}
    assert not is_foreign(f"{SCHEDULERS[0]}packing/solve.py", "place_many")
    path, name = "layers/common/python/stockyard/domain/records.py", "place"
    assert (is_foreign(path, name), is_foreign(path, f"{name}_again")) == (False, True)
