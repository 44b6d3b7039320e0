"""The account that applies packs: made by an admin, known by short tokens, removed with its rights."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stockyard.errors import PermissionDenied, VendorUnavailable
from stockyard.providers.kubernetes import packs
from stockyard.providers.kubernetes.client import KubernetesApi
from tests.harness.memory_kubernetes import MemoryKubernetes


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
