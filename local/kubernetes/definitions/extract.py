"""Writes a project's definitions from the YAML that it publishes, without descriptions.

    python -m local.kubernetes.definitions.extract kubevirt kubevirt.io_virtualmachines.yaml ...

An API server enforces them as it does the whole ones: descriptions are for people.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml


def lean(value: Any, *, names: bool = False) -> Any:
    """The value without descriptions. ``names``: whether its members are names of fields, one of which may be called
    so."""
    if isinstance(value, Mapping):
        members = {name: item for name, item in value.items() if names or name != "description"}
        return {name: lean(item, names=name == "properties" and not names) for name, item in members.items()}
    return [lean(item) for item in value] if isinstance(value, list) else value


def main(arguments: Sequence[str]) -> int:
    """Write the file of a project, a line a definition."""
    project, *paths = arguments
    documents = [lean(yaml.safe_load(Path(path).read_text(encoding="utf-8"))) for path in paths]
    named = sorted((document["metadata"]["name"], document) for document in documents)
    lines = [f"{json.dumps(name)}:{json.dumps(document, separators=(',', ':'))}" for name, document in named]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    Path(__file__).with_name(f"{project}.json").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
