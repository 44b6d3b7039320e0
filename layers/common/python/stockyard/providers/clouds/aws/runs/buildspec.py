"""The buildspec of a run: it carries the program, installs what the program needs, and starts it."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from stockyard.errors import VendorRefused

RELEASE = "1.12.6"
"""The version of OpenTofu that builds install."""
MOST_CHARACTERS = 25_600
"""Limit of CodeBuild for a buildspec."""
PROGRAM, SCRIPT = "stockyard-run.zip", "stockyard-build.sh"
_SCRIPT = Path(__file__).with_name("build.sh")


@dataclass(frozen=True, slots=True)
class Release:
    """Place of OpenTofu's releases, and the SHA-256 of the archive for the project's machines; None: the release's own
    list of checksums says it."""

    url: str = "https://github.com/opentofu/opentofu/releases/download"
    digest: str | None = None


def buildspec(program: bytes, release: Release) -> str:
    """The buildspec. ``program`` is a zip application.

    CodeBuild takes JSON, as YAML. Every command is short but those that carry files: CodeBuild names a command that
    failed in the build's state. Raises ``VendorRefused`` for a program that does not fit.
    """
    digests = [release.digest] if release.digest else []
    arguments = [hashlib.sha256(program).hexdigest(), RELEASE, release.url, *digests]
    files = {PROGRAM: program, SCRIPT: _SCRIPT.read_bytes()}
    carried = [f"printf %s '{base64.b64encode(data).decode()}' | base64 -d > {name}" for name, data in files.items()]
    phases = {"install": {"commands": carried}, "build": {"commands": [f"sh {SCRIPT} {' '.join(arguments)}"]}}
    document = json.dumps({"version": 0.2, "phases": phases}, separators=(",", ":"))
    if len(document) > MOST_CHARACTERS:
        raise VendorRefused(
            f"the program of a run makes a buildspec of {len(document)} characters; CodeBuild takes {MOST_CHARACTERS}",
            code="BuildspecTooLong",
        )
    return document
