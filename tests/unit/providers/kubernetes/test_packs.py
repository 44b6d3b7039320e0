"""The account that applies packs: made by an admin, known by short tokens, removed with its rights."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.authority import Authority
from local.kubernetes.api import KubeApi
from local.kubernetes.people import standard_roles
from stockyard.errors import PermissionDenied, VendorNotFound, VendorRefused, VendorUnavailable
from stockyard.ports.clusters import PACKS_MANAGER
from stockyard.providers.kubernetes import packs
from stockyard.providers.kubernetes.client import KubernetesApi
from tests.harness.worlds.memory_kubernetes import MemoryKubernetes

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}


@pytest.fixture
def admin() -> MemoryKubernetes:
    return MemoryKubernetes()


def account(admin: MemoryKubernetes) -> tuple[MemoryKubernetes, list[str]]:
    """What the account's client was made of."""
    own, tokens = MemoryKubernetes(), []

    def connect(token: Callable[[], str]) -> KubernetesApi:
        tokens.append(token())
        return own.client("https://k", "ca", token)

    assert packs.account_api(admin.client("https://k", "ca", lambda: "admin"), connect) is own
    return own, tokens


def test_the_account_is_made_before_a_token_of_it_is_asked_for(admin: MemoryKubernetes) -> None:
    own, tokens = account(admin)
    assert tokens == ["token-1"]
    assert admin.tokens == [("stockyard-packs", "stockyard-packs", 600)]
    assert admin.closed == 1
    assert (own.closed, own.objects) == (0, {}), "the account makes nothing of itself"


def test_no_pod_gets_the_accounts_token_and_nobody_else_its_rights(admin: MemoryKubernetes) -> None:
    account(admin)
    assert (
        admin.objects["ServiceAccount", "stockyard-packs", "stockyard-packs"]["automountServiceAccountToken"] is False
    )
    (binding,) = [document for (kind, *_), document in admin.objects.items() if kind == "ClusterRoleBinding"]
    subject = {"kind": "ServiceAccount", "name": "stockyard-packs", "namespace": "stockyard-packs"}
    assert binding["subjects"] == [subject]


def test_a_second_account_is_the_first_with_a_new_token(admin: MemoryKubernetes) -> None:
    account(admin)
    before = dict(admin.objects)
    assert account(admin)[1] == ["token-2"]
    assert admin.objects == before


def test_an_admin_that_may_not_is_closed_too(admin: MemoryKubernetes) -> None:
    admin.error = PermissionDenied("403 Forbidden")
    with pytest.raises(PermissionDenied):
        account(admin)
    assert admin.closed == 1


def test_rights_go_before_the_account_and_twice_is_once(admin: MemoryKubernetes) -> None:
    account(admin)
    for _ in range(2):
        packs.forget(admin.client("https://k", "ca", lambda: "admin"))
        assert {kind for kind, _, _ in admin.objects} <= {"ServiceAccount"}, "it goes with its namespace"
    assert admin.closed == 3
    admin.error = VendorUnavailable("no answer")
    with pytest.raises(VendorUnavailable):
        packs.forget(admin.client("https://k", "ca", lambda: "admin"))
    assert admin.closed == 4


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[KubeApi, Callable[[Callable[[], str]], KubernetesApi]]]:
    """A simulated API with a real one's first roles, and clients of it."""
    authority, api, clients = Authority(tmp_path), KubeApi(), []
    api.install(list(standard_roles()))
    url, pem = api.serve(authority.serving("apiserver")), base64.b64encode(authority.pem.encode()).decode()

    def connect(token: Callable[[], str]) -> KubernetesApi:
        clients.append(KubernetesApi(url, pem, token))
        return clients[-1]

    yield api, connect
    for client in clients:
        client.close()
    api.close()


def test_an_api_lets_the_account_apply_and_ask_until_it_is_forgotten(
    served: tuple[KubeApi, Callable[[Callable[[], str]], KubernetesApi]],
) -> None:
    api, connect = served
    master = api.administrator()
    own = packs.account_api(connect(lambda: master), connect)
    own.apply(CONFIG, manager=PACKS_MANAGER)
    answer = own.apply({**CONFIG, "data": {"x": "2"}}, manager=PACKS_MANAGER, dry_run=True)
    live = own.get("v1", "ConfigMap", "a", "default")
    assert live is not None
    assert (answer["data"], live["data"]) == ({"x": "2"}, {"x": "1"})
    own.apply({**CONFIG, "metadata": {"name": "b"}}, manager=PACKS_MANAGER, dry_run=True)
    assert own.get("v1", "ConfigMap", "b") is None
    assert {entry["manager"] for entry in live["metadata"]["managedFields"]} == {PACKS_MANAGER}
    packs.forget(connect(lambda: master))
    with pytest.raises(PermissionDenied):
        own.get("v1", "ConfigMap", "a")


def test_an_api_gives_no_token_that_ends_sooner_nor_one_of_nobody(
    served: tuple[KubeApi, Callable[[Callable[[], str]], KubernetesApi]],
) -> None:
    api, connect = served
    master = api.administrator()
    admin = connect(lambda: master)
    with pytest.raises(VendorNotFound):
        admin.account_token(packs.NAMESPACE, packs.ACCOUNT, packs.TOKEN_SECONDS)
    packs.account_api(connect(lambda: master), connect)
    with pytest.raises(VendorRefused):
        admin.account_token(packs.NAMESPACE, packs.ACCOUNT, packs.TOKEN_SECONDS - 1)
