"""The document that a control plane starts with, and the programs in it."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import yaml

from stockyard.machines import control_plane
from tests.unit.machines.first_boot import VALUES
from tests.unit.machines.played_machine import Machine, prepare


@pytest.fixture
def rendered() -> str:
    return gzip.decompress(control_plane.first_boot(**VALUES).cloud_config()).decode()


@pytest.fixture
def files(rendered: str) -> dict[str, dict[str, Any]]:
    return {file["path"]: file for file in yaml.safe_load(rendered)["write_files"]}


@pytest.fixture
def machine(files: dict[str, Any], tmp_path: Path) -> Any:
    """The machine's own program, as it was extracted from the document."""
    path = tmp_path / "stockyard_machine.py"
    path.write_text(files[control_plane.SCRIPT_PATH]["content"])
    specification = importlib.util.spec_from_file_location("stockyard_machine_extracted", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    module.STATE = str(tmp_path / "state")  # type: ignore[attr-defined]
    module.KUBERNETES = str(tmp_path / "kubernetes")  # type: ignore[attr-defined]
    (tmp_path / "state").mkdir()
    (tmp_path / "kubernetes" / "pki").mkdir(parents=True)
    return module


@pytest.fixture
def played_machine(tmp_path: Path, request: pytest.FixtureRequest) -> Machine:
    """A machine that starts by the script that the test names, on commands that only play."""
    return prepare(tmp_path, str(request.param))
