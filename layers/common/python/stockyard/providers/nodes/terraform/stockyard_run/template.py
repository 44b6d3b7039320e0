"""Files of a template: from an archive or a repository, and whether they say where the state is kept."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from .api import Log, RunError

INHERITED = (
    "PATH", "LANG", "TMPDIR", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "no_proxy",
)  # fmt: skip
"""Variables of this program that git and OpenTofu get too."""
CLONE_SECONDS = 300
_ASIDE = re.compile(
    r'#[^\n]*|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|<<-?(\w+)\n.*?^\s*\1\s*$', re.DOTALL | re.MULTILINE
)
"""Comments, strings and heredocs of OpenTofu's language."""
_BACKEND = re.compile(r'\bbackend\s*""\s*\{|\bcloud\s*\{')


def unpacked(text: str, folder: Path) -> Path:
    """The folder with the files of a compressed archive, in base64. Nothing is put outside of it."""
    folder.mkdir()
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(text)), mode="r:gz") as archive:
        for member in archive.getmembers():
            path = (folder / member.name).resolve()
            if not (member.isfile() or member.isdir()) or not path.is_relative_to(folder.resolve()):
                raise RunError(f"The template has a file that is not taken: {member.name}")
            archive.extract(member, folder)
    return folder


def cloned(git: dict[str, Any], room: Path, log: Log, credentials: str | None = None) -> tuple[Path, str]:
    """Folder of the template in a clone of its repository, and the commit that it is of. ``credentials`` are a user and
    a password with a colon between them, or a token."""
    clone = room / "template"
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    environment |= {"HOME": str(room), "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"}
    environment |= _settings({"protocol.allow": "never", "protocol.https.allow": "always"}, git, credentials)
    revision = str(git.get("commit") or git.get("ref") or "HEAD")
    steps = (
        ["init", "--quiet", str(clone)],
        ["-C", str(clone), "fetch", "--quiet", "--depth", "1", "--no-tags", "--", str(git["repository"]), revision],
        ["-C", str(clone), "checkout", "--quiet", "--detach", "FETCH_HEAD"],
        ["-C", str(clone), "rev-parse", "HEAD"],
    )
    printed = ""
    for step in steps:
        try:
            done = subprocess.run(  # noqa: S603
                ["git", *step],  # noqa: S607
                env=environment,
                capture_output=True,
                text=True,
                timeout=CLONE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            raise RunError("git could not be run, or took too long.") from None
        if done.returncode != 0:
            log.line(done.stderr.strip())
            raise RunError(f"The repository could not be fetched at {revision}: git {step[2]} failed.")
        printed = done.stdout.strip()
    folder = (clone / str(git.get("sub_path") or "")).resolve()
    if not folder.is_relative_to(clone.resolve()) or not folder.is_dir():
        raise RunError(f"The repository has no folder {git.get('sub_path')}.")
    return folder, printed


def _settings(settings: dict[str, str], git: dict[str, Any], credentials: str | None) -> dict[str, str]:
    """Settings of git as variables of its environment: what stands on a command line others can see."""
    if git.get("plain"):
        settings = {**settings, "protocol.http.allow": "always"}
    if credentials:
        pair = credentials if ":" in credentials else f"x-access-token:{credentials}"
        header = f"Authorization: Basic {base64.b64encode(pair.encode()).decode()}"
        settings = {**settings, f"http.{git['repository']}.extraHeader": header}
    entries = enumerate(settings.items())
    return {"GIT_CONFIG_COUNT": str(len(settings))} | {
        name: value
        for index, (key, text) in entries
        for name, value in ((f"GIT_CONFIG_KEY_{index}", key), (f"GIT_CONFIG_VALUE_{index}", text))
    }


def has_backend(folder: Path) -> bool:
    """Whether the template says itself where its state is kept."""
    for path in folder.glob("*.tf"):
        text = _ASIDE.sub('""', path.read_text(errors="replace"))
        if any(_BACKEND.search(block) for block in _blocks(text)):
            return True
    documents = [json.loads(path.read_text(errors="replace")) for path in folder.glob("*.tf.json")]
    blocks = [each for document in documents for each in _listed(document.get("terraform"))]
    return any(name in block for block in blocks for name in ("backend", "cloud"))


def _blocks(text: str) -> list[str]:
    """Contents of the blocks ``terraform`` of a text without strings and comments."""
    blocks = []
    for match in re.finditer(r"\bterraform\s*\{", text):
        depth, end = 1, match.end()
        while end < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        blocks.append(text[match.end() : end])
    return blocks


def _listed(block: Any) -> list[Any]:
    return block if isinstance(block, list) else [block] if isinstance(block, dict) else []
