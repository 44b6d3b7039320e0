"""What the parts of a cluster on EKS are called."""

from __future__ import annotations

import hashlib

LONGEST = 63
_DIGITS = 5


def child_name(*parts: str) -> str:
    """The parts joined by hyphens, with the beginning of the SHA-256 of that text, in at most 63 characters: a name
    that is the same each time, and another one for other parts, however long they are.

    Modelplane names what belongs to a resource by this rule.
    """
    text = "-".join(parts)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{text[: LONGEST - _DIGITS - 1]}-{digest}"
