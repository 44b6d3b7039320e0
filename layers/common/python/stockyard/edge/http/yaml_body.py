"""A body of YAML documents, read as the JSON that it stands for: see ``domain.values.yaml_documents``. Loaded only for
requests that send YAML."""

from __future__ import annotations

from typing import Any

from stockyard.domain.values.yaml_documents import YamlFault, read_documents
from stockyard.edge.http.body import checked_text
from stockyard.errors import MalformedBody

_KIND = "YAML that JSON could say"


def parse(raw: bytes, max_depth: int) -> list[Any]:
    """The documents that are not empty. ``MalformedBody`` for anything that is no such YAML, or deeper nested."""
    with checked_text(_KIND):
        text = raw.decode("utf-8")
    try:
        documents = [document for document in read_documents(text, max_depth=max_depth) if document is not None]
    except YamlFault as fault:
        position = "" if fault.line is None else f": line {fault.line}, column {fault.column}"
        words = f"not {_KIND}{position}" if fault.detail == "is no YAML" else ""
        raise MalformedBody(f"The body is {words}." if words else f"The body {fault.detail}{position}.") from None
    if not documents:
        raise MalformedBody("The body holds no document.")
    return documents
