"""Builds a real OpenTofu into ``.cache/tofu``.

    python -m local.opentofu.real.build

Go must be there. OpenTofu replaces HashiCorp's library of its language by a version of its own, so the module beside
this file does the same. The first time takes some three minutes on two cores, and 3 GB.
"""

from __future__ import annotations

import sys
from pathlib import Path

from local.go_program import GoProgram

_MODULE = "github.com/opentofu/opentofu"
TOFU = GoProgram(
    "tofu",
    Path(__file__).resolve().parent,
    _MODULE,
    f"{_MODULE}/cmd/tofu",
    "tofu",
    # else it calls itself a build for development
    (f"-X {_MODULE}/version.dev=no",),
)

if __name__ == "__main__":
    sys.exit(TOFU.build())
