"""Builds a real Vault into ``.cache/vault``.

    python -m local.vault.real.build

Go must be there. It is the core of Vault 1.14.1, the last minor under the Mozilla Public License, with AppRole and the
key-value store, kept in memory. Vault replaces its own modules by folders, so the module beside this file names them
with versions. The first time takes some three minutes on two cores, and 2 GB.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BINARIES = HERE.parents[2] / ".cache" / "vault"


def release() -> str:
    """The release that is built: ``1.14.1``."""
    module = (HERE / "go.mod").read_text(encoding="utf-8")
    version = re.search(r"^\tgithub\.com/hashicorp/vault v(\S+)", module, re.MULTILINE)
    if version is None:
        raise ValueError("go.mod requires no github.com/hashicorp/vault")
    return version[1]


def program() -> Path:
    """Path of the program once it was built."""
    return BINARIES / release() / "vault"


def missing() -> str:
    """Reason why the program cannot be run; empty when it is there."""
    return "" if program().exists() else "vault is not built: run make vault"


def main() -> int:
    """Builds what is missing. 2 without Go."""
    if shutil.which("go") is None:
        sys.stderr.write("Go is needed to build Vault: https://go.dev/dl\n")
        return 2
    out = program()
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        part = out.with_suffix(".part")
        command = ["go", "build", "-trimpath", "-mod=readonly", "-ldflags", "-s -w", "-o", str(part), "."]
        subprocess.run(command, cwd=HERE, check=True)
        part.rename(out)
    sys.stdout.write(f"{out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
