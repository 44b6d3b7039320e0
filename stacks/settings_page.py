"""Writes ``docs/settings.md`` from the code: ``python -m stacks.settings_page [--check]``.

A row of the page is a field of ``StageConfig``: its default, what its check allows, and its docstring.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from stacks.config import CHECKS, CLOUDFRONT_CHECKS, NEEDED, Check, CloudFront, StageConfig

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
_HEAD = """# Settings of a stage

A stage is an object in `context.stages` of `cdk.json`; `-c stage=prod` chooses it, and `-c key=value` overrides a plain
value. This page is made from the code by `make settings`.

"""


def docstrings(of: type) -> dict[str, str]:
    """The docstring of each field of a class and of the classes before it, on one line."""
    texts = {}
    for each in reversed(of.__mro__[:-1]):
        body = ast.parse(inspect.getsource(each)).body[0]
        if not isinstance(body, ast.ClassDef):
            raise TypeError(f"{each.__name__} is no class")
        for field, text in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                texts[field.target.id] = " ".join(ast.literal_eval(text.value).split())
    return texts


def default_text(field: Field[Any]) -> str:
    """The default of a field as the page shows it."""
    if field.default is MISSING:
        return "required"
    if field.default in ("", None, ()):
        return "none"
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def rows(of: type, checks: Mapping[str, Check]) -> Iterator[str]:
    """The table of a class: its settings in order of their names. Raises ``KeyError`` for one without a docstring."""
    yield "| key | default | value | meaning |"
    yield "|---|---|---|---|"
    texts = docstrings(of)
    for field in sorted(fields(of), key=lambda field: field.name):
        if field.name in checks:
            meaning = texts[field.name].replace("``", "`").replace("|", "\\|")
            yield f"| `{field.name}` | {default_text(field)} | {checks[field.name].meaning} | {meaning} |"


def page() -> str:
    """The page."""
    needed = [f"`{stage}` needs {', '.join(f'`{name}`' for name in names)}." for stage, names in NEEDED.items()]
    parts = [*rows(StageConfig, CHECKS), "", *needed, "", "## `cloudfront`", "", *rows(CloudFront, CLOUDFRONT_CHECKS)]
    return _HEAD + "\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or with ``--check`` exit 1 when the page is not that of the code."""
    parser = argparse.ArgumentParser(prog="python -m stacks.settings_page")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    if not options.check:
        PAGE.write_text(page(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        sys.stderr.write("docs/settings.md is not that of the code: run make settings\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
