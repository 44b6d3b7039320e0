"""The modules of a commit, or of the files as they are, as syntax trees."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
TREES = {
    "stockyard": "layers/common/python/",
    "functions": "",
    "stacks": "",
    "local": "",
    "agent": "",
    "benchmarks": "",
    "stockyard_client": "client/",
}
"""The packages of ours, and the folder that each is imported from."""


def module_name(path: str) -> str | None:
    """The dotted name of the module in a file, its path relative to the repository; None for other files."""
    for package, folder in TREES.items():
        if path.startswith(f"{folder}{package}/") and path.endswith(".py"):
            return path.removeprefix(folder).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return None


def parsed(sources: Mapping[str, str]) -> dict[str, ast.Module]:
    """The syntax tree of each module, from texts by path."""
    names = {path: module_name(path) for path in sources}
    return {name: ast.parse(sources[path]) for path, name in names.items() if name}


def files() -> dict[str, str]:
    """The text of each file of ours as it is now, by path."""
    paths = (path for package, folder in TREES.items() for path in (ROOT / folder / package).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(paths)}


def committed(commit: str) -> dict[str, str]:
    """The text of each file of ours in a commit, by path. Raises ``CalledProcessError`` where there is none."""
    listed = _git(b"", "ls-tree", "-r", "-z", commit).decode().split("\0")[:-1]
    blobs = {path: row.split()[2] for row, _, path in (line.partition("\t") for line in listed) if module_name(path)}
    ids = "".join(f"{blob}\n" for blob in blobs.values())
    texts = _texts(_git(ids.encode(), "cat-file", "--batch"))
    return dict(zip(blobs, texts, strict=True))


def _texts(batch: bytes) -> Iterator[str]:
    """The contents in an answer of ``git cat-file --batch``."""
    at = 0
    while at < len(batch):
        end = batch.index(b"\n", at)
        size = int(batch[at:end].split()[2])
        yield batch[end + 1 : end + 1 + size].decode()
        at = end + 1 + size + 1


def _git(standard_input: bytes, *arguments: str) -> bytes:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, input=standard_input, capture_output=True, check=True).stdout
