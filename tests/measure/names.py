"""Meanings of the names in a module: functions and modules of ours."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

Trees = Mapping[str, ast.Module]


def packages_of(trees: Trees) -> frozenset[str]:
    """The modules that have others inside."""
    return frozenset(name.rpartition(".")[0] for name in trees)


@dataclass(frozen=True, slots=True)
class Target:
    """A module, or what a module calls ``name``."""

    module: str
    name: str | None = None


def targets(module: str, trees: Trees, is_package: bool) -> Iterator[tuple[str, Target]]:
    """Each import of a module of ours in ``module``: the name that it binds, and what that stands for."""
    for node in ast.walk(trees[module]):
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name in trees:
                    bound = each.asname or each.name.partition(".")[0]
                    yield bound, Target(each.name if each.asname else bound)
        elif isinstance(node, ast.ImportFrom):
            source = _source(node, module, is_package)
            for each in node.names:
                inner = f"{source}.{each.name}"
                if inner in trees:
                    yield each.asname or each.name, Target(inner)
                elif source in trees:
                    yield each.asname or each.name, Target(source, each.name)


def _source(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The absolute name of the module that ``node`` imports from."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    kept_parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*kept_parts, *([node.module] if node.module else [])])


@dataclass(frozen=True)
class Names:
    """The functions of all modules, and how a name leads to one."""

    trees: Trees

    @cached_property
    def functions(self) -> dict[Target, ast.FunctionDef]:
        """The functions that stand at the level of a module."""
        return {
            Target(module, node.name): node
            for module, tree in self.trees.items()
            for node in tree.body
            if isinstance(node, ast.FunctionDef)
        }

    @cached_property
    def _bound(self) -> dict[str, dict[str, Target]]:
        packages = packages_of(self.trees)
        return {module: dict(targets(module, self.trees, module in packages)) for module in self.trees}

    def resolve(self, module: str, name: str) -> Target | None:
        """Meaning of ``name`` in ``module``: a function, or a module; None for everything else."""
        target: Target | None = Target(module, name)
        for _ in range(5):  # a name that is handed on by one module to the next
            if target is None or target.name is None or target in self.functions:
                return target
            target = self._bound[target.module].get(target.name)
        return None

    def function(self, module: str, node: ast.expr) -> Target | None:
        """The function that an expression of ``module`` names, alone or as an attribute of a module; else None."""
        target: Target | None = None
        if isinstance(node, ast.Name):
            target = self.resolve(module, node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            holder = self.resolve(module, node.value.id)
            if holder is not None and holder.name is None:
                target = self.resolve(holder.module, node.attr)
        return target if target in self.functions else None
