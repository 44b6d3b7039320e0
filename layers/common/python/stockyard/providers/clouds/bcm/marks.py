"""Marks on a device. The owner's word in its notes lets Stockyard install it; a line of ours below says for which
claim, and how far that is.

The line names the device too: a device that was copied from another has the other's line, which says nothing of it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args
from urllib.parse import quote, unquote

MAY_INSTALL = "stockyard-may-install"
"""The word that the owner writes into the notes of a node that Stockyard may wipe, install and switch."""
_OWNER = re.compile(rf"(?<![\w-]){MAY_INSTALL}(?![\w-])")
_KEYS = ("installation", "tenant", "resource", "generation", "device", "stage", "at", "tries", "before")
_LINE = re.compile(r"\nstockyard:(?: [a-z]+=[A-Za-z0-9._~%+/=-]*)+", re.ASCII)
Stage = Literal["install", "installing", "run", "wipe", "wiping"]
"""``install``: its installation is ordered, and ``installing``: it was reset for that, or is about to be. ``run``: the
installer has begun. ``wipe`` and ``wiping``: the same of the installation that wipes it."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The line of ours on one device. ``at`` is when it was last reset for its stage (RFC 3339), ``tries`` how often.
    ``before`` is how an install mode is written there that nobody has set."""

    installation: str
    tenant: str
    resource: str
    generation: str
    device: str
    stage: Stage
    at: str = "-"
    tries: int = 0
    before: Any = None

    def line(self) -> str:
        """The line as it stands in the notes, behind the owner's text."""
        before = base64.b64encode(json.dumps(self.before).encode()).decode()
        values = {**{key: str(getattr(self, key)) for key in _KEYS}, "before": before}
        return "\nstockyard:" + "".join(f" {key}={quote(values[key], safe='/=+')}" for key in _KEYS)

    def to(self, stage: Stage) -> Marks:
        """The same at another stage."""
        return replace(self, stage=stage, at="-", tries=0)

    def reset_at(self, stage: Stage, moment: str) -> Marks:
        """The same with a reset for that stage."""
        return replace(self, stage=stage, at=moment, tries=self.tries + 1 if stage == self.stage else 1)

    def is_of(self, installation: str, tenant: str, resource: str) -> bool:
        """Whether they are of that record."""
        return (self.installation, self.tenant, self.resource) == (installation, tenant, resource)


def may_install(notes: str) -> bool:
    """Whether the owner's own text has the word."""
    return _OWNER.search(without_lines(notes)) is not None


def has_line(notes: str) -> bool:
    """Whether there is a line of a Stockyard in the notes, readable or not, of whatever device."""
    return "\nstockyard:" in f"\n{notes}"


def without_lines(notes: str) -> str:
    """The notes as they are without lines of ours; what people wrote beside them stays."""
    return _LINE.sub("", notes)


def marks_of(notes: str, device: str) -> Marks | None:
    """The marks in the notes of the device with that uuid. None where there is not exactly one line, where it cannot be
    read, or where it is another device's."""
    lines = _LINE.findall(notes)
    if len(lines) != 1 or notes.count("\nstockyard:") != 1:
        return None
    pairs = (part.partition("=") for part in lines[0].split()[1:])
    fields = {key: unquote(value) for key, _, value in pairs}
    if set(fields) != set(_KEYS) or not all(fields.values()) or fields["stage"] not in get_args(Stage):
        return None
    try:
        before = json.loads(base64.b64decode(fields["before"], validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return None
    tries = int(fields["tries"]) if fields["tries"].isdecimal() else 1
    found_marks = Marks(**{**fields, "before": before, "tries": tries})
    return found_marks if found_marks.device == device else None


def texts(fields: Mapping[str, Any], name: str) -> str:
    """A text of an entity; empty where the entity has something else there."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""
