"""Marks that tell the owner of things which Stockyard makes in a project: in the metadata of machines, in the text of
security groups.

Disks and networks have neither: their machine or their name tells.
"""

from __future__ import annotations

from collections.abc import Mapping

from stockyard.ports import Tagged

PREFIX = "stockyard:"
"""How every key begins that we set ourselves."""
INSTALLATION, TENANT, RESOURCE, GENERATION = (
    "stockyard:installation",
    "stockyard:tenant",
    "stockyard:resource",
    "stockyard:generation",
)


_OWNER = (INSTALLATION, TENANT, RESOURCE)


def marks(installation: str, tenant: str, resource_id: str, generation: int) -> dict[str, str]:
    """The metadata of a machine that is made for that record, in that generation."""
    return {INSTALLATION: installation, TENANT: tenant, RESOURCE: resource_id, GENERATION: str(generation)}


def text(marks: Mapping[str, str]) -> str:
    """The same as the description of a security group."""
    return " ".join(f"{key}={value}" for key, value in sorted(marks.items()))


def marks_of(text: str) -> dict[str, str]:
    """Marks in a description; empty for one that is not ours."""
    pairs = (part.partition("=") for part in text.split())
    found_marks = {key: value for key, _, value in pairs if key.startswith(PREFIX)}
    return found_marks if RESOURCE in found_marks else {}


def are_of_one(marks: Mapping[str, str], other_marks: Mapping[str, str]) -> bool:
    """Whether both are equal, or of the same record of the same tenant and installation, in whatever generation."""
    return dict(marks) == dict(other_marks) or all(
        marks.get(key) and marks[key] == other_marks.get(key) for key in _OWNER
    )


def tagged(
    kind: str, vendor_id: str, region: str, metadata: Mapping[str, str], created_at: str | None = None
) -> Tagged | None:
    """The thing as the sweep wants it; None for one that does not carry our marks."""
    if not all(metadata.get(key) for key in (INSTALLATION, TENANT, RESOURCE, GENERATION)):
        return None
    return Tagged(
        kind, vendor_id, region, metadata[TENANT], metadata[RESOURCE], metadata[GENERATION], created_at or None
    )
