"""The documents that control planes and nodes start with, and the programs in them."""

from __future__ import annotations

import gzip
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from stockyard.machines import control_plane
from stockyard.machines import node as node_boot
from tests.unit.machines.first_boot import NODE_VALUES, VALUES
from tests.unit.machines.played_machine import Machine, prepare


@pytest.fixture
def rendered() -> str:
    return gzip.decompress(control_plane.ControlPlaneMachine(**VALUES).first_boot().cloud_config()).decode()


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
def node_document() -> str:
    return gzip.decompress(node_boot.first_boot(**NODE_VALUES).cloud_config()).decode()


@pytest.fixture
def node_files(node_document: str) -> dict[str, dict[str, Any]]:
    return {file["path"]: file for file in yaml.safe_load(node_document)["write_files"]}


@pytest.fixture
def node(node_files: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The node's own programs, as they were extracted from the document."""
    for path in (node_boot.SCRIPT_PATH, node_boot.MACHINE_PATH, node_boot.NEAR_PATH):
        (tmp_path / Path(path).name).write_text(node_files[path]["content"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("stockyard_machine", "stockyard_near"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    specification = importlib.util.spec_from_file_location("stockyard_node", tmp_path / "stockyard_node.py")
    assert specification is not None
    assert specification.loader is not None
    module: Any = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    for name in ("stockyard_machine", "stockyard_near"):
        monkeypatch.delitem(sys.modules, name)
    module.machine.STATE = str(tmp_path)
    module.stockyard_near.HOSTS = str(tmp_path / "hosts")
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n")
    return module


@pytest.fixture
def played_machine(tmp_path: Path, request: pytest.FixtureRequest) -> Machine:
    """A machine that starts by the script that the test names, on commands that only play."""
    return prepare(tmp_path, str(request.param))
