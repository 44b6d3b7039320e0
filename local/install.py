"""Installs Python packages into ``.venv`` of the project: those of the local cloud, or all that work on it needs.

    python3 -m local.install run|all

It runs before anything is installed, with any Python 3: so it needs the standard library only, and says in a sentence
what is missing. What pip and uv say of it is in ``.venv/install.log``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEAST = (3, 11)
LENDING = (22, 3)
"""The first pip that installs into another environment."""
SIZES = {"run": "80 MB to download, 180 MB on disk", "all": "330 MB to download, 900 MB on disk"}
"""What is installed, and about how much it is."""
NETWORK = (
    "dns error",
    "error sending request",
    "NewConnectionError",
    "ConnectTimeoutError",
    "Failed to fetch",
    "ProxyError",
)
"""Words of pip and uv for a network that is not there."""
SECONDS = 20
"""How long one connection may take."""


class InstallError(Exception):
    """Something is missing; the text says what."""


def environment(root: Path) -> Path:
    """The Python of ``.venv``, which is made when there is none. Raises ``InstallError``."""
    if sys.version_info < LEAST:
        raise InstallError("Stockyard needs Python 3.11 or newer (make PYTHON=... chooses one)")
    folder = root / ".venv"
    python = folder / "bin" / "python"
    if not python.exists():
        is_new = not folder.exists()
        command = [sys.executable, "-m", "venv", *(["--without-pip"] if lends_pip() else []), str(folder)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            if is_new:
                shutil.rmtree(folder, ignore_errors=True)
            lacks = "ensurepip" in process.stdout + process.stderr
            reason = "install the package python3-venv" if lacks else (process.stderr or process.stdout).strip()[-300:]
            raise InstallError(f"python3 cannot make a virtual environment: {reason}")
    return python


def lends_pip() -> bool:
    """Whether the pip of this Python can install into another environment, which then needs none of its own: to unpack
    one takes longer than to install all that the local cloud needs."""
    try:
        numbers = version("pip").split(".")
    except PackageNotFoundError:
        return False
    return (int(numbers[0]), int(numbers[1])) >= LENDING


def commands(selection: str, root: Path, python: Path) -> list[list[str]]:
    """Commands that install, in order."""
    pins, uv = root / "requirements", str(python.with_name("uv"))
    uv_pip = [uv, "pip", "install", "--quiet", "--python", str(python)]
    packages = [*uv_pip, "--require-hashes", "-r", str(pins / "run.txt")]
    if selection == "all":  # exactly these: what an earlier release needed goes
        packages = [uv, "pip", "sync", "--quiet", "--python", str(python), str(pins / "dev.txt")]
    return [
        [*_for_uv(python, uv, uv_pip), "--require-hashes", "-r", str(pins / "uv.txt")],
        packages,
        [*uv_pip, "--no-deps", "-e", str(root / "client")],
    ]


def _for_uv(python: Path, uv: str, uv_pip: list[str]) -> list[str]:
    """Command that installs uv: the pip of this Python, the uv that is there already, or the environment's own pip.

    Who has ``.venv/bin`` first in PATH runs this by the Python of ``.venv``, which has no pip.
    """
    options = ["install", "--quiet", "--disable-pip-version-check", "--retries", "2", "--timeout", str(SECONDS)]
    if lends_pip():
        return [sys.executable, "-m", "pip", "--python", str(python), *options]
    return uv_pip if Path(uv).exists() else [str(python), "-m", "pip", *options]


def install(selection: str, root: Path = ROOT) -> None:
    """Install ``run`` or ``all``. Raises ``InstallError``."""
    python = environment(root)
    for command in commands(selection, root, python):
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        output = process.stdout + process.stderr
        (root / ".venv" / "install.log").write_text(output, encoding="utf-8")
        if process.returncode:
            raise InstallError(f"Python packages were not installed: {cause(output)} (.venv/install.log has it all)")


def cause(output: str) -> str:
    """Reason why pip or uv failed, in a sentence."""
    if any(word in output for word in NETWORK):
        return "the package index cannot be reached. Is there a network? PIP_INDEX_URL and UV_INDEX_URL name a mirror"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ") if lines else "nothing is said of why"


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python3 -m local.install", description=__doc__)
    parser.add_argument("selection", choices=tuple(SIZES), help="what to install")
    selection = parser.parse_args(arguments).selection
    print(f"installing Python packages into .venv, once: about {SIZES[selection]}", flush=True)
    try:
        install(selection)
    except InstallError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
