"""The changes of a plan, a line a field, below what each is a part of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.text import Text

from stockyard_client.cli.context import Context
from stockyard_client.cli.documents.pointers import dotted, tokens_of
from stockyard_client.cli.output import differences


def draw(context: Context, changes: Iterable[dict[str, Any]]) -> None:
    """Writes changes to stdout: what a resource is called, where there may be several, and each field that differs."""
    last = ""
    for change in changes:
        title = _title(context, change)
        if title and title != last:
            context.out.print(Text(f"~ {title}", style="bold"), soft_wrap=True)
        last = title
        rows = differences.differences(change.get("before"), change.get("after"), _path(change))
        differences.show(context, rows, indent="  " if title else "")


def is_change(entry: Any) -> bool:
    """Whether an entry of a plan says what a field was and becomes."""
    return isinstance(entry, dict) and "before" in entry and "after" in entry


def _title(context: Context, change: dict[str, Any]) -> str:
    """Name of the thing that a change concerns: as the plan says it, else the document that asks for it; empty for the
    one that is planned."""
    if change.get("name"):
        return f"{str(change.get('kind') or '').replace('-', ' ')} {change['name']}".strip()
    tokens = tokens_of(str(change.get("pointer", "")))
    return context.location_of(f"/{tokens[0]}") if tokens and tokens[0].isdecimal() else ""


def _path(change: dict[str, Any]) -> str:
    """The field, as the plan calls it, else its path in the document: a number before it is that of the document."""
    if change.get("field"):
        return str(change["field"])
    tokens = tokens_of(str(change.get("pointer", "")))
    return dotted(tokens[1:] if tokens and tokens[0].isdecimal() else tokens)
