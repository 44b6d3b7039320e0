"""vdeployer's body is the published one: every name, the organization's id of the realm, and two derived secrets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local.identity.realm import organization_id
from local.machines.vdeployer import is_published
from stockyard.operations.clusters.creation.create import create_cluster
from stockyard.operations.clusters.creation.deployment import deploy_settings
from stockyard.settings import Settings
from tests.unit.operations.conftest import World

ID = organization_id("acme")
PUBLISHED = {
    "provider",
    "cluster_name",
    "keycloak_client_id",
    "keycloak_client_secret",
    "keycloak_organization_id",
    "sssd_binder_password",
    "vantage_url",
}
"""Beside the settings of the cluster's request, and the token of a JupyterHub."""


def settings_of(world: World, name: str, integrations: tuple[str, ...] = (), organization: str = ID) -> dict[str, Any]:
    new_cluster = world.new_cluster(name)
    requested = {**new_cluster.settings, "integrations": list(integrations)}
    new_cluster = replace(new_cluster, settings=requested, organization_id=organization)
    cluster, _ = create_cluster(world.services, new_cluster, "user:ann")
    services = replace(world.services, settings=Settings(table="t", api_url="https://api.example.com"))
    settings = deploy_settings(services, cluster)
    assert settings == deploy_settings(services, cluster), "a second try says the same"
    assert {name: settings[name] for name in cluster.settings} == cluster.settings
    assert set(settings) - set(cluster.settings) - {"jupyterhub_service_token"} == PUBLISHED
    assert is_published(settings, cluster.client_id) == (settings["keycloak_organization_id"] == ID)
    return settings


def test_the_body_is_the_published_one(world: World) -> None:
    settings = settings_of(world, "plain")
    assert settings["keycloak_organization_id"] == ID
    assert "jupyterhub_service_token" not in settings
    assert settings["sssd_binder_password"] not in settings["keycloak_client_secret"]


def test_a_hub_has_a_token_and_each_cluster_its_own_secrets(world: World) -> None:
    bodies = [settings_of(world, name, ("jupyterhub",)) for name in ("first", "second")]
    secrets = [each[name] for each in bodies for name in ("jupyterhub_service_token", "sssd_binder_password")]
    assert len(set(secrets)) == 4
    assert all(len(secret) == 43 for secret in secrets)


def test_who_has_no_id_of_the_organization_is_served_by_what_a_person_said(world: World) -> None:
    assert settings_of(world, "event", organization="")["keycloak_organization_id"] == "acme"
    settings_of(world, "person")
    assert settings_of(world, "later", organization="")["keycloak_organization_id"] == ID


@pytest.mark.parametrize(
    "changes",
    [
        {"keycloak_organization_id": "acme"},
        {"sssd_binder_password": None},
        {"vantage_url": ""},
        {"jupyterhub_service_token": "t" * 43},
        {"keycloak_client_id": "another-0123456789ab"},
        {"keycloak_client_secret": "short"},
    ],
)
def test_the_stand_in_refuses_any_other_body(world: World, changes: dict[str, Any]) -> None:
    settings = settings_of(world, "plain")
    client_id = settings["keycloak_client_id"]
    assert is_published(settings, client_id)
    assert not is_published({**settings, **changes}, client_id)
