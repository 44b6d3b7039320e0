"""Patterns of paths, and the refusal of requests that no route takes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from stockyard.domain.values.patterns import pattern as later
from stockyard.errors import MethodNotAllowed, NotFound, StockyardError

TABLE = Path(__file__).with_name("paths.json")
"""Path -> its methods; generated."""

PARAMETER = "^[A-Za-z0-9_-][A-Za-z0-9._=-]{0,159}$"
"""What every id and name in a path looks like: names of node types have dots, those of some quotas ``=``."""


@cache
def methods() -> Mapping[str, tuple[str, ...]]:
    """Every path of the API and its methods, in order of path: what ``make openapi`` wrote from the routes.

    A function knows its own routes alone, and 404 and 405 are decided by all of them.
    """
    table: dict[str, list[str]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return {path: tuple(names) for path, names in table.items()}


def pattern(template: str) -> re.Pattern[str]:
    """Pattern of the paths of a template; parameters are the named groups."""
    parts = (f"(?P<{part[1:-1]}>[^/]+)" if part.startswith("{") else re.escape(part) for part in template.split("/"))
    return later("/".join(parts))


def check_parameters(values: Iterable[str]) -> None:
    """``NotFound`` unless each value could be the id or name of something."""
    if not all(re.fullmatch(PARAMETER[1:-1], value) for value in values):
        raise NotFound("There is no such resource.")


def unserved(method: str, path: str) -> tuple[StockyardError, dict[str, str]]:
    """The error for a request that no route takes, and its header fields."""
    for template, names in methods().items():
        if pattern(template).fullmatch(path) and method not in names:
            allowed = ", ".join(names)
            return MethodNotAllowed(f"This resource allows {allowed}."), {"Allow": allowed}
    return NotFound("There is no such resource."), {}
