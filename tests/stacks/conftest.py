"""One synthesized stage for all tests of this folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.assembly import synthesized
from local.cloud import ROOT


@dataclass(frozen=True)
class Assembly:
    """The synthesized stage ``dev``."""

    folder: Path
    data: dict[str, Any]
    service: dict[str, Any]

    def of_type(self, type_: str) -> dict[str, dict[str, Any]]:
        """Logical id -> resource, of the service stack."""
        return {name: resource for name, resource in self.service["Resources"].items() if resource["Type"] == type_}

    def function(self, name: str) -> tuple[str, dict[str, Any]]:
        """Logical id and properties of one of our functions."""
        for logical_id, resource in self.of_type("AWS::Lambda::Function").items():
            if resource["Properties"]["Handler"] == f"functions.{name}.handler.lambda_handler":
                return logical_id, resource["Properties"]
        raise KeyError(name)


@pytest.fixture(scope="session")
def assembly() -> Assembly:
    folder = synthesized(ROOT, ROOT / ".local" / "cache")

    def template(name: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((folder / f"{name}.template.json").read_text())
        return document

    return Assembly(folder, template("Stockyard-dev-Data"), template("Stockyard-dev"))
