"""Data for machines, the verdicts of Debian's own tools on their first boot, and incompressible values."""

from __future__ import annotations

import email.message
import io
import random
import shutil
import string
import subprocess
import sys
import urllib.error
from pathlib import Path

import pytest

VALUES = {
    "api_url": "https://api.example.test/",
    "cluster_id": "clu_01KDVJXQ80000000000000000A",
    "client_id": "x" * 33 + "-0123456789ab",
    "kubernetes_version": "1.34",
    "issuer": "https://id.example.test/realms/vantage",
    "tenant": "acme",
    "creator": "ann@example.com",
    "volume_tags": {"stockyard:installation": "inst-1", "stockyard:tenant": "acme"},
}
"""What a control plane is told."""
NODE_VALUES = {
    "api_url": "https://api.example.test/",
    "cluster_id": "clu_01KDVJXQ80000000000000000A",
    "kubernetes_version": "1.34",
}
"""What a node is told."""
KEYS = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "secret/key+1", "Token": "token//with+strange=="}
"""Credentials of a machine's role."""
CLAIM = "ncl_01KDVJXQ80000000000000000A"
"""The claim of a node."""


def noise(length: int) -> str:
    """Letters and digits in no order, the same each time."""
    return "".join(random.Random(length).choices(string.ascii_letters + string.digits, k=length))


def check_script(text: str, folder: Path) -> None:
    """shellcheck has nothing to say."""
    program = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("shellcheck is not installed")
    script = folder / "start.sh"
    script.write_text(text)
    done = subprocess.run(
        [program, "-o", "all", "-e", "SC2250,SC2310,SC2312", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def check_document(text: str, folder: Path) -> None:
    """cloud-init knows every key."""
    program = shutil.which("cloud-init")
    if program is None:
        pytest.skip("cloud-init is a system package that is not installed here")
    path = folder / "user-data"
    path.write_text(text)
    done = subprocess.run([program, "schema", "--config-file", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def refusal(code: int, headers: dict[str, str]) -> urllib.error.HTTPError:
    """The answer of Stockyard's API that refuses a machine."""
    message = email.message.Message()
    for name, value in headers.items():
        message[name] = value
    return urllib.error.HTTPError("https://api.example.test", code, "no", message, io.BytesIO())
