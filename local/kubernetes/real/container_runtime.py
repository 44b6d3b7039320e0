"""Builds the programs that a first boot configures for GPUs into ``.cache/kubernetes/container-runtime``.

    python -m local.kubernetes.real.container_runtime

containerd and NVIDIA's ``nvidia-ctk``, of the releases that AWS's image with NVIDIA's driver has: its release notes of
2026-10-09 name containerd 2.4.1 and toolkit 1.20.1. They configure, and run no container here. Go and a C compiler must
be there; the first time takes some three minutes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

from local.kubernetes.real.build import BINARIES, HERE

FOLDER = BINARIES / "container-runtime"
CONTAINERD, TOOLKIT = "containerd", "nvidia-ctk"
PACKAGES = {
    CONTAINERD: ("containerd", "github.com/containerd/containerd/v2/cmd/containerd", "-tags=no_btrfs"),
    TOOLKIT: ("container_toolkit", "github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-ctk", "-tags="),
}
"""Program -> folder of its module, package, and tags of the build."""


def missing() -> str:
    """Reason why the programs cannot be run; empty when they are there."""
    absent = [name for name in PACKAGES if not (FOLDER / name).exists()]
    return f"{', '.join(absent)} not built: run make kubernetes" if absent else ""


def main() -> int:
    """Builds what is missing. What cannot be built is said and left out. 2 without Go."""
    if shutil.which("go") is None:
        sys.stderr.write("Go is needed to build containerd: https://go.dev/dl\n")
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (module, package, tags) in PACKAGES.items():
        part = FOLDER / f"{name}.part"
        if not (FOLDER / name).exists():
            command = ["go", "build", "-mod=readonly", tags, "-ldflags", "-s -w", "-o", str(part), package]
            try:
                subprocess.run(command, cwd=HERE / module, check=True)
            except subprocess.CalledProcessError as error:
                sys.stderr.write(f"no {name}: {error}\n")
                continue
            part.rename(FOLDER / name)
            sys.stdout.write(f"built {name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
