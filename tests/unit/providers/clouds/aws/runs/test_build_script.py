"""The script of a build: it checks what it was given and what it fetches, and starts the program."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from stockyard.errors import VendorRefused
from stockyard.providers.clouds.aws.runs.buildspec import MOST_CHARACTERS, RELEASE, Release, buildspec
from stockyard.providers.nodes.terraform.program import program
from tests.harness.runs.worlds import zipped

PROGRAM = zipped(
    "import os, subprocess; print('tofu says', subprocess.check_output([os.environ['STOCKYARD_TOFU']], text=True))"
)
CURL = f"""#!{sys.executable}
import os, shutil, sys
arguments = sys.argv[1:]
assert "--fail" in arguments and arguments[arguments.index("--proto") + 1] == "=https"
with open("curl.log", "a") as file:
    print(arguments[-1], os.environ.get("HTTPS_PROXY"), file=file)
source = os.path.join(os.environ["RELEASE"], os.path.basename(arguments[-1]))
if not os.path.exists(source):
    sys.exit(22)
shutil.copy(source, arguments[arguments.index("--output") + 1])
"""
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}


def archive(text: str = "#!/bin/sh\necho hello\n") -> bytes:
    """A release's archive with a program in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("tofu", text)
    return buffer.getvalue()


def carried_out(
    folder: Path, release: Mapping[str, bytes], digest: str | None = None, program: bytes = PROGRAM, **variables: str
) -> subprocess.CompletedProcess[str]:
    """The commands of a buildspec, where curl serves a release."""
    served, binaries = folder / "release", folder / "bin"
    served.mkdir()
    binaries.mkdir()
    for name, data in release.items():
        (served / name).write_bytes(data)
    (binaries / "curl").write_text(CURL)
    (binaries / "curl").chmod(0o755)
    phases = json.loads(buildspec(program, Release(digest=digest)))["phases"]
    script = "\n".join(["set -e", *phases["install"]["commands"], *phases["build"]["commands"]])
    environment = {"PATH": f"{binaries}:/usr/bin:/bin", "RELEASE": str(served), **variables}
    return subprocess.run(
        ["/bin/sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def name() -> str:
    machine = subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()
    return f"tofu_{RELEASE}_linux_{MACHINE[machine]}.zip"


def sums(name: str, data: bytes) -> dict[str, bytes]:
    """A release of one archive, with its list of checksums."""
    lines = f"{'0' * 64}  other_{name}\n{hashlib.sha256(data).hexdigest()}  {name}\n"
    return {name: data, f"tofu_{RELEASE}_SHA256SUMS": lines.encode()}


def test_release_is_checked_by_its_own_list_and_by_the_stages_digest(tmp_path: Path, name: str):
    data = archive()
    for case, digest, fetched in (
        ("list", None, [name, f"tofu_{RELEASE}_SHA256SUMS"]),
        ("digest", hashlib.sha256(data).hexdigest(), [name]),
    ):
        folder = tmp_path / case
        folder.mkdir()
        done = carried_out(folder, sums(name, data), digest, HTTPS_PROXY="http://proxy.example:3128")
        assert (done.returncode, done.stdout) == (0, "tofu says hello\n\n"), done.stderr
        lines = (folder / "curl.log").read_text().splitlines()
        url = f"https://github.com/opentofu/opentofu/releases/download/v{RELEASE}"
        assert lines == [f"{url}/{each} http://proxy.example:3128" for each in fetched]


def test_release_that_is_not_as_it_should_be_is_not_used(tmp_path: Path, name: str):
    data = archive()
    honest = sums(name, data)
    cases = {
        "changed archive": (
            {**honest, name: archive("#!/bin/sh\necho stolen\n")},
            None,
            "is not what its checksum says",
        ),
        "another digest": (honest, "0" * 64, "is not what its checksum says"),
        "no checksum": ({**honest, f"tofu_{RELEASE}_SHA256SUMS": b""}, None, "names no checksum"),
        "no archive": ({}, None, "could not be fetched"),
    }
    for case, (release, digest, text) in cases.items():
        folder = tmp_path / case.replace(" ", "-")
        folder.mkdir()
        done = carried_out(folder, release, digest)
        assert done.returncode != 0
        assert text in done.stderr
        assert done.stdout == ""


def test_program_that_came_otherwise_is_not_started(tmp_path: Path):
    document = buildspec(PROGRAM, Release("https://mirror.example/tofu"))
    digest = hashlib.sha256(PROGRAM).hexdigest()
    assert document.count(digest) == 1
    broken = json.loads(document.replace(digest, "0" * 64))
    commands = [*broken["phases"]["install"]["commands"], *broken["phases"]["build"]["commands"]]
    script = "\n".join(["set -e", *commands])
    done = subprocess.run(
        ["/bin/sh", "-c", script], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"has not come as it was sent" in done.stderr


def test_program_of_the_machine_is_used_where_it_says_so(tmp_path: Path):
    done = carried_out(tmp_path, {}, STOCKYARD_TOFU="/bin/pwd")
    assert (done.returncode, done.stdout) == (0, f"tofu says {tmp_path}\n\n")
    (tmp_path / "other").mkdir()
    assert "There is no program /none" in carried_out(tmp_path / "other", {}, STOCKYARD_TOFU="/none").stderr


def test_buildspec_carries_the_program_of_runs_and_has_room():
    document = buildspec(program(), Release(digest="0" * 64))
    assert len(document) < MOST_CHARACTERS * 0.9
    (text,) = re.findall(r"'([A-Za-z0-9+/=]+)' \| base64 -d > stockyard-run.zip", document)
    assert base64.b64decode(text) == program()
    # CodeBuild repeats a command that failed
    assert all(len(command) < 300 for command in json.loads(document)["phases"]["build"]["commands"])
    with pytest.raises(VendorRefused, match="25600"):
        buildspec(bytes(range(256)) * 80, Release())
