"""Proofs of who the handler is: the secret of a client of the realm, or a token that AWS signs for its role."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Proof = Callable[[], Mapping[str, str]]
"""Fields of the token request that prove a client (RFC 6749, 4.4, and RFC 7523, 2.2)."""
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_SECONDS = 300


def by_secret(read_secret: Callable[[str], str], arn: str) -> Proof:
    """Proof by the secret ``arn`` in Secrets Manager, which is read each time, so that a new one is used at once."""

    def proof() -> Mapping[str, str]:
        client = json.loads(read_secret(arn))
        return {"client_id": str(client["client_id"]), "client_secret": str(client["client_secret"])}

    return proof


def by_role(sts: Any, issuer: str) -> Proof:
    """Proof by a token of AWS, whose subject is the role of this function and whose audience is the realm alone."""

    def proof() -> Mapping[str, str]:
        token = sts.get_web_identity_token(
            Audience=[issuer.rstrip("/")], SigningAlgorithm="RS256", DurationSeconds=_SECONDS
        )
        return {"client_assertion_type": _ASSERTION, "client_assertion": str(token["WebIdentityToken"])}

    return proof
