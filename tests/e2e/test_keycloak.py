"""The whole product with a real Keycloak instead of the local identity server: tokens, roles, tenants, clients."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from stockyard_client.sessions import DEFAULT_CLIENT

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = [pytest.mark.keycloak, pytest.mark.timeout(1200)]


def test_tokens_of_a_real_realm_carry_roles_and_tenant(real: Served, body: Callable[..., dict[str, Any]]) -> None:
    assert [account["id"] for account in real.call("GET", "/v1/cloud-accounts").body["items"]] == [1]
    assert real.call("GET", "/v1/cloud-accounts", token="STOCKYARD_TOKEN_OTHER").body["items"] == []
    assert real.call("POST", "/v1/clusters", body(), token="STOCKYARD_TOKEN_VIEWER").status == 403
    assert real.call("GET", "/v1/clusters", token="garbage").status == 401


def test_the_api_refuses_tokens_that_people_use_for_clusters(real: Served) -> None:
    """In a real realm the ID token is for the client that people log in with, and the access token is not."""
    own, access = (claims(real.environment[name]) for name in ("STOCKYARD_TOKEN_ID", "STOCKYARD_TOKEN"))
    assert (own["aud"], own["typ"]) == (DEFAULT_CLIENT, "ID")
    audiences = access["aud"] if isinstance(access["aud"], list) else [access["aud"]]
    assert "stockyard" in audiences
    assert own["aud"] not in audiences
    assert own["preferred_username"] == access["preferred_username"]
    assert real.call("GET", "/v1/clusters", token="STOCKYARD_TOKEN_ID").status == 401


def claims(token: str) -> dict[str, Any]:
    """The claims of a token. The signature is not checked."""
    part = token.split(".")[1]
    claims_of_token: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims_of_token


def test_the_client_of_a_cluster_is_created_and_deleted_with_it(
    real: Served, body: Callable[..., dict[str, Any]]
) -> None:
    created = real.call("POST", "/v1/clusters", body(name="real")).body
    assert real.operation(created["operation_id"])["status"] == "succeeded"
    assert len(real.identity_clients(created["client_id"])) == 1
    assert real.call("POST", "/v1/clusters", body(name="real")).body["error_type"] == "ClusterNameInUse"
    deletion = real.call("DELETE", f"/v1/clusters/{created['id']}").body
    assert real.operation(deletion["id"])["status"] == "succeeded"
    assert real.identity_clients(created["client_id"]) == []
