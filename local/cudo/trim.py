"""Makes ``openapi.json`` from Cudo's own document: ``python -m local.cudo.trim DOCUMENT``.

What Stockyard calls, with the schemas that these calls name, and without texts: paths, parameters and types alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("openapi.json")
OPERATIONS = frozenset(
    {
        "Get",
        "GetProject",
        "GetProjectPermissions",
        "ListVMDataCenters",
        "ListVMMachineTypes",
        "ListPublicVMImages",
        "ListDisks",
        "CreateStorageDisk",
        "GetDisk",
        "DeleteStorageDisk",
        "DetachStorageDisk",
        "ListNetworks",
        "CreateNetwork",
        "GetNetwork",
        "DeleteNetwork",
        "RebootVM",
        "ListVMs",
        "GetVM",
        "CreateVM",
        "TerminateVM",
        "StartVM",
        "StopVM",
        "UpdateVMExpireTime",
        "UpdateVMMetadata",
        "ListSecurityGroups",
        "GetSecurityGroup",
        "CreateSecurityGroup",
        "UpdateSecurityGroup",
        "DeleteSecurityGroup",
    }
)
_TEXTS = frozenset({"description", "title", "summary", "tags", "externalDocs", "example", "x-originalParamName"})
_REFERENCE = "#/components/schemas/"


def trimmed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a document that Stockyard uses."""
    paths: dict[str, dict[str, Any]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if operation["operationId"] in OPERATIONS:
                paths.setdefault(path, {})[method] = _without_texts(operation)
    schemas: dict[str, Any] = {}
    pending = _named(paths)
    while pending:
        name = pending.pop()
        if name not in schemas:
            schemas[name] = _without_texts(document["components"]["schemas"][name])
            pending |= _named(schemas[name])
    components = {"schemas": {name: schemas[name] for name in sorted(schemas)}}
    info = {"title": document["info"]["title"], "version": document["info"]["version"]}
    return {"openapi": document["openapi"], "info": info, "paths": paths, "components": components}


def _without_texts(part: Any) -> Any:
    if isinstance(part, dict):
        # A property may be called as a text is.
        return {
            key: {name: _without_texts(inner) for name, inner in value.items()}
            if key == "properties"
            else _without_texts(value)
            for key, value in part.items()
            if key not in _TEXTS
        }
    return [_without_texts(inner) for inner in part] if isinstance(part, list) else part


def _named(part: Any) -> set[str]:
    """The schemas that a part refers to."""
    if isinstance(part, dict):
        own = {part["$ref"].removeprefix(_REFERENCE)} if isinstance(part.get("$ref"), str) else set()
        return own.union(*(_named(inner) for inner in part.values()))
    return set[str]().union(*(_named(inner) for inner in part)) if isinstance(part, list) else set()


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the file."""
    parser = argparse.ArgumentParser(prog="python -m local.cudo.trim")
    parser.add_argument("document", type=Path)
    options = parser.parse_args(arguments)
    document = trimmed(json.loads(options.document.read_text(encoding="utf-8")))
    TARGET.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
