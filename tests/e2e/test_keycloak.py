"""The whole product with a real Keycloak in place of the stand-in: tokens, roles, tenants, a cluster's client."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from stockyard_client.sessions import DEFAULT_CLIENT

if TYPE_CHECKING:
    from local.serving import Served

pytestmark = [pytest.mark.keycloak, pytest.mark.timeout(1200)]


def test_tokens_of_a_real_realm_carry_roles_and_tenant(real: Served, body: Callable[..., dict[str, Any]]) -> None:
    assert [one["id"] for one in real.call("GET", "/v1/cloud-accounts").body["items"]] == [1]
    assert real.call("GET", "/v1/cloud-accounts", token="STOCKYARD_TOKEN_OTHER").body["items"] == []
    assert real.call("POST", "/v1/clusters", body(), token="STOCKYARD_TOKEN_VIEWER").status == 403
    assert real.call("GET", "/v1/clusters", token="garbage").status == 401


def test_what_people_show_to_clusters_is_no_token_of_the_api(real: Served) -> None:
    """Of a real realm: the ID token is for the client that people log in with, and the access token is not."""
    own, access = (claims(real.environment[name]) for name in ("STOCKYARD_CLUSTER_TOKEN", "STOCKYARD_TOKEN"))
    assert (own["aud"], own["typ"]) == (DEFAULT_CLIENT, "ID")
    audiences = access["aud"] if isinstance(access["aud"], list) else [access["aud"]]
    assert "stockyard" in audiences
    assert own["aud"] not in audiences
    assert own["preferred_username"] == access["preferred_username"]
    assert real.call("GET", "/v1/clusters", token="STOCKYARD_CLUSTER_TOKEN").status == 401


def claims(token: str) -> dict[str, Any]:
    """What a token says, unchecked."""
    part = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def test_a_cluster_lives_and_its_client_goes_with_it(real: Served, body: Callable[..., dict[str, Any]]) -> None:
    made = real.call("POST", "/v1/clusters", body(name="real")).body
    assert real.operation(made["operation_id"])["status"] == "succeeded"
    assert len(real.identity_clients(made["client_id"])) == 1
    assert real.call("POST", "/v1/clusters", body(name="real")).body["error_type"] == "ClusterNameInUse"
    gone = real.call("DELETE", f"/v1/clusters/{made['id']}").body
    assert real.operation(gone["id"])["status"] == "succeeded"
    assert real.identity_clients(made["client_id"]) == []
