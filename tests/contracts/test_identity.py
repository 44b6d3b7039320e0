"""``ports.Identity`` on the in-memory one, on the adapter over the stand-in, and over a real Keycloak 26."""

from __future__ import annotations

import json
import uuid

import pytest

from stockyard.adapters.keycloak import Keycloak
from stockyard.errors import PermissionDenied, VendorConflict, VendorNotFound
from stockyard.ports import Identity
from tests.harness.worlds.memory import MemoryIdentity

SECRET = "s" * 24


@pytest.fixture(params=["memory", "stand-in", pytest.param("keycloak", marks=pytest.mark.keycloak)])
def identity(request: pytest.FixtureRequest, doors) -> Identity:
    return MemoryIdentity() if request.param == "memory" else doors(request.param).adapter()


@pytest.fixture
def neighbour(request: pytest.FixtureRequest, identity: Identity, doors) -> Identity:
    """Another installation in the same realm."""
    if isinstance(identity, MemoryIdentity):
        return MemoryIdentity("inst-2", realm=identity)
    return doors(request.node.callspec.params["identity"]).adapter(installation="inst-2")


def fresh() -> str:
    return f"my-k8s-{uuid.uuid4().hex[:12]}"


# --- the port --------------------------------------------------------------------------------------------------------


def test_created_client_has_owner_and_secret(identity: Identity):
    name = fresh()
    client = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    assert client.client_id == name
    assert client.owner == "clu_1"
    assert identity.find_client(name) == client
    assert identity.client_secret(name) == SECRET


def test_create_client_again_for_same_owner_adopts_and_resets_secret(identity: Identity):
    name = fresh()
    first = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    second = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret="t" * 32)
    assert second == first
    assert identity.client_secret(name) == "t" * 32
    assert identity.find_client(name) == first


def test_create_client_of_another_owner_conflicts(identity: Identity):
    name = fresh()
    first = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    with pytest.raises(VendorConflict):
        identity.create_client(client_id=name, owner="clu_2", tenant="globex", secret="t" * 32)
    assert identity.find_client(name) == first
    assert identity.client_secret(name) == SECRET


def test_delete_client_requires_owner(identity: Identity):
    name = fresh()
    identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    assert identity.delete_client(client_id=name, owner="clu_2") is False
    assert identity.delete_client(client_id=name, owner="") is False
    assert identity.find_client(name) is not None
    assert identity.delete_client(client_id=name, owner="clu_1") is True
    assert identity.find_client(name) is None
    assert identity.delete_client(client_id=name, owner="clu_1") is False


def test_client_of_another_installation_is_foreign(identity: Identity, neighbour: Identity):
    name = fresh()
    neighbours_client = neighbour.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    assert neighbour.find_client(name) == neighbours_client
    assert name not in {client.client_id for client in identity.owned_clients()}
    client = identity.find_client(name)
    assert client is not None
    assert (client.uuid, client.owner) == (neighbours_client.uuid, "")
    with pytest.raises(VendorConflict):
        identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret="t" * 32)
    assert identity.delete_client(client_id=name, owner="clu_1") is False
    assert identity.delete_client(client_id=name, owner="clu_1", uuid=neighbours_client.uuid) is False
    assert neighbour.client_secret(name) == SECRET
    assert name in {client.client_id for client in neighbour.owned_clients()}


def test_delete_client_with_uuid_deletes_only_that_client(identity: Identity):
    name = fresh()
    first = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    assert identity.delete_client(client_id=name, owner="clu_1", uuid=first.uuid) is True
    second = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    assert identity.delete_client(client_id=name, owner="clu_1", uuid=first.uuid) is False
    assert identity.find_client(name) == second


def test_unknown_client_is_none_and_its_secret_not_found(identity: Identity):
    name = fresh()
    assert identity.find_client(name) is None
    with pytest.raises(VendorNotFound):
        identity.client_secret(name)


def test_client_id_is_matched_exactly(identity: Identity):
    name = fresh()
    identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    assert identity.find_client(name[:-1]) is None
    assert identity.find_client(name.upper()) is None


def test_owned_clients_excludes_foreign_clients(identity: Identity):
    owner = f"clu_{uuid.uuid4().hex}"
    names = {fresh() for _ in range(3)}
    for name in names:
        identity.create_client(client_id=name, owner=owner, tenant="acme", secret=SECRET)
    identity.service_token()
    clients = identity.owned_clients()
    assert {client.client_id for client in clients if client.owner == owner} == names
    assert all(client.owner.startswith("clu_") for client in clients)


