"""Tokens by which a claim's machine joins its cluster: kubeadm's bootstrap tokens, derived and never stored.

The same claim and attempt always give the same token, so that the agent that makes it and the machine that is told it
need no record between them. Without the installation's key nobody can guess one.
"""

from __future__ import annotations

import hashlib
import hmac

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID, _SECRET = 6, 16
"""Characters of kubeadm's format: 31 bits that name the token, 82 that are secret."""


def join_token(key: bytes, claim_id: str, attempt: int) -> str:
    """``abcdef.0123456789abcdef`` of one attempt of a claim. Raises ``ValueError`` for an empty key."""
    if not key:
        raise ValueError("a token needs the installation's key")
    message = f"join\x00{claim_id}\x00{attempt}".encode()
    number = int.from_bytes(hmac.new(key, message, hashlib.sha256).digest(), "big")
    text = ""
    for _ in range(_ID + _SECRET):
        number, rest = divmod(number, len(_ALPHABET))
        text += _ALPHABET[rest]
    return f"{text[:_ID]}.{text[_ID:]}"


def token_id(token: str) -> str:
    """The part of a token that is no secret."""
    return token.partition(".")[0]
