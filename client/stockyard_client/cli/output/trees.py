"""Trees of documents: nothing is cut in a pipe, and on a terminal only the end of a line's text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from stockyard_client.cli.context import Context
from stockyard_client.cli.output.node_tables import OWN, dollars
from stockyard_client.cli.output.tables import ellipsis, style_of

_WORDS = {"node-claim": "claim"}
_GUIDES = {False: ("├── ", "│   "), True: ("└── ", "    ")}
_ASCII_GUIDES = {False: ("|-- ", "|   "), True: ("`-- ", "    ")}


def draw(context: Context, document: Mapping[str, Any]) -> None:
    """Writes a tree of ``kind``, ``name``, ``status``, ``type``, ``usd_hour``, ``message`` and ``children``."""
    guides = _GUIDES if context.out.encoding.lower().startswith("utf") else _ASCII_GUIDES
    for guide, node in _lines(document, guides, "", ""):
        context.out.print(Text(guide, style="dim").append_text(_label(context, node, len(guide))), soft_wrap=True)


def _lines(
    document: Mapping[str, Any], guides: Mapping[bool, tuple[str, str]], here: str, below: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Nodes of the tree, each with the text before it: first the node itself, then all that is below it."""
    yield here, document
    children = list(document.get("children") or ())
    for index, child in enumerate(children):
        branch, straight = guides[index == len(children) - 1]
        yield from _lines(child, guides, below + branch, below + straight)


def _label(context: Context, document: Mapping[str, Any], indent: int) -> Text:
    kind = str(document.get("kind") or "").replace("_", " ")
    text = Text(_WORDS.get(kind, kind), style="dim")
    if name := document.get("name"):
        text.append(f" {name}" if kind else str(name), style="bold")
    if status := str(document.get("status") or ""):
        text.append(f"  {status}", style=style_of(status) or "")
    price = dollars(document.get("usd_hour"), owned=bool(document.get("owned")))
    price = price if price in (None, OWN) else f"{price} USD/hour"
    parts = (document.get("type"), price, document.get("message"))
    details = "".join(f"  {' '.join(str(part).split())}" for part in parts if part)
    if context.room is not None:
        room = context.room - indent - text.cell_len
        details = ellipsis(details, max(room, 0), context.out.encoding)
    return text.append(details, style="dim")
