"""Writes ``openapi.json`` from the routes of all functions; ``--check`` compares instead (exit 1 when they differ)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from pathlib import Path

FUNCTIONS = ("clusters", "cloud_accounts", "node_providers", "node_claims", "apply", "records", "machines")
ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "openapi.json"


def document() -> str:
    """The text of ``openapi.json``."""
    # the functions read their environment when they are called; importing them needs a region at most
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    from stockyard.edge import openapi

    doors = [import_module(f"functions.{name}.routes").door for name in FUNCTIONS]
    return json.dumps(openapi.build(doors), indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write, or with ``--check`` compare."""
    parser = argparse.ArgumentParser(prog="python -m local.openapi", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the committed file and write nothing")
    asked = parser.parse_args(arguments)
    text = document()
    if not asked.check:
        TARGET.write_text(text, encoding="utf-8")
        print(f"wrote {TARGET.name}")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TARGET.name} is not what the code says; run: python -m local.openapi", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
