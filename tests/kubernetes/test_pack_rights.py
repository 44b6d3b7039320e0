"""Packs have the rights of who has chosen them, on a real API server: ways from an operator's pack to all rights end
there, and what is a restricted pod is judged as the API server judges it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from stockyard.domain.clusters.kubeconfigs import check
from stockyard.domain.profiles.pack_rights import OPENED, OPENED_FOR, rights_faults
from stockyard.domain.profiles.pod_security import pod_faults
from stockyard.domain.values.rights import ADMIN, OPERATOR
from stockyard.errors import PermissionDenied
from stockyard.providers.kubernetes import packs
from stockyard.providers.kubernetes.client import ClientCertificate, KubernetesApi
from tests.harness.operators_ways import OPEN, PODS, RESTRICTED, WAYS, object_of, workload
from tests.kubernetes.conftest import Cluster

JUDGED = "packs-judged"
"""A namespace whose pods the API server holds to the level restricted."""


@pytest.fixture(scope="module")
def account(cluster: Cluster) -> Iterator[packs.Account]:
    fields = check(cluster.plane.kubeconfig.read_text())
    key = ClientCertificate(fields["client-certificate-data"], fields["client-key-data"])

    def client(token: Callable[[], str], certificate: ClientCertificate | None = None) -> KubernetesApi:
        authority = fields["certificate-authority-data"]
        return KubernetesApi(cluster.plane.url, authority, token, certificate=certificate)

    def admin() -> KubernetesApi:
        return client(lambda: "", key)

    for name, labels in ((OPEN, {OPENED: OPENED_FOR}), (JUDGED, {"pod-security.kubernetes.io/enforce": "restricted"})):
        cluster.plane.kubectl("create", "namespace", name)
        cluster.plane.kubectl("label", "namespace", name, *(f"{key}={value}" for key, value in labels.items()))
    result = packs.account_api(admin(), client)
    yield result
    result.close()
    packs.forget(admin())
    cluster.plane.kubectl("delete", "namespace", OPEN, JUDGED, "--wait=false")


def test_twenty_ways_from_an_operators_pack_to_all_rights_end_at_the_api_server(account: packs.Account) -> None:
    assert len(WAYS) >= 20
    operator = account.acting_as(OPERATOR)
    for name, document in WAYS.items():
        with pytest.raises(PermissionDenied) as refused:
            operator.apply(document)
        assert document["metadata"]["name"] in str(refused.value) or "is not open" in str(refused.value), name


def test_an_operators_pack_stands_in_a_namespace_that_is_open(account: packs.Account) -> None:
    operator = account.acting_as(OPERATOR)
    document = workload("Deployment", "server", OPEN, {**RESTRICTED["the usual"]})
    assert list(rights_faults(document, OPERATOR)) == []
    operator.apply(document)
    operator.apply(object_of("v1", "ConfigMap", "settings", OPEN, data={"a": "b"}), dry_run=True)
    live = operator.get("apps/v1", "Deployment", "server", OPEN)
    assert live is not None
    operator.delete("apps/v1", "Deployment", "server", OPEN)


def test_an_administrators_pack_may_give_rights_away(account: packs.Account) -> None:
    for name in ("a binding of oneself to all rights", "a pod on every node of the system"):
        account.acting_as(ADMIN).apply(WAYS[name], dry_run=True)


def test_the_account_itself_may_act_as_nobody_else_and_do_nothing(account: packs.Account) -> None:
    for api in (account._api, account._api.acting_as("stockyard:packs:admin", "system:masters")):
        with closing(api), pytest.raises(PermissionDenied):
            api.list("v1", "Secret")


def test_pods_are_judged_as_the_api_server_judges_them(account: packs.Account) -> None:
    admin = account.acting_as(ADMIN)
    for name, spec in PODS.items():
        document = object_of("v1", "Pod", "judged", JUDGED, spec=spec)
        assert list(pod_faults(document)), name
        with pytest.raises(PermissionDenied, match="403 Forbidden"):
            admin.apply(document, dry_run=True)
    for name, spec in RESTRICTED.items():
        document = object_of("v1", "Pod", "judged", JUDGED, spec=spec)
        assert list(pod_faults(document)) == [], name
        admin.apply(document, dry_run=True)
