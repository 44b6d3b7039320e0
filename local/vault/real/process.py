"""A real Vault as a process: set up as its documentation says, and gone with all it holds when it is closed."""

from __future__ import annotations

import json
import subprocess

from local.vault.real.build import VAULT
from local.vault.server import ask
from local.vault.simulated import POLICY_NAME

POLICY = """
path "auth/approle/role/stockyard/secret-id" { capabilities = ["update"] }
path "secret/data/stockyard/*" { capabilities = ["create", "read", "update", "delete"] }
path "secret/metadata/stockyard/*" { capabilities = ["read", "delete"] }
"""


class RealVault:
    """On a free port of the loopback. ``root`` may do everything."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [VAULT.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        if self._process.stdout is None:
            raise AssertionError
        beginning = json.loads(self._process.stdout.readline())
        self.url, self.root = beginning["address"], beginning["token"]
        ask(self, "POST", "sys/mounts/secret", {"type": "kv", "options": {"version": "2"}})
        ask(self, "POST", "sys/auth/approle", {"type": "approle"})
        ask(self, "PUT", f"sys/policies/acl/{POLICY_NAME}", {"policy": POLICY})

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
