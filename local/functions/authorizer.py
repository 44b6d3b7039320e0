"""The JWT authorizer of an HTTP API: signature, issuer, audience, times; claims flattened to text as AWS does."""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.hashes import SHA256

ABSENT = "no bearer token"
_WORDS = {"audience": "the token does not have a valid audience", "expired": "the token has expired"}


class Refused(Exception):
    """The token is not accepted: callers see ``Unauthorized``, and why in the header field ``WWW-Authenticate``."""

    @property
    def challenge(self) -> str:
        """Value of the header field ``WWW-Authenticate``. Of AWS's words only those for the audience and the end are
        known."""
        if str(self) == ABSENT:
            return "Bearer"
        words = _WORDS.get(str(self), "the token is not valid")
        return f'Bearer scope="" error="invalid_token" error_description="{words}"'


@dataclass(slots=True)
class JwtAuthorizer:
    """Checks tokens of one issuer, whose keys it finds by OpenID discovery and keeps."""

    issuer: str
    audience: tuple[str, ...]
    _keys: dict[str, RSAPublicKey] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def claims(self, header: str | None, now: float | None = None) -> dict[str, Any]:
        """The claims of the token in an ``Authorization`` header. Raises ``Refused``."""
        scheme, _, token = (header or "").strip().rpartition(" ")
        if not token or scheme.lower() not in {"", "bearer"}:
            raise Refused(ABSENT)
        try:
            head, body, signature = token.split(".")
            fields, claims = json.loads(_decoded(head)), json.loads(_decoded(body))
            signed, proof = f"{head}.{body}".encode(), _decoded(signature)
        except (ValueError, RecursionError):
            raise Refused("not a token") from None
        if not isinstance(fields, dict) or not isinstance(claims, dict) or fields.get("alg") != "RS256":
            raise Refused("not an RS256 token")
        try:
            self._key(str(fields.get("kid"))).verify(proof, signed, PKCS1v15(), SHA256())
        except InvalidSignature:
            raise Refused("signature") from None
        self._check(claims, time.time() if now is None else now)
        return claims

    def _check(self, claims: Mapping[str, Any], now: float) -> None:
        if claims.get("iss") != self.issuer:
            raise Refused("issuer")
        audience = claims.get("aud", claims.get("client_id"))
        if not set(audience if isinstance(audience, list) else [audience]) & set(self.audience):
            raise Refused("audience")
        expires = claims.get("exp")
        if not isinstance(expires, int | float) or expires <= now:
            raise Refused("expired")
        for begins in (claims.get("nbf", 0), claims.get("iat", 0)):
            if not isinstance(begins, int | float) or begins > now:
                raise Refused("not yet valid")

    def _key(self, kid: str) -> RSAPublicKey:
        with self._lock:
            if kid not in self._keys:
                self._keys = self._fetch()
            if kid not in self._keys:
                raise Refused("unknown key")
            return self._keys[kid]

    def _fetch(self) -> dict[str, RSAPublicKey]:
        configuration = _json(f"{self.issuer}/.well-known/openid-configuration")
        public_keys = {}
        for key in _json(configuration["jwks_uri"])["keys"]:
            if key.get("kty") == "RSA" and key.get("use", "sig") == "sig":
                numbers = (int.from_bytes(_decoded(key[part]), "big") for part in ("e", "n"))
                public_keys[key["kid"]] = RSAPublicNumbers(*numbers).public_key()
        return public_keys


def flattened(claims: Mapping[str, Any]) -> dict[str, str]:
    """Every claim as text, in the form that API Gateway prints nested values."""
    return {name: _text(value) for name, value in claims.items()}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(_text(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _json(url: str) -> Any:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 (the issuer is ours)
            return json.load(answer)
    except (OSError, ValueError) as error:
        raise Refused(f"the issuer's keys cannot be read: {error}") from None
