"""A program that Go builds from a module of ours, in which each requirement has its version."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(__file__).resolve().parents[1] / ".cache"


@dataclass(frozen=True, slots=True)
class GoProgram:
    """The program ``name``, made from ``package`` by the module in ``folder``; its release is that of ``module``.

    ``target`` is what makes it, for people; ``linked`` are flags of the linker besides those that leave symbols out,
    ``tags`` choose between files of the source.
    """

    name: str
    folder: Path
    module: str
    package: str
    target: str
    linked: Sequence[str] = ()
    tags: Sequence[str] = ()

    @property
    def release(self) -> str:
        """The release that is built: ``1.14.1``."""
        text = (self.folder / "go.mod").read_text(encoding="utf-8")
        version = re.search(rf"^(?:require |\t){re.escape(self.module)} v(\S+)", text, re.MULTILINE)
        if version is None:
            raise ValueError(f"go.mod requires no {self.module}")
        return version[1]

    @property
    def path(self) -> Path:
        """Path of the program once it was built."""
        return CACHE / self.target / self.release / self.name

    def missing(self) -> str:
        """Reason why the program cannot be run; empty when it is there."""
        return "" if self.path.exists() else f"{self.name} is not built: run make {self.target}"

    def build(self) -> int:
        """Build it unless that was done. 2 without Go."""
        if shutil.which("go") is None:
            sys.stderr.write(f"Go is needed to build {self.name}: https://go.dev/dl\n")
            return 2
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part = self.path.with_suffix(".part")
            flags = " ".join(("-s -w", *self.linked))
            command = ["go", "build", "-trimpath", "-mod=readonly", "-tags", ",".join(self.tags), "-ldflags", flags]
            command += ["-o", str(part), self.package]
            subprocess.run(command, cwd=self.folder, check=True)
            part.rename(self.path)
        sys.stdout.write(f"{self.path}\n")
        return 0
