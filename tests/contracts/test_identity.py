"""``ports.Identity`` on the in-memory one, on the adapter over the stand-in, and over a real Keycloak 26."""

from __future__ import annotations

import json
import uuid

import pytest

from local.memory import MemoryIdentity
from stockyard.adapters.keycloak import Keycloak
from stockyard.errors import PermissionDenied, VendorConflict, VendorNotFound
from stockyard.ports import Identity

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


def test_a_created_client_is_found_with_its_owner_and_secret(identity: Identity):
    name = fresh()
    made = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    assert made.client_id == name
    assert made.owner == "clu_1"
    assert identity.find_client(name) == made
    assert identity.client_secret(name) == SECRET


def test_creating_again_for_the_same_owner_adopts_and_sets_the_secret(identity: Identity):
    name = fresh()
    first = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    second = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret="t" * 32)
    assert second == first
    assert identity.client_secret(name) == "t" * 32
    assert identity.find_client(name) == first


def test_a_client_of_another_owner_is_a_conflict_and_stays_as_it_is(identity: Identity):
    name = fresh()
    first = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    with pytest.raises(VendorConflict):
        identity.create_client(client_id=name, owner="clu_2", tenant="globex", secret="t" * 32)
    assert identity.find_client(name) == first
    assert identity.client_secret(name) == SECRET


def test_only_the_owner_deletes(identity: Identity):
    name = fresh()
    identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    assert identity.delete_client(client_id=name, owner="clu_2") is False
    assert identity.delete_client(client_id=name, owner="") is False
    assert identity.find_client(name) is not None
    assert identity.delete_client(client_id=name, owner="clu_1") is True
    assert identity.find_client(name) is None
    assert identity.delete_client(client_id=name, owner="clu_1") is False


def test_another_installations_client_is_someone_elses(identity: Identity, neighbour: Identity):
    name = fresh()
    theirs = neighbour.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    assert neighbour.find_client(name) == theirs
    assert name not in {one.client_id for one in identity.owned_clients()}
    found = identity.find_client(name)
    assert found is not None
    assert (found.uuid, found.owner) == (theirs.uuid, "")
    with pytest.raises(VendorConflict):
        identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret="t" * 32)
    assert identity.delete_client(client_id=name, owner="clu_1") is False
    assert identity.delete_client(client_id=name, owner="clu_1", uuid=theirs.uuid) is False
    assert neighbour.client_secret(name) == SECRET
    assert name in {one.client_id for one in neighbour.owned_clients()}


def test_only_the_very_client_is_deleted_when_it_is_named(identity: Identity):
    name = fresh()
    first = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    assert identity.delete_client(client_id=name, owner="clu_1", uuid=first.uuid) is True
    second = identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    assert identity.delete_client(client_id=name, owner="clu_1", uuid=first.uuid) is False
    assert identity.find_client(name) == second


def test_an_unknown_client_is_none_and_its_secret_not_found(identity: Identity):
    name = fresh()
    assert identity.find_client(name) is None
    with pytest.raises(VendorNotFound):
        identity.client_secret(name)


def test_a_name_is_matched_whole(identity: Identity):
    name = fresh()
    identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    assert identity.find_client(name[:-1]) is None
    assert identity.find_client(name.upper()) is None


def test_owned_clients_lists_ours_only(identity: Identity):
    owner = f"clu_{uuid.uuid4().hex}"
    names = {fresh() for _ in range(3)}
    for name in names:
        identity.create_client(client_id=name, owner=owner, tenant="acme", secret=SECRET)
    identity.service_token()
    found = identity.owned_clients()
    assert {one.client_id for one in found if one.owner == owner} == names
    assert all(one.owner.startswith("clu_") for one in found)


# --- the adapter -----------------------------------------------------------------------------------------------------


