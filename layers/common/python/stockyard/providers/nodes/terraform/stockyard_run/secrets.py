"""Secrets of the account's own store, which the machine has read into the environment of this program."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from .api import RunError

GIT_VARIABLE = "STOCKYARD_GIT_CREDENTIALS"


@dataclass(frozen=True)
class Secrets:
    """Secrets of a run: those of git, and variables of OpenTofu."""

    git: str | None
    variables: dict[str, str] = field(repr=False)

    @property
    def hidden(self) -> list[str]:
        """Values that the log may not show."""
        return [*([self.git] if self.git else []), *self.variables.values()]


def secrets_of(task: dict[str, Any], environ: dict[str, str]) -> Secrets:
    """The secrets that the task names. One that is several variables is an object of JSON."""
    variables = {name: environ[name] for name in task.get("inherited", ()) if name in environ}
    for name in task.get("bundles", ()):
        try:
            members = dict(json.loads(environ[name]))
        except (KeyError, TypeError, ValueError):
            raise RunError("A secret with credentials is no object of JSON.") from None
        variables |= {str(key): str(value) for key, value in members.items()}
    return Secrets(environ.get(GIT_VARIABLE), variables)
