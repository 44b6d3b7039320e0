"""Secrets of templates by name: they lie in the account's own store, and the machine of a run reads them there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.records import NodeProvider
from stockyard.providers.nodes.terraform.stockyard_run.secrets import GIT_VARIABLE
from stockyard.providers.nodes.terraform.templates import Template

PROPERTY = "terraform.vcluster.com/credentials"
"""Property that names secrets whose fields become environment variables of OpenTofu."""
_BUNDLE = "STOCKYARD_CREDENTIALS_"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Secrets of a run. ``secret_variables`` is for its machine, ``task`` for its program, by the same names."""

    secret_variables: Mapping[str, str]
    task: Mapping[str, Any] = field(default_factory=dict)


def of_run(provider: NodeProvider, properties: Mapping[str, str], template: Template | None) -> Credentials:
    """The secrets that the property, the repository and its extra environment name."""
    written = properties.get(PROPERTY, provider.properties.get(PROPERTY, ""))
    names = [name for name in (part.strip() for part in written.split(",")) if name]
    bundles = {f"{_BUNDLE}{index}": name for index, name in enumerate(names)}
    git: Mapping[str, Any] = (template.git or {}) if template is not None else {}
    plain: dict[str, str] = {}
    inherited: dict[str, str] = {}
    for name, text, reference in _extra(git):
        if reference is None:
            plain[name] = text
        else:
            inherited[name] = _name_of(reference)
    own = {GIT_VARIABLE: _name_of(git["credentials"])} if git.get("credentials") else {}
    task = {"environment": plain, "inherited": sorted(inherited), "bundles": sorted(bundles)}
    return Credentials({**bundles, **inherited, **own}, task)


def _extra(git: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any] | None]]:
    for entry in git.get("extraEnv") or ():
        reference = ((entry.get("valueFrom") or {}).get("secretKeyRef")) or None
        yield str(entry["name"]), str(entry.get("value") or ""), reference


def _name_of(reference: Mapping[str, Any]) -> str:
    key = reference.get("key")
    return f"{reference['name']}:{key}" if key else str(reference["name"])
