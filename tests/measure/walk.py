"""The walk of a request: the modules that a reader enters who follows its calls, depth first.

The reader begins in the handler and follows each function of ours that the text names, called or handed over as a
value, also where a branch would not be taken. Each function is read once. Methods and classes are not followed: a
port may have several implementations, and a record is a value.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from tests.measure.names import Names, Target

REQUESTS: Mapping[str, tuple[str, str]] = {
    "creation": ("functions.clusters", "create_cluster"),
    "claim": ("functions.node_claims", "create_node_claim"),
    "change": ("stockyard.operations.clusters", "change_cluster"),
}
"""The package and the function in which the walk of a request begins."""


@dataclass(frozen=True, slots=True)
class Walk:
    """``visits`` are the modules in the order in which they were entered, with those entered again."""

    visits: tuple[str, ...]

    @property
    def modules(self) -> list[str]:
        """Each module once, in the order of the first visit."""
        return list(dict.fromkeys(self.visits))

    @property
    def packages(self) -> list[str]:
        """The packages of the modules."""
        return list(dict.fromkeys(name.rpartition(".")[0] for name in self.modules))


def begin(names: Names, package: str, function: str) -> Target:
    """The function of that name in the package. Raises ``LookupError`` unless there is exactly one."""
    matches = [
        each for each in names.functions if each.name == function and f"{each.module}.".startswith(f"{package}.")
    ]
    if len(matches) != 1:
        raise LookupError(f"{package} has {len(matches)} functions called {function}")
    return matches[0]


def walk(names: Names, start: Target) -> Walk:
    """The walk that begins in ``start``."""
    visits: list[str] = []
    read: set[Target] = set()

    def enter(function: Target) -> None:
        read.add(function)
        if visits[-1:] != [function.module]:
            visits.append(function.module)
        for statement in names.functions[function].body:
            follow(statement, function.module)

    def follow(node: ast.AST, module: str) -> None:
        """Follows the arguments of a call before the called function, in the order of execution."""
        inner = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Call):
            inner = [*node.args, *node.keywords, node.func]
        for each in inner:
            follow(each, module)
        if isinstance(node, ast.expr):
            target = names.function(module, node)
            if target is not None and target not in read:
                enter(target)

    enter(start)
    return Walk(tuple(visits))
