"""``ETag`` and ``If-Match``: the record's version as a strong entity tag."""

from __future__ import annotations

import re

from stockyard.errors import PreconditionFailed, PreconditionRequired

PATTERN = '^"(0|[1-9][0-9]{0,14})"$'
"""What every tag looks like."""
_TAG = re.compile(PATTERN[1:-1])


def tag(version: int) -> str:
    """The entity tag of a version."""
    return f'"{version}"'


def version_of(if_match: str | None) -> int:
    """The version that ``If-Match`` names. ``PreconditionRequired`` without one, or for ``*``, which names none.

    What can be no tag of ours (a weak one, a list, other text) matches nothing: ``PreconditionFailed``.
    """
    if if_match is None or not if_match.strip():
        raise PreconditionRequired("Send the ETag you last read as If-Match.")
    if if_match.strip() == "*":
        raise PreconditionRequired("If-Match must name the ETag you last read, not any.")
    match = _TAG.fullmatch(if_match.strip())
    if match is None:
        raise PreconditionFailed("If-Match is no ETag of this resource.")
    return int(match[1])
