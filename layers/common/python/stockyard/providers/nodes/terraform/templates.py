"""The templates of a provider's document: which of them makes what, and as what a run gets it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.records import NodeProvider
from stockyard.domain.values import durations

INFRASTRUCTURE, KUBERNETES, ONLY = "infrastructure", "kubernetes", "environment"
"""Stages of an environment; the last is the one of the old form, which has a single template."""
TIMEOUT_SECONDS = 3600
"""Time-out of a template that says none."""


@dataclass(frozen=True, slots=True)
class Template:
    """One template of a document: written there, or the place of a repository."""

    inline: str | None
    git: Mapping[str, Any] | None
    timeout_seconds: int

    @property
    def mark(self) -> str:
        """Mark of what the document says: another text or place has another one."""
        return hashlib.sha256(json.dumps([self.inline, self.git], sort_keys=True).encode()).hexdigest()[:16]

    def source(self, commit: str | None) -> dict[str, Any]:
        """The part of a run's task by which it gets the template. ``commit`` is the one to take of a repository; None:
        the one that the document names, or the newest of its branch."""
        if self.git is None:
            return {"files": _archive({"main.tf": self.inline or ""})}
        fixed = commit or self.git.get("commit")
        place = {
            "repository": self.git["repository"],
            "commit": fixed,
            "ref": None if fixed else self._ref(),
            "sub_path": self.git.get("subPath"),
            "plain": self.git["repository"].startswith("http://"),
        }
        return {"git": place}

    def _ref(self) -> str:
        git = self.git or {}
        if git.get("tag"):
            return f"refs/tags/{git['tag']}"
        return f"refs/heads/{git['branch']}" if git.get("branch") else "HEAD"


def of_type(provider: NodeProvider, type_name: str) -> Template | None:
    """The template of a node type by its bare name: its own, or the provider's. None where the document has none."""
    block = block_of(provider)
    entry: Mapping[str, Any] = next((each for each in block.get("nodeTypes") or () if each["name"] == type_name), {})
    document = entry.get("nodeTemplate") or block.get("nodeTemplate")
    return None if document is None else _template(document)


def stages_of(provider: NodeProvider) -> list[tuple[str, Template]]:
    """The templates of an environment by their stages, in order; none where the document has no such template."""
    document = block_of(provider).get("nodeEnvironmentTemplate") or {}
    if document.get("inline") or document.get("git"):
        return [(ONLY, _template(document))]
    return [(stage, _template(document[stage])) for stage in (INFRASTRUCTURE, KUBERNETES) if document.get(stage)]


def repositories_of(provider: NodeProvider) -> list[Mapping[str, Any]]:
    """Every place of a repository that the document names."""
    block = block_of(provider)
    environment = block.get("nodeEnvironmentTemplate") or {}
    documents = [
        block.get("nodeTemplate"),
        *(entry.get("nodeTemplate") for entry in block.get("nodeTypes") or ()),
        environment,
        environment.get(INFRASTRUCTURE),
        environment.get(KUBERNETES),
    ]
    return [document["git"] for document in documents if document and document.get("git")]


def _template(document: Mapping[str, Any]) -> Template:
    timeout = durations.seconds(document.get("timeout") or "") or TIMEOUT_SECONDS
    return Template(document.get("inline"), document.get("git"), timeout)


def _archive(files: Mapping[str, str]) -> str:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in files.items():
            content = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return base64.b64encode(gzip.compress(buffer.getvalue(), mtime=0)).decode()
