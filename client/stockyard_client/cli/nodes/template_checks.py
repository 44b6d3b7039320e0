"""Checks of the templates in a document of kind ``terraform`` by the OpenTofu of this machine, as ``tofu validate``."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

INIT_SECONDS, VALIDATE_SECONDS, FETCH_SECONDS = 300, 120, 120
_NOT_THERE = frozenset({"Module not installed", "Missing required provider", "Missing required providers"})
"""What OpenTofu says of a template whose plug-ins and modules were not fetched; nothing of the template itself."""

Verdict = Literal["valid", "invalid", "parsed", "unchecked"]


@dataclass(frozen=True, slots=True)
class TemplateFault:
    """Fault that OpenTofu finds in a template. ``file`` and ``line`` are None where it names no location."""

    file: str | None
    line: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class TemplateCheck:
    """Result for one template. ``parsed``: its plug-ins or modules could not be fetched, so it was not validated;
    ``unchecked``: nothing of it was looked at. ``detail`` says why, for people."""

    pointer: str
    verdict: Verdict
    detail: str
    faults: tuple[TemplateFault, ...] = ()

    def document(self) -> dict[str, Any]:
        """The result as JSON."""
        return asdict(self)


def templates_of(block: Mapping[str, Any], at: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every template of the block with its JSON pointer; ``at`` is that of the block. The block was accepted by the
    API, so its form is right."""
    environment = block.get("nodeEnvironmentTemplate") or {}
    stages = [
        (f"/nodeEnvironmentTemplate/{stage}", environment.get(stage)) for stage in ("infrastructure", "kubernetes")
    ]
    types = enumerate(block.get("nodeTypes") or ())
    templates = [
        ("/nodeTemplate", block.get("nodeTemplate")),
        *((f"/nodeTypes/{index}/nodeTemplate", entry.get("nodeTemplate")) for index, entry in types),
        ("/nodeEnvironmentTemplate", environment if environment.get("inline") or environment.get("git") else None),
        *stages,
    ]
    for pointer, template in templates:
        if template:
            yield f"{at}{pointer}", template


