"""The synthesized stage ``dev``: made once for each state of its inputs, and kept in ``local/dev_stage``, so that a
local cloud needs neither CDK nor Node.

    python -m local.assembly [--check]

writes that folder from the stacks, or with ``--check`` compares (exit 1 when they differ). Only what the local cloud
reads is kept, without hashes of code, so that a change of a function does not change it; workflow documents go by the
names of their state machines.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from local.deployment import NO_LOCAL_MEANING
from local.template import TemplateError

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("local") / "dev_stage"
DIGEST = "inputs.sha256"
"""The file that says of which inputs the folder was made."""
CONTRACT = "openapi.json"
INPUTS = (
    "stacks",
    "cdk.json",
    "requirements/cdk.txt",
    "layers/vendor",
    "layers/common/python/stockyard/lifecycle",
    "layers/common/python/stockyard/kubernetes_versions.py",
    "layers/common/python/stockyard/metrics.py",
    "layers/common/python/stockyard/settings.py",
)
"""The inputs of the template, with the phases that workflow documents are made from, and the settings. Other code of
functions and layers is none: it runs from the source tree. Of the contract only the routes are."""


def assembled(root: Path, cache: Path) -> Path:
    """The folder with the templates and workflow documents: the one that is kept, or a new one when its inputs have
    changed. Raises ``TemplateError`` when they have, and CDK is not installed."""
    folder = root / FOLDER
    if (folder / DIGEST).exists() and (folder / DIGEST).read_text(encoding="utf-8").strip() == digest(root):
        return folder
    if find_spec("aws_cdk") is None:
        raise TemplateError(f"the stacks have changed since {FOLDER} was made of them: `make template` makes it anew")
    return synthesized(root, cache)


def synthesized(root: Path, cache: Path) -> Path:
    """The folder of the whole cloud assembly, from ``cache`` when its inputs have not changed."""
    target = cache / f"template-{digest(root)[:16]}"
    if (target / "manifest.json").exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # who comes at the same time waits for the one that makes it
        return target if (target / "manifest.json").exists() else _synthesized(root, cache, target)


def _synthesized(root: Path, cache: Path, target: Path) -> Path:
    work = Path(tempfile.mkdtemp(dir=cache, prefix="synth-"))
    try:
        command = [sys.executable, "-m", "stacks.synth", "--no-bundle", "--out", str(work)]
        synthesis = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if synthesis.returncode:
            raise TemplateError(f"stacks.synth failed ({synthesis.returncode}):\n{synthesis.stderr[-4000:]}")
        for old in cache.glob("template-*"):
            shutil.rmtree(old, ignore_errors=True)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def digest(root: Path) -> str:
    """Digest of all inputs."""
    whole = hashlib.sha256()
    for path in sorted(_files(root)):
        whole.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    whole.update(json.dumps(_routes(root), sort_keys=True).encode())
    return whole.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    for name in INPUTS:
        path = root / name
        if path.is_dir():
            paths: Iterable[Path] = path.rglob("*")
            yield from (p for p in paths if p.is_file() and "__pycache__" not in p.parts and "build" not in p.parts)
        elif path.exists():
            yield path


def _routes(root: Path) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Routes of the contract, as the stacks read them: each route and what is said to the gateway. The rest is for
    people."""
    paths = json.loads((root / CONTRACT).read_text(encoding="utf-8"))["paths"]
    return [
        (path, method, {name: value for name, value in operation.items() if name.startswith("x-stockyard-")})
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]


def trimmed(assembly: Path) -> dict[str, str]:
    """Name of a file -> its text: what the local cloud reads of a cloud assembly."""
    files = {}
    for path in sorted(assembly.glob("*.template.json")):
        template = json.loads(path.read_text(encoding="utf-8"))
        for resource in template["Resources"].values():
            resource.pop("Metadata", None)
            properties = resource.get("Properties", {})
            if resource["Type"] in NO_LOCAL_MEANING:
                resource.pop("Properties", None)
            elif resource["Type"] == "AWS::Lambda::Function":
                del properties["Code"]
            elif resource["Type"] == "AWS::StepFunctions::StateMachine":
                location, name = properties["DefinitionS3Location"], f"{properties['StateMachineName']}.json"
                document = json.loads((assembly / f"asset.{location['Key']}").read_text(encoding="utf-8"))
                location["Key"] = name
                files[f"asset.{name}"] = _text(document, "States")
        parts = ("Conditions", "Parameters", "Outputs", "Resources")
        files[path.name] = _text({name: template[name] for name in parts if name in template}, "Resources")
    return files


def _text(document: Mapping[str, Any], large: str) -> str:
    """JSON with a line for each entry of its ``large`` part, so that a change shows what has changed."""
    entries = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in document[large].items())
    beside = "".join(f"{json.dumps(name)}: {json.dumps(value)},\n" for name, value in document.items() if name != large)
    return f"{{\n{beside}{json.dumps(large)}: {{\n{entries}\n}}\n}}\n"


def differences(assembly: Path, root: Path = ROOT) -> list[str]:
    """The files of the folder that are not what this assembly of the present inputs says."""
    files = {**trimmed(assembly), DIGEST: f"{digest(root)}\n"}
    folder = root / FOLDER
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} if folder.is_dir() else {}
    return sorted(name for name in {*files, *present} if files.get(name) != present.get(name))


def write(assembly: Path, root: Path = ROOT) -> None:
    """Write the folder anew, of an assembly of the present inputs."""
    folder = root / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in {**trimmed(assembly), DIGEST: f"{digest(root)}\n"}.items():
        (folder / name).write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Write the folder, or with ``--check`` compare."""
    parser = argparse.ArgumentParser(prog="python -m local.assembly", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the committed folder and write nothing")
    options = parser.parse_args(arguments)
    assembly = synthesized(ROOT, ROOT / ".local" / "cache")
    stale = differences(assembly)
    if not stale:
        return 0
    if options.check:
        print(f"{FOLDER} is not what the stacks say ({', '.join(stale)}); run: make template", file=sys.stderr)
        return 1
    write(assembly)
    print(f"wrote {FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
