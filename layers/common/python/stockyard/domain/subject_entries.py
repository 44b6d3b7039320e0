"""Entries of history by the subject that it is about, so that a list of one subject reads nothing of others.

A record gets its entry with its first write. Those that an earlier release has written get theirs from the sweep, which
also says up to where all have one: only there may a list go by entries (``operations/sweep/subject_entries.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard.domain.records import AuditRecord, Event
from stockyard.domain.values import ids

PREFIXES: Mapping[type[Any], str] = {Event: ids.EVENT, AuditRecord: ids.AUDIT}
"""Kinds of records with entries, and the prefix of their ids. Nothing of them ever changes: an index that has whole
records would write a changed one again."""

BOUNDS = "entries/"
"""How the ids of the facts begin that say up to where all records of a kind have entries."""


def bound_fact(kind: type[Any]) -> str:
    """The id of the tenant's fact whose value is a text below which all records of the kind have entries, by their ids.
    The text is no id, so that each record is on one side of it."""
    return f"{BOUNDS}{kind.__name__}"