class LocalTofu:
    """OpenTofu on this machine. It reads a template, and fetches its plug-ins and modules; it makes nothing."""

    def __init__(self, program: str, environment: Mapping[str, str]) -> None:
        hidden = ("STOCKYARD_", "TF_CLI_ARGS", "TF_WORKSPACE", "TF_DATA_DIR")
        own = {name: text for name, text in environment.items() if not name.startswith(hidden)}
        self._program = program
        self._environment = {**own, "TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}

    def check(self, pointer: str, template: Mapping[str, Any]) -> TemplateCheck:
        """Result for the template at that pointer of the document."""
        with tempfile.TemporaryDirectory(prefix="stockyard-validate-") as name:
            folder = self.folder_of(template, Path(name))
            return self._checked(pointer, folder) if isinstance(folder, Path) else _unchecked(pointer, folder)

    def folder_of(self, template: Mapping[str, Any], room: Path) -> Path | str:
        """Folder below ``room`` with the files of the template, or why there is none."""
        git = template.get("git")
        if git:
            return self._fetched(git, room)
        (room / "main.tf").write_text(str(template.get("inline") or ""), encoding="utf-8")
        return room

    def run(self, folder: Path, seconds: int, *arguments: str) -> tuple[bool, str]:
        """Whether OpenTofu succeeded in the folder with the arguments, and what it printed."""
        return _call((self._program, *arguments), folder, self._environment, seconds)

    def _checked(self, pointer: str, folder: Path) -> TemplateCheck:
        initialized, printed = self.run(folder, INIT_SECONDS, "init", "-backend=false", "-input=false", "-no-color")
        _, answer = self.run(folder, VALIDATE_SECONDS, "validate", "-json", "-no-color")
        try:
            diagnostics = json.loads(answer[answer.index("{") :]).get("diagnostics") or []
        except ValueError:
            return TemplateCheck(pointer, "unchecked", f"{self._program} does not answer as OpenTofu does.")
        errors = [each for each in diagnostics if each.get("severity") == "error"]
        faults = tuple(fault_of(each) for each in errors if initialized or each.get("summary") not in _NOT_THERE)
        if faults:
            return TemplateCheck(pointer, "invalid", "OpenTofu refuses the template.", faults)
        if initialized:
            return TemplateCheck(pointer, "valid", "OpenTofu validated the template.")
        text = "The template was parsed, and not validated: its plug-ins or modules could not be fetched here."
        return TemplateCheck(pointer, "parsed", f"{text} {reason_of(printed)}".strip())

    def _fetched(self, git: Mapping[str, Any], room: Path) -> Path | str:
        """Folder of the template in a copy of its repository, or why there is none. The git of this machine asks with
        the credentials that it has."""
        clone, repository = room / "clone", str(git["repository"])
        tag, branch = (f"refs/{kind}/{git[key]}" if git.get(key) else None for kind, key in _REFS)
        revision = git.get("commit") or tag or branch or "HEAD"
        allowed = (
            "protocol.https.allow=always",
            "protocol.http.allow=" + ("always" if _is_local(repository) else "never"),
        )
        settings = [part for setting in ("protocol.allow=never", *allowed) for part in ("-c", setting)]
        steps = (
            ("init", "--quiet", str(clone)),
            ("-C", str(clone), "fetch", "--quiet", "--depth", "1", "--no-tags", "--", repository, str(revision)),
            ("-C", str(clone), "checkout", "--quiet", "--detach", "FETCH_HEAD"),
        )
        environment = {**self._environment, "GIT_TERMINAL_PROMPT": "0"}
        for step in steps:
            done, printed = _call(("git", *settings, *step), room, environment, FETCH_SECONDS)
            if not done:
                return f"The repository could not be fetched here at {revision}: {printed.strip() or 'git is not here'}"
        folder = (clone / str(git.get("subPath") or "")).resolve()
        if not folder.is_relative_to(clone.resolve()) or not folder.is_dir():
            return f"The repository has no folder {git.get('subPath')} at {revision}."
        return folder


def local_tofu(environment: Mapping[str, str], program: str | None) -> LocalTofu | None:
    """OpenTofu by the program that is named, else the one on the path; None where there is none."""
    found_program = program or shutil.which("tofu", path=environment.get("PATH"))
    return LocalTofu(found_program, environment) if found_program is not None else None


def _unchecked(pointer: str, reason: str) -> TemplateCheck:
    return TemplateCheck(pointer, "unchecked", reason)


_REFS = (("tags", "tag"), ("heads", "branch"))


def _is_local(repository: str) -> bool:
    return repository.startswith("http://127.0.0.1:")


def _call(command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: int) -> tuple[bool, str]:
    """Whether the command succeeded, and what it printed."""
    try:
        done = subprocess.run(  # noqa: S603 - a program of the person's own
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except OSError:
        return False, ""
    except subprocess.TimeoutExpired:
        return False, f"It took longer than {seconds} seconds."
    return done.returncode == 0, f"{done.stdout}\n{done.stderr}" if done.returncode else done.stdout


def fault_of(diagnostic: Mapping[str, Any]) -> TemplateFault:
    """A fault from what OpenTofu says as JSON."""
    source_range = diagnostic.get("range") or {}
    line = (source_range.get("start") or {}).get("line")
    summary, more = str(diagnostic.get("summary") or "").strip(), str(diagnostic.get("detail") or "").strip()
    detail = f"{summary}: {' '.join(more.split())}" if more else summary
    return TemplateFault(source_range.get("filename") or None, int(line) if line else None, detail)


def reason_of(printed: str) -> str:
    """The paragraph after OpenTofu's first error, on one line."""
    paragraph = printed.partition("Error: ")[2]
    lines = [line.lstrip("│╷╵ ").strip() for line in paragraph.splitlines()]
    return " ".join(" ".join(lines).split())[:500]
