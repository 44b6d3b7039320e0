"""``ETag``, ``If-Match`` and ``If-None-Match``: the record's version as a strong entity tag.

Where an answer also shows what other records say, such as the nodes of a pool, the version is followed by a dash and a
digest of that: a change of it is another tag, and ``If-Match`` compares the version alone.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from stockyard.domain.values.patterns import pattern
from stockyard.errors import PreconditionFailed, PreconditionRequired

PATTERN = '^"(0|[1-9][0-9]{0,14})(-[0-9a-f]{12})?"$'
"""What every tag looks like."""
_TAG = pattern(PATTERN[1:-1])


def tag(version: int, digest: str = "") -> str:
    """The entity tag of a version, with the ``digest_of`` what else the answer shows."""
    return f'"{version}-{digest}"' if digest else f'"{version}"'


def digest_of(part: Any) -> str:
    """12 hexadecimal digits that stand for a JSON value."""
    return hashlib.sha256(json.dumps(part, sort_keys=True, default=str).encode()).hexdigest()[:12]


def matches(if_none_match: str | None, current: str) -> bool:
    """Whether ``If-None-Match`` names the current tag, weak ones included, or any tag by ``*``."""
    tags = [text.strip().removeprefix("W/") for text in (if_none_match or "").split(",")]
    return current in tags or "*" in tags


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
