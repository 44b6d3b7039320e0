"""Proofs of the handler: a secret that is read each time, and a token of AWS that the realm takes for a client."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from local.identity.federation import ALIAS, AUTHENTICATOR, SUBJECT, TrustedIssuer
from local.identity.server import IdentityServer
from stockyard_stack_resources.api import Login
from stockyard_stack_resources.errors import StackResourceError
from stockyard_stack_resources.proofs import by_role, by_secret

AWS = "https://0a1b2c3d.tokens.sts.global.api.aws"
ROLE = "arn:aws:iam::222222222222:role/stockyard-stacks"


class Sts:
    """AWS's token service for one role, with the key of its account."""

    def __init__(self, key: Any, role: str = ROLE) -> None:
        self.key, self.role = key, role

    def get_web_identity_token(self, **request: Any) -> dict[str, Any]:
        assert (request["SigningAlgorithm"], request["DurationSeconds"]) == ("RS256", 300)
        (audience,) = request["Audience"]
        now = int(time.time())
        claims = {"iss": AWS, "sub": self.role, "aud": audience, "iat": now, "exp": now + 300, "jti": str(uuid.uuid4())}
        return {"WebIdentityToken": self.key.sign(claims)}


def test_a_secret_is_read_for_each_token() -> None:
    secrets = {"arn": json.dumps({"client_id": "a", "client_secret": "b"})}
    proof = by_secret(secrets.__getitem__, "arn")
    assert proof() == {"client_id": "a", "client_secret": "b"}
    secrets["arn"] = json.dumps({"client_id": "a", "client_secret": "c"})
    assert proof()["client_secret"] == "c"


@pytest.fixture
def identity() -> Iterator[IdentityServer]:
    server = IdentityServer()
    server.start()
    yield server
    server.stop()


def test_the_realm_takes_the_token_of_a_role_for_its_client_and_no_other_role(identity: IdentityServer) -> None:
    server, issuer = identity, identity.issuer
    key = type(server.realm._key)()
    server.realm.federation.issuers.append(TrustedIssuer("aws", AWS, key.verified))
    proof = {ALIAS: "aws", SUBJECT: ROLE}
    client = {"clientId": "platform-stacks", "serviceAccountsEnabled": True, "standardFlowEnabled": False}
    server.realm.create({**client, "clientAuthenticatorType": AUTHENTICATOR, "attributes": proof})
    token = Login(issuer, by_role(Sts(key), f"{issuer}/")).token()
    claims = server.realm._key.verified(token)
    assert claims is not None
    assert claims["azp"] == "platform-stacks"
    for sts in (Sts(key, f"{ROLE}-other"), Sts(type(key)())):
        with pytest.raises(StackResourceError, match="refuses the role of the handler: invalid_client"):
            Login(issuer, by_role(sts, issuer)).token()