# --- the adapter -----------------------------------------------------------------------------------------------------


def test_owned_clients_reads_every_page(door, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("stockyard.adapters.keycloak._PAGE", 2)
    identity = door.adapter()
    names = {fresh() for _ in range(5)}
    for name in names:
        identity.create_client(client_id=name, owner="clu_page", tenant="acme", secret=SECRET)
    client_ids = [client.client_id for client in identity.owned_clients()]
    assert names <= set(client_ids)
    assert len(client_ids) == len(set(client_ids))


def test_foreign_client_is_neither_adopted_deleted_nor_listed(door):
    identity = door.adapter()
    name = fresh()
    door.admin("POST", "", {"clientId": name, "secret": SECRET})
    with pytest.raises(VendorConflict):
        identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret="t" * 32)
    assert identity.delete_client(client_id=name, owner="clu_1") is False
    assert identity.client_secret(name) == SECRET
    assert name not in {client.client_id for client in identity.owned_clients()}


def test_cluster_token_has_tenant_and_our_audience(door):
    name = fresh()
    door.adapter().create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    token_claims = door.claims(door.token(name, SECRET).json()["access_token"])
    assert token_claims["organization"] == {"acme": {}}
    assert token_claims["aud"] == "stockyard"
    assert token_claims["azp"] == token_claims["client_id"] == name
    assert token_claims["iss"] == door.server.issuer
    assert token_claims["preferred_username"] == f"service-account-{name}"
    assert "realm_access" not in token_claims
    assert "resource_access" not in token_claims


def test_adopted_client_keeps_mappers(door):
    name = fresh()
    for secret in (SECRET, "t" * 32):
        door.adapter().create_client(client_id=name, owner="clu_1", tenant="acme", secret=secret)
    assert door.token(name, SECRET).status_code == 401
    token_claims = door.claims(door.token(name, "t" * 32).json()["access_token"])
    assert (token_claims["organization"], token_claims["aud"]) == ({"acme": {}}, "stockyard")


def test_client_is_confidential_with_service_account_only(door):
    name = fresh()
    client = door.adapter().create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    representation = door.admin("GET", f"/{client.uuid}").json()
    expected = {
        "publicClient": False,
        "serviceAccountsEnabled": True,
        "standardFlowEnabled": False,
        "implicitFlowEnabled": False,
        "directAccessGrantsEnabled": False,
        "fullScopeAllowed": False,
        "clientAuthenticatorType": "client-secret",
    }
    assert {key: representation[key] for key in expected} == expected
    assert representation["attributes"]["stockyard.cluster_id"] == "clu_1"
    assert representation["attributes"]["stockyard.installation"] == "inst-1"


def login_of(door, name: str) -> dict[str, object] | None:
    """The client that people log in to a cluster with."""
    return next(iter(door.admin("GET", f"?clientId={name}-login").json()), None)


def test_people_log_in_to_a_cluster_with_a_public_client_of_its_own(door):
    name = fresh()
    for secret in (SECRET, "t" * 32):
        door.adapter().create_client(client_id=name, owner="clu_1", tenant="acme", secret=secret)
    login = login_of(door, name)
    expected = {
        "publicClient": True,
        "serviceAccountsEnabled": False,
        "standardFlowEnabled": False,
        "implicitFlowEnabled": False,
        "directAccessGrantsEnabled": False,
        "fullScopeAllowed": False,
    }
    assert {key: login[key] for key in expected} == expected
    assert login["attributes"]["oauth2.device.authorization.grant.enabled"] == "true"
    # Where people are members of organizations, their tokens name them: by a scope that new clients have.
    scopes = {*login.get("optionalClientScopes", ["organization"]), *login.get("defaultClientScopes", ())}
    assert "organization" in scopes
    started = door.post("auth/device", {"client_id": f"{name}-login", "scope": "openid organization"})
    assert started.status_code == 200, started.text


def test_a_token_for_a_cluster_is_for_its_own_client_alone(doors):
    """On the stand-in, where nobody has to confirm a login."""
    door, name = doors("stand-in"), fresh()
    door.adapter().create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    form = {"client_id": f"{name}-login", "scope": "openid organization"}
    code = door.post("auth/device", form).json()["device_code"]
    grant = "urn:ietf:params:oauth:grant-type:device_code"
    tokens = door.post("token", {"client_id": f"{name}-login", "device_code": code, "grant_type": grant}).json()
    own, access = door.claims(tokens["id_token"]), door.claims(tokens["access_token"])
    assert (own["aud"], list(own["organization"])) == (f"{name}-login", ["acme"])
    assert "aud" not in access
    assert "realm_access" not in access


