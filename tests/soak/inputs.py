"""Files that a part of the tests reads, found by its imports and by the names in its texts.

A module is read by what imports it, wherever the import stands. Strings count as well: the name of a module of ours,
alone or inside the package of the file (as ``providers/registry.py`` names its folders), the path of a file or folder
(``docs/settings.md``, ``ROOT / "console"``), and what ``python -m`` starts. A folder stands for all files in it.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOTS = ("layers/common/python/", "client/", "constructs/", "")
"""Folders that modules are imported from; the last is the repository's own."""
TESTS = "tests"
"""Folder that is read by imports alone: each test would read all others by its name."""


def module_of(path: str) -> str:
    """Dotted name of a module of ours by its path relative to the repository."""
    root = next(each for each in ROOTS if path.startswith(each))
    return path.removeprefix(root).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def tracked(root: Path) -> list[str]:
    """Paths of all files that git knows or would add. Raises ``CalledProcessError`` outside of a repository."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return sorted(path for path in set(listed.split("\0")) if path and (root / path).is_file())


@dataclass(frozen=True)
class Inputs:
    """Files of a repository, and which of them read which others. ``paths`` are relative to ``root``."""

    root: Path
    paths: tuple[str, ...]

    @cached_property
    def modules(self) -> Mapping[str, str]:
        """Path of each module by its name."""
        return {module_of(path): path for path in self.paths if path.endswith(".py")}

    @cached_property
    def folders(self) -> Mapping[str, list[str]]:
        """Paths by each folder that they are in, and by themselves, without the tests."""
        by_folder: dict[str, list[str]] = {}
        for path in self.paths:
            if not path.startswith(f"{TESTS}/"):
                for folder in (path, *(each.as_posix() for each in Path(path).parents)):
                    by_folder.setdefault(folder, []).append(path)
        by_folder.pop(".", None)
        return by_folder

    def of(self, files: Iterable[str]) -> list[str]:
        """Sorted paths of the files and of all that is read by them."""
        read, waiting = set[str](), [*files]
        while waiting:
            path = waiting.pop()
            if path in read:
                continue
            read.add(path)
            if path.endswith(".py"):
                waiting.extend(self._reads(path))
        return sorted(read)

    def digest(self, files: Iterable[str]) -> str:
        """Digest of the names and contents of all that these files read."""
        lines = (f"{path} {self._digest_of(path)}\n" for path in self.of(files))
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @cached_property
    def _read_by(self) -> dict[str, list[str]]:
        return {}

    @cached_property
    def _digests(self) -> dict[str, str]:
        return {}

    def _digest_of(self, path: str) -> str:
        if path not in self._digests:
            self._digests[path] = hashlib.sha256((self.root / path).read_bytes()).hexdigest()
        return self._digests[path]

    def _reads(self, path: str) -> list[str]:
        if path not in self._read_by:
            try:
                tree = ast.parse((self.root / path).read_text(encoding="utf-8"))
            except SyntaxError:  # somebody writes it right now, or a test wants it so
                tree = ast.Module([], [])
            self._read_by[path] = sorted({each for node in ast.walk(tree) for each in self._named(node, path)})
        return self._read_by[path]

    def _named(self, node: ast.AST, path: str) -> Iterator[str]:
        if isinstance(node, ast.Import):
            for each in node.names:
                yield from self._with_packages(each.name)
        elif isinstance(node, ast.ImportFrom):
            parts = module_of(path).split(".")
            package = parts[: len(parts) - node.level + path.endswith("__init__.py")] if node.level else []
            source = ".".join([*package, *([node.module] if node.module else [])])
            for each in node.names:
                yield from self._with_packages(f"{source}.{each.name}")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield from self._at(_text(node.right), path)
        elif isinstance(node, ast.List | ast.Tuple):
            after_m = (each for each, before in zip(node.elts[1:], node.elts, strict=False) if _text(before) == "-m")
            yield from (path for each in after_m for path in self._with_packages(_text(each), whole=True))
        elif text := _text(node):
            yield from self._at(text, path) if "/" in text or "." in text else ()
            if "." in text:
                name = text.split(":", 1)[0]
                yield from self._with_packages(name)
                yield from self._with_packages(f"{module_of(path).rpartition('.')[0]}.{name}")

    def _at(self, text: str, path: str) -> Iterator[str]:
        """Files at a path or below, seen from the top of the repository and from the folder of the naming file."""
        yield from self.folders.get(text, ())
        yield from self.folders.get(f"{path.rpartition('/')[0]}/{text}", ())

    def _with_packages(self, name: str, *, whole: bool = False) -> Iterator[str]:
        """A module with the packages that are imported before it; a name in a module stands for the module.

        ``whole``: a package stands for all inside it, as with ``python -m``.
        """
        if whole and name:
            yield from self.folders.get(name.replace(".", "/"), ())
        while name:
            if name in self.modules:
                yield self.modules[name]
            name = name.rpartition(".")[0]


def _text(node: ast.AST) -> str:
    """A constant text; of everything else a text that names nothing."""
    return node.value.strip("/") if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
