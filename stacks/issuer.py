"""Whether the realm can be reached: API Gateway reads its discovery document in each deploy, and refuses the stack
when it cannot, after everything else was made."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from urllib.parse import urlsplit

from stacks.errors import ConfigError

SECONDS = 10
_PLACEHOLDERS = ("example.com", "example.net", "example.org", ".example", ".invalid", ".test", "localhost")


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:  # noqa: S310
        document: bytes = answer.read(1 << 20)
    return document


def check(issuer: str, read: Callable[[str], bytes] = _read) -> None:
    """Raises ``ConfigError`` for a placeholder, and for a realm that does not answer or names another issuer."""
    if (urlsplit(issuer).hostname or "").endswith(_PLACEHOLDERS):
        raise ConfigError(f"issuer: {issuer} is a placeholder; write your realm's into cdk.json, or pass -c issuer=...")
    url = f"{issuer}/.well-known/openid-configuration"
    try:
        named = json.loads(read(url)).get("issuer")
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"issuer: {url} cannot be read ({type(error).__name__}); API Gateway must reach it from the internet, in"
            " each deploy. -c check_issuer=false leaves this check out"
        ) from None
    if named != issuer:
        raise ConfigError(f"issuer: the realm calls itself {named!r}, not {issuer!r}; tokens carry its own name")
