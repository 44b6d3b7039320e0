"""The whole product with a real Keycloak in place of the stand-in: tokens, roles, tenants, a cluster's client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local.serving import NotServed, Served, serve

pytestmark = [pytest.mark.keycloak, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home: Path = tmp_path_factory.mktemp("keycloak") / "home"
    try:
        cloud = serve(home, "--keycloak", "--no-limits")
    except NotServed as reason:
        said = str(reason).strip().splitlines()[-1]
        if not said.startswith("Keycloak: "):
            raise
        pytest.skip(said)
    yield cloud
    assert cloud.stop() == 0


def test_tokens_of_a_real_realm_carry_roles_and_tenant(real: Served, body: Callable[..., dict[str, Any]]) -> None:
    assert [one["id"] for one in real.call("GET", "/v1/cloud-accounts").body["items"]] == [1]
    assert real.call("GET", "/v1/cloud-accounts", token="STOCKYARD_TOKEN_OTHER").body["items"] == []
    assert real.call("POST", "/v1/clusters", body(), token="STOCKYARD_TOKEN_VIEWER").status == 403
    assert real.call("GET", "/v1/clusters", token="garbage").status == 401


def test_a_cluster_lives_and_its_client_goes_with_it(real: Served, body: Callable[..., dict[str, Any]]) -> None:
    made = real.call("POST", "/v1/clusters", body(name="real")).body
    assert real.operation(made["operation_id"])["status"] == "succeeded"
    assert len(real.identity_clients(made["client_id"])) == 1
    assert real.call("POST", "/v1/clusters", body(name="real")).body["error_type"] == "ClusterNameInUse"
    gone = real.call("DELETE", f"/v1/clusters/{made['id']}").body
    assert real.operation(gone["id"])["status"] == "succeeded"
    assert real.identity_clients(made["client_id"]) == []
