"""Builds a real Vault into ``.cache/vault``.

    python -m local.vault.real.build

Go must be there. It is the core of Vault 1.14.1, the last minor under the Mozilla Public License, with AppRole and the
key-value store, kept in memory. Vault replaces its own modules by folders, so the module beside this file names them
with versions. The first time takes some three minutes on two cores, and 2 GB.
"""

from __future__ import annotations

import sys
from pathlib import Path

from local.go_program import GoProgram

VAULT = GoProgram("vault", Path(__file__).resolve().parent, "github.com/hashicorp/vault", ".", "vault")

if __name__ == "__main__":
    sys.exit(VAULT.build())
