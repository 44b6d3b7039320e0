"""The signing key of the Keycloak stand-in: JSON Web Tokens with RS256, and the key set that proves them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa


class SigningKey:
    """A fresh RSA key of 2048 bits."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(65537, 2048)
        numbers = self._key.public_key().public_numbers()
        self._modulus, self._exponent = _number(numbers.n), _number(numbers.e)
        self.key_id = _b64(hashlib.sha256(self._modulus).digest())

    def certificates(self) -> dict[str, Any]:
        """The JSON Web Key Set."""
        key = {"kid": self.key_id, "kty": "RSA", "alg": "RS256", "use": "sig"}
        return {"keys": [{**key, "n": _b64(self._modulus), "e": _b64(self._exponent)}]}

    def sign(self, claims: Mapping[str, Any]) -> str:
        """A JWT of exactly these claims."""
        header = {"alg": "RS256", "typ": "JWT", "kid": self.key_id}
        text = ".".join(_b64(json.dumps(part, separators=(",", ":")).encode()) for part in (header, dict(claims)))
        return f"{text}.{_b64(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def verified(self, token: str) -> dict[str, Any] | None:
        """The claims of a token signed with this key, expired or not; None for any other text."""
        head, _, signature = token.rpartition(".")
        try:
            self._key.public_key().verify(_unb64(signature), head.encode(), padding.PKCS1v15(), hashes.SHA256())
            claims = json.loads(_unb64(head.split(".")[1]))
        except (InvalidSignature, ValueError, IndexError):
            return None
        return claims if isinstance(claims, dict) else None


def _number(value: int) -> bytes:
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
