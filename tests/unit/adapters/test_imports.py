"""Importing an adapter is cheap: heavy packages are loaded when they are called."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("name", ["keycloak", "vdeployer", "secrets", "workflows", "bus", "clock", "sts_attestor"])
def test_importing_loads_no_heavy_package(name: str):
    heavy = ("keycloak", "requests", "httpx", "stamina", "jwcrypto", "boto3")
    code = f"import sys, stockyard.adapters.{name}\nprint(','.join(one for one in {heavy!r} if one in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == ""
