"""The wheel of the constructs: built as ``make wheels`` builds it, with both packages and no other."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUT_OF_REACH = ("dns error", "error sending request", "Failed to fetch", "client error", "Connection refused")
"""Words of uv for a registry that is not there: it gets setuptools from one."""


def test_the_wheel_has_the_constructs_and_their_handler(tmp_path: Path) -> None:
    sources = tmp_path / "constructs"
    shutil.copytree(ROOT / "constructs", sources, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    uv = Path(sys.executable).parent / "uv"
    command = [str(uv), "build", "--wheel", "--out-dir", str(tmp_path / "wheels"), str(sources)]
    built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if built.returncode and any(words in built.stderr for words in OUT_OF_REACH):
        pytest.skip("uv reaches no registry to get setuptools from")
    assert built.returncode == 0, built.stderr[-2_000:]
    (wheel,) = (tmp_path / "wheels").glob("stockyard_cdk-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    expected = {path.relative_to(ROOT / "constructs").as_posix() for path in (ROOT / "constructs").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == {name for name in expected if "build/" not in name}
    assert {"stockyard_cdk/py.typed", "stockyard_stack_resources/py.typed"} <= names
    assert "Requires-Dist: aws-cdk-lib" in metadata
