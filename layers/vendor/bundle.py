"""Builds the layers with uv: third parties' from ``requirements/runtime.txt``, and ours; no Docker, any laptop.

Bytecode of the deployed Python goes with the source where that Python is there to write it: ``/opt`` cannot be written
to, so a function would compile everything at each cold start. The result depends on the pins, the source and whether
there is bytecode, the same on every machine; it is kept under a name that is their hash, and built once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from uv import find_uv_bin

ROOT = Path(__file__).resolve().parents[2]
PINS = ROOT / "requirements" / "runtime.txt"
BUILDS = Path(__file__).resolve().parent / "build"
COMMON = ROOT / "layers" / "common"
PLATFORM = "aarch64-manylinux_2_28"
PYTHON = "3.13"
MOST_BYTES = 200 * 1024 * 1024
"""Lambda takes 250 MiB unzipped for a function and all its layers."""


class BundleError(RuntimeError):
    """uv could not build the layer; the text is what it said."""


def command(target: Path, pins: Path = PINS) -> list[str]:
    """The call of uv that fills ``target``. It takes wheels only, and only those whose hash is pinned."""
    return [
        find_uv_bin(),
        "pip",
        "install",
        "--quiet",
        "--require-hashes",
        "--target",
        str(target),
        "--python-platform",
        PLATFORM,
        "--python-version",
        PYTHON,
        "--only-binary",
        ":all:",
        "--requirement",
        str(pins),
    ]


def key(pins: Path = PINS) -> str:
    """The name of the build: a hash of everything that the result depends on."""
    source = f"{PLATFORM}\n{PYTHON}\n{compiler() is not None}\n".encode() + pins.read_bytes()
    return hashlib.sha256(source).hexdigest()[:16]


def compiler() -> str | None:
    """An interpreter of the deployed version, which alone can write the bytecode that it reads; None without one."""
    interpreter = shutil.which(f"python{PYTHON}")
    # A version manager may have put a program of that name there which starts nothing.
    if interpreter is not None and _output([interpreter, "--version"]):
        return interpreter
    return _output([find_uv_bin(), "python", "find", "--managed-python", "--no-python-downloads", PYTHON]) or None


def _output(arguments: list[str]) -> str:
    answer = subprocess.run(arguments, capture_output=True, text=True, check=False)  # noqa: S603
    return answer.stdout.strip() if answer.returncode == 0 else ""


def compile_all(python: str, layer: Path) -> None:
    """Write the bytecode of a layer. It names the files as Lambda has them, below ``/opt``, and the order of sets is
    fixed: so it is the same wherever it is made."""
    options = ["-q", "--invalidation-mode", "unchecked-hash", "-s", str(layer), "-p", "/opt"]
    _run([python, "-m", "compileall", *options, str(layer / "python")])


def common(source: Path = COMMON, builds: Path = BUILDS) -> Path:
    """The folder of our own layer: a copy of ``source`` with its bytecode, or ``source`` where nothing compiles it."""
    python = compiler()
    if python is None:
        return source
    files = sorted(path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    digest = hashlib.sha256(PYTHON.encode())
    for path in files:
        digest.update(f"{path.relative_to(source)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    done = builds / f"common-{digest.hexdigest()[:16]}"
    if done.is_dir():
        return done
    builds.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=builds) as folder:
        layer = Path(folder) / "layer"
        for path in files:
            copy = layer / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        compile_all(python, layer)
        layer.rename(done)
    return done


def bundle(builds: Path = BUILDS, pins: Path = PINS) -> Path:
    """The folder of the layer (with ``python/`` in it), built if it is not there. Raises ``BundleError``."""
    done = builds / key(pins)
    if done.is_dir():
        return done
    builds.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=builds) as folder:
        target = Path(folder) / "layer" / "python"
        _run(command(target, pins))
        _trim(target)
        python = compiler()
        if python is not None:
            compile_all(python, target.parent)
        size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
        if size > MOST_BYTES:
            raise BundleError(f"the layer has {size} bytes; {MOST_BYTES} is the most")
        (Path(folder) / "layer").rename(done)
    return done


def _run(arguments: list[str]) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    answer = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if answer.returncode != 0:
        raise BundleError(f"{Path(arguments[0]).name} failed:\n{answer.stderr.strip()}")


def _trim(target: Path) -> None:
    """Takes away what a function never reads: scripts, caches, type stubs of compiled modules."""
    (target / ".lock").unlink(missing_ok=True)
    for folder in [target / "bin", *target.rglob("__pycache__")]:
        shutil.rmtree(folder, ignore_errors=True)  # it may lie in one that is gone


if __name__ == "__main__":
    sys.stdout.write(f"{bundle()}\n")