def test_listing_reads_every_page(door, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("stockyard.adapters.keycloak._PAGE", 2)
    identity = door.adapter()
    names = {fresh() for _ in range(5)}
    for name in names:
        identity.create_client(client_id=name, owner="clu_page", tenant="acme", secret=SECRET)
    found = [one.client_id for one in identity.owned_clients()]
    assert names <= set(found)
    assert len(found) == len(set(found))


def test_a_foreign_client_is_neither_adopted_nor_deleted_nor_listed(door):
    identity = door.adapter()
    name = fresh()
    door.admin("POST", "", {"clientId": name, "secret": SECRET})
    with pytest.raises(VendorConflict):
        identity.create_client(client_id=name, owner="clu_1", tenant="acme", secret="t" * 32)
    assert identity.delete_client(client_id=name, owner="clu_1") is False
    assert identity.client_secret(name) == SECRET
    assert name not in {one.client_id for one in identity.owned_clients()}


def test_a_clusters_token_names_its_tenant_and_is_for_us(door):
    name = fresh()
    door.adapter().create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    found = door.claims(door.token(name, SECRET).json()["access_token"])
    assert found["organization"] == {"acme": {}}
    assert found["aud"] == "stockyard"
    assert found["azp"] == found["client_id"] == name
    assert found["iss"] == door.server.issuer
    assert found["preferred_username"] == f"service-account-{name}"
    assert "realm_access" not in found
    assert "resource_access" not in found


def test_adoption_keeps_the_mappers(door):
    name = fresh()
    for secret in (SECRET, "t" * 32):
        door.adapter().create_client(client_id=name, owner="clu_1", tenant="acme", secret=secret)
    assert door.token(name, SECRET).status_code == 401
    found = door.claims(door.token(name, "t" * 32).json()["access_token"])
    assert (found["organization"], found["aud"]) == ({"acme": {}}, "stockyard")


def test_the_client_is_confidential_with_a_service_account_only(door):
    name = fresh()
    made = door.adapter().create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    found = door.admin("GET", f"/{made.uuid}").json()
    wanted = {
        "publicClient": False,
        "serviceAccountsEnabled": True,
        "standardFlowEnabled": False,
        "implicitFlowEnabled": False,
        "directAccessGrantsEnabled": False,
        "fullScopeAllowed": False,
        "clientAuthenticatorType": "client-secret",
    }
    assert {key: found[key] for key in wanted} == wanted
    assert found["attributes"]["stockyard.cluster_id"] == "clu_1"
    assert found["attributes"]["stockyard.installation"] == "inst-1"


def test_the_service_token_has_no_role_no_tenant_and_is_not_for_us(door):
    identity = door.adapter()
    token = identity.service_token()
    found = door.claims(token)
    assert found["azp"] == "stockyard-service"
    assert "realm_access" not in found
    assert "resource_access" not in found
    assert "organization" not in found
    assert "stockyard" not in found.get("aud", "")
    assert identity.service_token() == token
    assert door.claims(door.adapter().service_token())["sub"] == found["sub"]


def test_a_configured_service_client_is_used(door):
    name = fresh()
    door.admin("POST", "", {"clientId": name, "secret": SECRET, "serviceAccountsEnabled": True})
    identity = door.adapter(service_client_id=name, service_client_secret=SECRET)
    assert door.claims(identity.service_token())["azp"] == name


def test_a_wrong_admin_secret_is_denied_with_a_hint(door):
    secret = json.dumps({"client_id": door.server.admin_client_id, "client_secret": "wrong"})
    identity = Keycloak(
        door.server.issuer, "stockyard", installation="inst-1", read_secret=lambda _: secret, admin_secret="admin"
    )
    with pytest.raises(PermissionDenied) as caught:
        identity.find_client("x")
    assert "manage-clients" in caught.value.hint
    assert "wrong" not in str(caught.value)


def test_an_admin_client_without_the_role_is_denied(door):
    name = fresh()
    door.adapter().create_client(client_id=name, owner="clu_1", tenant="acme", secret=SECRET)
    weak = json.dumps({"client_id": name, "client_secret": SECRET})
    identity = Keycloak(
        door.server.issuer, "stockyard", installation="inst-1", read_secret=lambda _: weak, admin_secret="admin"
    )
    with pytest.raises(PermissionDenied):
        identity.create_client(client_id=fresh(), owner="clu_2", tenant="acme", secret=SECRET)


def test_a_realm_that_does_not_exist_is_not_found(door):
    with pytest.raises(VendorNotFound):
        Keycloak(
            door.server.issuer.replace("/stockyard", "/nowhere"),
            "stockyard",
            installation="inst-1",
            read_secret=lambda _: json.dumps({"client_id": "a", "client_secret": "b"}),
            admin_secret="admin",
        ).find_client("x")
