"""Kubeconfigs of clusters with their own login, and of clusters whose cloud admits people."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stockyard.domain.records import CloudAccount
from stockyard.domain.values.times import to_text
from stockyard.errors import CredentialsRevoked, Fenced, IllegalTransition, NotFound, UnexpectedBehavior
from stockyard.operations.clusters.access import kubeconfig, tokens
from stockyard.operations.clusters.kept_secrets import minter
from stockyard.ports import Remove
from stockyard.ports.clusters import ADMIN, OPERATOR, VIEWER, ClusterToken
from tests.unit.operations.conftest import World
from tests.unit.operations.minting import AUTHORITY, ENDPOINT, Minting


@pytest.fixture
def minting(world: World) -> Minting:
    return Minting(world)


def user_of(config: Mapping[str, Any]) -> Any:
    return config["users"][0]["user"]


def test_the_driver_is_one_that_mints(minting: Minting, world: World) -> None:
    assert minting.driver.minter is minting.driver
    assert minter(world.services, minting.cluster) is None
    assert minter(minting.services, minting.cluster) is minting.driver


def test_people_ask_the_api_for_tokens(minting: Minting) -> None:
    config = kubeconfig.exec_kubeconfig(minting.services, minting.cluster)
    assert config["clusters"] == [
        {"name": "demo", "cluster": {"server": ENDPOINT, "certificate-authority-data": AUTHORITY}}
    ]
    assert (config["current-context"], config["contexts"][0]["context"]) == (
        "demo",
        {"cluster": "demo", "user": "demo"},
    )
    command = user_of(config)["exec"]
    assert (command["command"], command["args"]) == ("stockyard", ["token", "--cluster", minting.cluster.id])
    assert minting.driver.mints == [], "nothing is minted before somebody asks for it"


def test_people_of_other_clusters_log_in_to_them(world: World) -> None:
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "ready"
    config = kubeconfig.exec_kubeconfig(world.services, world.cluster(cluster))
    assert user_of(config)["exec"]["args"][:2] == ["token", "--issuer"]
    assert config["clusters"][0]["cluster"]["certificate-authority-data"] == "Q0E="
    for ask in (
        lambda: tokens.mint(world.services, world.cluster(cluster), VIEWER, "user:ann"),
        lambda: kubeconfig.kubeconfig_secret(world.services, world.cluster(cluster), VIEWER, "user:ann"),
    ):
        with pytest.raises(IllegalTransition, match="log in"):
            ask()


@pytest.mark.parametrize("role", [VIEWER, OPERATOR, ADMIN])
def test_a_token_is_of_the_role_and_of_now(minting: Minting, role: str) -> None:
    before = minting.items()
    token = tokens.mint(minting.services, minting.cluster, role, "user:ann")
    now = minting.world.clock.now()
    assert (token.token, token.expires_at) == (f"token-{role}-1", now + timedelta(minutes=14))
    ((work, asked_role),) = minting.driver.mints
    assert (asked_role, work.cluster, work.account.id, work.session, work.now) == (
        role, minting.cluster, "1", "user:ann", now,
    )  # fmt: skip
    assert minting.items() == before, "nothing is written"
    assert token.token not in repr(token)


def test_whoever_mints_can_intend_nothing(minting: Minting) -> None:
    tokens.mint(minting.services, minting.cluster, VIEWER, "user:ann")
    ((work, _),) = minting.driver.mints
    with pytest.raises(Fenced):
        work.ledger.intend("role", "main")


def test_each_secret_has_a_token_of_its_own(minting: Minting) -> None:
    before = minting.items()
    cluster = minting.change(minting.cluster, settings={**minting.cluster.settings, "namespace": "modelplane-system"})
    secrets = [kubeconfig.kubeconfig_secret(minting.services, cluster, ADMIN, "user:ann") for _ in range(2)]
    expiry = to_text(minting.world.clock.now() + timedelta(minutes=14))
    assert secrets[0]["metadata"]["annotations"] == {"stockyard.dev/expires-at": expiry}
    first = secrets[0]
    assert {**first, "data": None, "metadata": {**first["metadata"], "annotations": None}} == {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": "demo-kubeconfig-1a2b3", "namespace": "modelplane-system", "annotations": None},
        "data": None,
    }
    configs = [json.loads(base64.b64decode(secret["data"]["kubeconfig"])) for secret in secrets]
    assert [user_of(config) for config in configs] == [{"token": "token-admin-1"}, {"token": "token-admin-2"}]
    assert configs[0]["clusters"][0]["cluster"] == {"server": ENDPOINT, "certificate-authority-data": AUTHORITY}
    assert len(minting.items()) == len(before)


def test_a_cluster_without_a_manifest_has_no_namespace(minting: Minting) -> None:
    secret = kubeconfig.kubeconfig_secret(minting.services, minting.cluster, VIEWER, "user:ann")
    assert "namespace" not in secret["metadata"]


def test_a_credential_is_as_kubectl_wants_it() -> None:
    token = ClusterToken("t", datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC))
    assert kubeconfig.exec_credential(token) == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "t", "expirationTimestamp": "2026-01-02T03:04:05Z"},
    }


@pytest.mark.parametrize(
    "fields", [{"status": "preparing"}, {"status": "deleting"}, {"endpoint": None}, {"certificate_authority": None}]
)
def test_before_it_is_ready_nobody_gets_anything(minting: Minting, fields: dict[str, Any]) -> None:
    cluster = minting.change(minting.cluster, **fields)
    for ask in (
        lambda: kubeconfig.exec_kubeconfig(minting.services, cluster),
        lambda: kubeconfig.kubeconfig_secret(minting.services, cluster, VIEWER, "user:ann"),
        lambda: tokens.mint(minting.services, cluster, VIEWER, "user:ann"),
    ):
        with pytest.raises(IllegalTransition, match="a kubeconfig while it is ready"):
            ask()
    assert minting.driver.mints == []


def test_no_kubeconfig_of_such_a_cluster_is_stored(minting: Minting) -> None:
    with pytest.raises(NotFound, match="form=secret"):
        kubeconfig.static_kubeconfig(minting.services, minting.cluster)


def test_without_its_account_there_are_no_tokens(minting: Minting) -> None:
    minting.services.store.commit(Remove(CloudAccount, "1"))
    with pytest.raises(IllegalTransition, match="not registered"):
        tokens.mint(minting.services, minting.cluster, VIEWER, "user:ann")


def test_what_the_cloud_refuses_is_said_with_what_to_do(minting: Minting) -> None:
    minting.driver.error = CredentialsRevoked("the role cannot be assumed", hint="Verify the cloud account.")
    with pytest.raises(UnexpectedBehavior) as caught:
        tokens.mint(minting.services, minting.cluster, VIEWER, "user:ann")
    assert caught.value.detail == "The cloud has made no token (CredentialsRevoked). Verify the cloud account."
