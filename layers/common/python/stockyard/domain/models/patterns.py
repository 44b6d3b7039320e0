"""Patterns of texts, each with the words that say what it wants."""

from __future__ import annotations

LABEL = r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
LABEL_VALUE = r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$"
CIDR = r"^([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}$"
NAME = r"^[A-Za-z0-9]([A-Za-z0-9-]{0,126}[A-Za-z0-9])?$"
DNS_LABEL = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
LOWER_NAME = r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"
ALLOWED_TYPE = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.(\*|[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?)$"
EVENT_ACCOUNT = r"^[0-9]{12}$"
MINOR = r"^[0-9]{1,3}\.[0-9]{1,3}$"
DURATION = r"^([0-9]{1,9}(s|m|h)){1,3}$"
DURATION_OR_NEVER = r"^(([0-9]{1,9}(s|m|h)){1,3}|Never)$"
PLAIN_TEXT = r"^[^\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]*$"
"""No character that steers a terminal, in which texts for people are shown."""

WORDS = {
    LABEL: "1 to 63 letters, digits, - _ . starting and ending with a letter or digit",
    NAME: "1 to 128 letters, digits and hyphens, starting and ending with a letter or digit",
    DNS_LABEL: "1 to 63 lower-case letters, digits and hyphens, starting and ending with a letter or digit",
    LOWER_NAME: "1 to 63 lower-case letters, digits and hyphens, a letter first and no hyphen last",
    ALLOWED_TYPE: "the canonical name of a node type, provider.type, or provider.* for all of a provider",
    EVENT_ACCOUNT: "an account of 12 digits",
    MINOR: "a minor of Kubernetes such as 1.36",
    PLAIN_TEXT: "text without control characters but tabs and line ends, and without marks of direction",
    DURATION: "a duration such as 30s, 5m or 1h30m",
    DURATION_OR_NEVER: "a duration such as 30s, 5m or 1h30m, or Never",
}
"""What a text must be, by its pattern."""


def worded(pattern: str, words: str) -> str:
    """The pattern, with words for refusals: for patterns that one provider's documents have alone. Raises
    ``ValueError`` where the same pattern has other words already, which all its fields would lose."""
    if WORDS.setdefault(pattern, words) != words:
        raise ValueError(f"the pattern {pattern} has words already: {WORDS[pattern]}")
    return pattern
