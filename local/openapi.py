"""Writes what is made from the routes of all functions; ``--check`` compares instead (exit 1 when they differ).

``openapi.json`` is the API's contract, and the stacks make the gateway's routes from it. The edge's table of paths is
small enough to be read by a function that has to refuse a request. A page of the documents has a row for each route,
and the client has a model for each answer.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local import security_page
from local.contract import client_models

if TYPE_CHECKING:
    from stockyard.edge.route import HttpFunction

ROOT = Path(__file__).resolve().parent.parent


def functions() -> list[HttpFunction]:
    """The functions that serve HTTP: those that have routes."""
    # The functions read their environment when they are called. Their import needs only a region.
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    names = sorted(path.parent.name for path in (ROOT / "functions").glob("*/handler.py"))
    handlers = [import_module(f"functions.{name}.handler") for name in names]
    return [handler.http for handler in handlers if hasattr(handler, "http")]


def examples() -> dict[str, Any]:
    """Documents by the name of the model that they are of: bodies of requests, and answers."""
    folder = ROOT / "examples"
    read = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("api/*.json"))}
    cluster = json.loads((folder / "aws-cluster.json").read_text(encoding="utf-8"))
    return {**read["bodies"], **read["answers"], "ClusterCreate": cluster}


def generated() -> Mapping[Path, str]:
    """File, below the root -> its text."""
    from stockyard.edge import paths
    from stockyard.edge.openapi import document as openapi

    served = functions()
    document = openapi.build(served, examples=examples())
    table = {path: sorted(method.upper() for method in methods) for path, methods in document["paths"].items()}
    rows = ",\n".join(f"  {json.dumps(path)}: {json.dumps(methods)}" for path, methods in table.items())
    return {
        Path("openapi.json"): _text(document),
        paths.TABLE.relative_to(ROOT): f"{{\n{rows}\n}}\n",
        security_page.PAGE: security_page.page(served),
        **client_models.modules(document),
    }


def _text(document: Any) -> str:
    """``document`` as JSON to be read and compared: short lists of texts and numbers take one line."""

    def joined(match: re.Match[str]) -> str:
        line = f"[{' '.join(part.strip() for part in match[1].splitlines())}]"
        return line if len(line) < 100 else match[0]

    return re.sub(r"\[\n([^\[\]{}]+)\n *\]", joined, json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Write below ``root``, or with ``--check`` compare."""
    parser = argparse.ArgumentParser(prog="python -m local.openapi", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the committed files and write nothing")
    options = parser.parse_args(arguments)
    stale = 0
    for name, text in generated().items():
        target = root / name
        if target.exists() and target.read_text(encoding="utf-8") == text:
            continue
        if options.check:
            stale = 1
            print(f"{name} is not what the code says; run: python -m local.openapi", file=sys.stderr)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return stale


if __name__ == "__main__":
    sys.exit(main())
