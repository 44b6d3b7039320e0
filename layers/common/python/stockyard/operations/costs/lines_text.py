"""Lines of a report of costs as JSON: of a large tenant nearly ten thousand, most of which differ in few words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from stockyard.operations.costs.report import Line, line_view

_OF_CLUSTER = ("kind", "cluster_id", "cluster")
_OF_TIME = ("spent",)


def lines_text(lines: Iterable[tuple[tuple[str, ...], Line]], names: Mapping[str, str]) -> str:
    """The array of what ``line_view`` says of each line. What is alike in many is written once: which cluster it is of,
    and name, number and prices of what costs."""
    write = json.JSONEncoder(separators=(",", ":")).encode
    heads: dict[tuple[str, ...], str] = {}
    middles: dict[tuple[Any, ...], str] = {}
    texts = []
    for key, line in lines:
        own = key[:2]
        head = heads.get(own)
        if head is None:
            values = key[0], key[1] or None, names.get(key[1])
            # A text is written by C, a document of three by an encoder of its own.
            pairs = zip(_OF_CLUSTER, values, strict=True)
            head = heads[own] = ",".join(f'"{name}":{write(value)}' for name, value in pairs)
        alike = key[2:], line.quantity, line.hour, line.rate_known
        middle = middles.get(alike)
        if middle is None:
            view = line_view(key, line, names)
            fields = {name: view[name] for name in view if name not in (*_OF_CLUSTER, *_OF_TIME)}
            middle = middles[alike] = write(fields)[1:-1]
        spent = f"{line.spent:.4f}" if line.complete else "null"
        texts.append(f'{{{head},{middle},"spent":{spent}}}')
    return f"[{','.join(texts)}]"
