"""The templates of a provider's document: which of them makes what, and as what a run gets it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.records import NodeProvider
from stockyard.domain.values import durations
from stockyard.ports.node_work import TemplateSource

INFRASTRUCTURE, KUBERNETES, ONLY = "infrastructure", "kubernetes", "environment"
"""Stages of an environment; the last is the one of the old form, which has a single template."""
INTERVAL_SECONDS, SHORTEST_INTERVAL_SECONDS = 300, 60
"""Between two looks at a branch where the document says nothing, and at least."""
_CREDENTIALS = "its credentials stay in your account, where runs alone read them."
TIMEOUT_SECONDS = 3600
"""Time-out of a template that says none."""


@dataclass(frozen=True, slots=True)
class Template:
    """One template of a document: written there, or one in a repository."""

    inline: str | None
    git: Mapping[str, Any] | None
    timeout_seconds: int
    head: str | None = None
    """Commit that its source in a repository was at when somebody last looked; None where nobody does or it is not
    known."""

    @property
    def fingerprint(self) -> str:
        """Fingerprint of what the document says and where a branch is: another text, source or commit has another."""
        parts = [self.inline, self.git, *([self.head] if self.head else [])]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def stage_fingerprint(self, properties: Mapping[str, str]) -> str:
        """Fingerprint of a stage of an environment: of the text or the source, and of the properties given."""
        parts = [self.inline, self.git, dict(properties)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def moving_source(self) -> TemplateSource | None:
        """The branch or the tag that it comes from; None of a template that stands still."""
        if self.git is None or self.git.get("commit"):
            return None
        interval = durations.seconds(self.git.get("fetchInterval") or "") or INTERVAL_SECONDS
        short = self._ref().removeprefix("refs/heads/").removeprefix("refs/tags/")
        return TemplateSource(
            f"{self.git['repository']} {self._ref()}",
            f"{short} of {self.git['repository']}",
            max(interval, SHORTEST_INTERVAL_SECONDS),
            _CREDENTIALS if self.git.get("credentials") else None,
        )

    def source(self) -> dict[str, Any]:
        """The part of a run's task by which it gets the template: of a repository at the commit that the document
        names, else at the one that is known, else the newest of its branch."""
        if self.git is None:
            return {"files": _archive({"main.tf": self.inline or ""})}
        fixed = self.git.get("commit") or self.head
        git_source = {
            "repository": self.git["repository"],
            "commit": fixed,
            "ref": None if fixed else self._ref(),
            "sub_path": self.git.get("subPath"),
            "plain": self.git["repository"].startswith("http://"),
        }
        return {"git": git_source}

    def document(self) -> dict[str, Any]:
        """The template for who has the right to read the provider: its text, or its source in a repository without the
        name of the credentials. The commit is the one that is known."""
        if self.git is None:
            return {"inline": self.inline or ""}
        git = {key: text for key, text in self.git.items() if key not in ("credentials", "fetchInterval")}
        return {"git": {**git, **({"commit": self.head} if self.head and not git.get("commit") else {})}}

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
    return None if document is None else _template(provider, document)


def stages_of(provider: NodeProvider) -> list[tuple[str, Template]]:
    """The templates of an environment by their stages, in order; none where the document has no such template."""
    document = block_of(provider).get("nodeEnvironmentTemplate") or {}
    if document.get("inline") or document.get("git"):
        return [(ONLY, _template(provider, document))]
    stages = (INFRASTRUCTURE, KUBERNETES)
    return [(stage, _template(provider, document[stage])) for stage in stages if document.get(stage)]


def all_of(provider: NodeProvider) -> list[Template]:
    """Every template of the document."""
    return [*of_nodes(provider), *(template for _, template in stages_of(provider))]


def of_nodes(provider: NodeProvider) -> list[Template]:
    """The templates that node types of the document are made from."""
    names = [entry["name"] for entry in block_of(provider).get("nodeTypes") or ()]
    return [template for name in names if (template := of_type(provider, name)) is not None]


def sources_of(provider: NodeProvider) -> list[TemplateSource]:
    """Every branch and tag that templates of the document come from, each once; the shortest interval counts."""
    sources: dict[str, TemplateSource] = {}
    for template in all_of(provider):
        source = template.moving_source
        if source is not None:
            other = sources.get(source.key, source)
            sources[source.key] = min(source, other, key=lambda each: (each.blocker is not None, each.interval_seconds))
    return list(sources.values())


def reference_of(source: TemplateSource) -> tuple[str, str]:
    """The repository of a source, and the reference there."""
    repository, _, reference = source.key.rpartition(" ")
    return repository, reference


def _template(provider: NodeProvider, document: Mapping[str, Any]) -> Template:
    timeout = durations.seconds(document.get("timeout") or "") or TIMEOUT_SECONDS
    template = Template(document.get("inline"), document.get("git"), timeout)
    head = provider.template_revisions.get(template.moving_source.key) if template.moving_source is not None else None
    return replace(template, head=head)


def _archive(files: Mapping[str, str]) -> str:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in files.items():
            content = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return base64.b64encode(gzip.compress(buffer.getvalue(), mtime=0)).decode()
