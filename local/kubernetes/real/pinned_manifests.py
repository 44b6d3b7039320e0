"""Copies pinned manifests out of their projects' Go modules, where the host that machines fetch them from is out of
reach.

    python -m local.kubernetes.real.pinned_manifests

A file that is not what was pinned is left out, as is a module that cannot be had.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from local.kubernetes.real.build import MANIFESTS
from stockyard.machines.manifests import DEVICE_PLUGIN, FLANNEL, Source

MODULES = {
    "github.com/flannel-io/flannel@v0.28.9": FLANNEL,
    "github.com/NVIDIA/k8s-device-plugin@v0.19.3": DEVICE_PLUGIN,
}
"""Module and version -> what is pinned of it."""


def absent(source: Source) -> list[tuple[str, Path]]:
    """Digest and path of each file that is not there."""
    lines = [line.split() for line in source.sums()]
    return [(digest, MANIFESTS / path) for digest, path in lines if not (MANIFESTS / path).exists()]


def copy(source: Source, folder: Path) -> None:
    """Copy from a module's folder what is absent and is what was pinned."""
    for digest, path in absent(source):
        content = (folder / source.folder / path.name).read_bytes()
        if hashlib.sha256(content).hexdigest() == digest:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        else:
            sys.stderr.write(f"{path.name} of {folder.name} is not what was pinned\n")


def main() -> int:
    """Copies what is absent."""
    for module, source in MODULES.items():
        if not absent(source):
            continue
        command = ["go", "mod", "download", "-json", module]
        try:
            # Outside of every module: what is fetched is nobody's requirement.
            done = subprocess.run(command, cwd="/", check=True, capture_output=True, text=True)
            copy(source, Path(json.loads(done.stdout)["Dir"]))
        except (OSError, subprocess.CalledProcessError) as error:
            sys.stderr.write(f"no {module}: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