@pytest.mark.keycloak
def test_a_real_token_for_a_cluster_is_for_its_own_client_alone(doors):
    """A real Keycloak wants a browser for the device flow, so this login may take a password too."""
    door, name = doors("keycloak"), fresh()
    door.adapter().create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    login = login_of(door, name)
    form = {"grant_type": "password", "client_id": f"{name}-login", "scope": "openid organization"}
    form |= {"username": "local-user", "password": door.server.password}
    assert door.post("token", form).status_code == 400, "not unless somebody changes the client"
    door.admin("PUT", f"/{login['id']}", {**login, "directAccessGrantsEnabled": True})
    tokens = door.post("token", form).json()
    own, access = door.claims(tokens["id_token"]), door.claims(tokens["access_token"])
    assert (own["aud"], own["typ"], own["preferred_username"]) == (f"{name}-login", "ID", "local-user")
    assert "acme" in own["organization"]
    assert "stockyard" not in access.get("aud", ())
    assert "realm_access" not in access


def test_the_login_of_a_cluster_goes_with_its_client(door):
    identity = door.adapter()
    for with_uuid in (False, True):
        name = fresh()
        client = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
        assert f"{name}-login" not in {listed.client_id for listed in identity.owned_clients()}
        assert identity.delete_client(client_id=name, owner="clu_2") is False
        assert identity.delete_client(client_id=name, owner="clu_1", uuid=str(uuid.uuid4())) is False
        assert login_of(door, name) is not None
        uuid_of_client = client.uuid if with_uuid else None
        assert identity.delete_client(client_id=name, owner="clu_1", uuid=uuid_of_client) is True
        assert login_of(door, name) is None


def test_a_login_that_lost_its_cluster_is_found_by_the_sweep(door):
    identity, name = door.adapter(), fresh()
    client = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    door.admin("DELETE", f"/{client.uuid}")
    (orphan,) = (listed for listed in identity.owned_clients() if listed.client_id.startswith(name))
    assert orphan.client_id == f"{name}-login"
    assert identity.delete_client(client_id=orphan.client_id, owner="clu_1", uuid=orphan.uuid) is True
    assert login_of(door, name) is None


def test_service_token_has_no_role_tenant_or_our_audience(door):
    identity = door.adapter()
    token = identity.service_token()
    token_claims = door.claims(token)
    assert token_claims["azp"] == "stockyard-service"
    assert "realm_access" not in token_claims
    assert "resource_access" not in token_claims
    assert "organization" not in token_claims
    assert "stockyard" not in token_claims.get("aud", "")
    assert identity.service_token() == token
    assert door.claims(door.adapter().service_token())["sub"] == token_claims["sub"]


def test_configured_service_client_is_used(door):
    name = fresh()
    door.admin("POST", "", {"clientId": name, "secret": SECRET, "serviceAccountsEnabled": True})
    identity = door.adapter(service_client_id=name, service_client_secret=SECRET)
    assert door.claims(identity.service_token())["azp"] == name


def test_wrong_admin_secret_is_denied_with_hint(door):
    secret = json.dumps({"client_id": door.server.admin_client_id, "client_secret": "wrong"})
    identity = Keycloak(
        door.server.issuer, "stockyard", installation="inst-1", read_secret=lambda _: secret, admin_secret="admin"
    )
    with pytest.raises(PermissionDenied) as caught:
        identity.find_client("x")
    assert "manage-clients" in caught.value.hint
    assert "wrong" not in str(caught.value)


def test_admin_client_without_role_is_denied(door):
    name = fresh()
    door.adapter().create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    weak = json.dumps({"client_id": name, "client_secret": SECRET})
    identity = Keycloak(
        door.server.issuer, "stockyard", installation="inst-1", read_secret=lambda _: weak, admin_secret="admin"
    )
    with pytest.raises(PermissionDenied):
        identity.create_client(client_id=fresh(), owner="clu_2", tenant="acme", secret=SECRET)


def test_missing_realm_raises_not_found(door):
    with pytest.raises(VendorNotFound):
        Keycloak(
            door.server.issuer.replace("/stockyard", "/nowhere"),
            "stockyard",
            installation="inst-1",
            read_secret=lambda _: json.dumps({"client_id": "a", "client_secret": "b"}),
            admin_secret="admin",
        ).find_client("x")
