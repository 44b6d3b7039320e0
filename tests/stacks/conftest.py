"""One synthesized stage for all tests of this folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stacks.synth import synthesize


@dataclass(frozen=True)
class Assembly:
    """The synthesized stage ``dev``."""

    folder: Path
    data: dict[str, Any]
    service: dict[str, Any]

    def of_type(self, type_: str) -> dict[str, dict[str, Any]]:
        """Logical id -> resource, of the service stack."""
        return {name: one for name, one in self.service["Resources"].items() if one["Type"] == type_}

    def function(self, name: str) -> tuple[str, dict[str, Any]]:
        """Logical id and properties of one of our functions."""
        for logical_id, one in self.of_type("AWS::Lambda::Function").items():
            if one["Properties"]["Handler"] == f"functions.{name}.handler.lambda_handler":
                return logical_id, one["Properties"]
        raise KeyError(name)


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    folder = synthesize("dev", tmp_path_factory.mktemp("assembly"), bundled=False)

    def template(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((folder / f"{name}.template.json").read_text())
        return found

    return Assembly(folder, template("Stockyard-dev-Data"), template("Stockyard-dev"))
