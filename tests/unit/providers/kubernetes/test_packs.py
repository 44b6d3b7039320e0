"""The account that applies packs: made by an admin, known by short tokens, removed with its rights."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.authority import Authority
from local.kubernetes.api import KubeApi
from local.kubernetes.people import standard_roles
from stockyard.domain.profiles.pack_rights import OPENED, OPENED_FOR
from stockyard.domain.values.rights import ADMIN, OPERATOR
from stockyard.errors import PermissionDenied, VendorNotFound, VendorRefused, VendorUnavailable
from stockyard.ports.clusters import PACKS_MANAGER
from stockyard.providers.kubernetes import packs
from stockyard.providers.kubernetes.client import KubernetesApi
from tests.harness.worlds.memory_kubernetes import MemoryKubernetes

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}


@pytest.fixture
def admin() -> MemoryKubernetes:
    return MemoryKubernetes()


def account(admin: MemoryKubernetes) -> list[str]:
    """The tokens that the account's client was made of."""
    own, tokens = MemoryKubernetes(), []

    def connect(token: Callable[[], str]) -> KubernetesApi:
        tokens.append(token())
        return own.client("https://k", "ca", token)

    packs_account = packs.account_api(admin.client("https://k", "ca", lambda: "admin"), connect)
    assert (own.closed, own.objects) == (0, {}), "the account makes nothing of itself"
    packs_account.close()
    assert own.closed == 1
    return tokens


def test_the_account_is_made_before_a_token_of_it_is_asked_for(admin: MemoryKubernetes) -> None:
    assert account(admin) == ["token-1"]
    assert admin.tokens == [("stockyard-packs", "stockyard-packs", 600)]
    assert admin.closed == 1


def test_no_pod_gets_the_accounts_token_and_it_may_only_act_as_two_users(admin: MemoryKubernetes) -> None:
    admin.objects["ClusterRoleBinding", "", packs.FORMER_BINDING] = {"metadata": {"name": packs.FORMER_BINDING}}
    account(admin)
    assert (
        admin.objects["ServiceAccount", "stockyard-packs", "stockyard-packs"]["automountServiceAccountToken"] is False
    )
    subject = {"kind": "ServiceAccount", "name": "stockyard-packs", "namespace": "stockyard-packs"}
    bindings = {
        document["roleRef"]["name"]: document["subjects"]
        for (kind, *_), document in admin.objects.items()
        if kind == "ClusterRoleBinding"
    }
    assert bindings.pop("stockyard-packs-account") == [subject]
    ((role, (group,)),) = bindings.items()
    assert (role, group["name"]) == ("cluster-admin", "stockyard:packs:admins")
    rules = admin.objects["ClusterRole", "", "stockyard-packs-account"]["rules"]
    assert {(rule["resources"][0], *rule["resourceNames"]) for rule in rules} == {
        ("users", "stockyard:packs:admin", "stockyard:packs:operator"),
        ("groups", "stockyard:packs:admins", "stockyard:packs:operators"),
    }
    assert {verb for rule in rules for verb in rule["verbs"]} == {"impersonate"}


def test_a_second_account_is_the_first_with_a_new_token(admin: MemoryKubernetes) -> None:
    account(admin)
    before = dict(admin.objects)
    assert account(admin) == ["token-2"]
    assert admin.objects == before


def test_an_admin_that_may_not_is_closed_too(admin: MemoryKubernetes) -> None:
    admin.error = PermissionDenied("403 Forbidden")
    with pytest.raises(PermissionDenied):
        account(admin)
    assert admin.closed == 1


def test_rights_go_before_the_account_and_twice_is_once(admin: MemoryKubernetes) -> None:
    account(admin)
    opened = {"metadata": {"name": packs.OPERATORS, "namespace": "tools", "labels": packs.LABELS}}
    admin.objects["RoleBinding", "tools", packs.OPERATORS] = opened
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


def test_an_api_lets_the_account_act_as_an_administrator_until_it_is_forgotten(
    served: tuple[KubeApi, Callable[[Callable[[], str]], KubernetesApi]],
) -> None:
    api, connect = served
    master = api.administrator()
    account = packs.account_api(connect(lambda: master), connect)
    own = account.acting_as(ADMIN)
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
    account.close()


def test_an_operator_has_what_a_namespace_holds_where_it_is_open(
    served: tuple[KubeApi, Callable[[Callable[[], str]], KubernetesApi]],
) -> None:
    api, connect = served
    master = api.administrator()
    admin = connect(lambda: master)
    for name, labels in (("tools", {OPENED: OPENED_FOR}), ("closed", {}), ("kube-system", {OPENED: OPENED_FOR})):
        admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    account = packs.account_api(connect(lambda: master), connect)
    own = account.acting_as(OPERATOR)

    def config(namespace: str) -> dict[str, object]:
        return {**CONFIG, "metadata": {"name": "a", "namespace": namespace}}

    own.apply(config("tools"))
    assert own.get("v1", "ConfigMap", "a", "tools") is not None
    for namespace in ("closed", "kube-system", "none", ""):
        with pytest.raises(PermissionDenied, match=f"{namespace or 'default'} is not open"):
            own.apply(config(namespace))
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": []}
    with pytest.raises(PermissionDenied, match="Role tools/all"):
        own.apply({**role, "metadata": {"name": "all", "namespace": "tools"}})
    own.delete("v1", "ConfigMap", "a", "tools")
    assert own.get("v1", "ConfigMap", "a", "tools") is None
    account.close()


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
