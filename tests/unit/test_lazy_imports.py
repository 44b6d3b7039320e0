"""Importing a function is cheap: pydantic and the vendors' packages are loaded by the calls that need them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/handler.py"))
HEAVY = ("pydantic", "keycloak", "requests", "httpx", "stamina", "kubernetes", "aws_xray_sdk", "yaml")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_importing_a_function_loads_nothing_heavy(name: str):
    code = f"import sys, functions.{name}.handler\nprint([one for one in {HEAVY!r} if one in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path), "STOCKYARD_TABLE": "t", "POWERTOOLS_SERVICE_NAME": name},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]"
