"""Accounts that are Kubernetes hosts: each needed right is asked for by name, and objects with our marks are found."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.values.ids import account_secret
from stockyard.domain.values.times import to_text
from stockyard.errors import CredentialsRevoked, PermissionDenied, VendorError, VendorUnavailable
from stockyard.ports import Tagged, Verification
from stockyard.providers.addresses import Guard
from stockyard.providers.clouds.kubernetes.access import Access
from stockyard.providers.clouds.kubernetes.cloud import KubernetesHosts
from stockyard.providers.clouds.kubernetes.features import BASE, rights_of
from stockyard.providers.clouds.kubernetes.marks import marks
from stockyard.providers.kubernetes import client as client_module
from tests.harness.worlds.kubernetes_host import NAMESPACE, NUMBER, SITE, TENANT, KubernetesHost, kubernetes_account
from tests.unit.providers.kubernetes.test_client import certificate

INSTALLATION, CLAIM = "inst", "ncl_01KDVJXQ80000000000000000A"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_pause", lambda _error: False)


@pytest.fixture
def host() -> KubernetesHost:
    return KubernetesHost(("machines", "more"))


def verified(host: KubernetesHost) -> Verification:
    return host.cloud().verify(host.account, TENANT)


def make(host: KubernetesHost, name: str, space: str = NAMESPACE, tenant: str = TENANT, resource: str = CLAIM) -> None:
    labels = marks(INSTALLATION, tenant, resource, 1)
    for kind in ("ConfigMap", "Secret"):
        meta = {"name": name, "namespace": space, "labels": labels}
        host.api.install([{"apiVersion": "v1", "kind": kind, "metadata": meta}])


def tagged(host: KubernetesHost) -> list[Tagged]:
    return list(host.cloud().tagged(host.account, INSTALLATION, TENANT, ()))


def test_the_rights_of_the_template_are_those_that_are_needed(host: KubernetesHost) -> None:
    assert verified(host) == Verification(True, "The account has every right that it needs in machines, more.")
    reviews = [call for call in host.api.calls if call.action.resource == "selfsubjectaccessreviews"]
    assert len(reviews) == 2 * len(list(rights_of([BASE])))
    assert host.api.store.objects.keys() == KubernetesHost(("machines", "more")).api.store.objects.keys()


def test_each_right_that_is_missing_is_named_alone() -> None:
    for right in rights_of([BASE]):
        host = KubernetesHost(("machines", "more"))
        host.without(right.verb, right.resource, "more")
        verification = verified(host)
        assert not verification.works
        named = f"The account may not: {right.verb} {right.resource} in namespace more."
        assert verification.message == f"{named} Its host's owner applies the account's template."


def test_a_namespace_that_is_not_there_is_named(host: KubernetesHost) -> None:
    with host.api.locked_store() as store:
        del store.objects[next(key for key in store.objects if (key.resource, key.name) == ("namespaces", "more"))]
    verification = verified(host)
    if not verification.works:  # the simulated API lets objects be made in a namespace that is not there
        assert "more" in verification.message


def test_a_token_that_is_no_longer_good_or_gone(host: KubernetesHost) -> None:
    host.api.revoke(host.token)
    verification = verified(host)
    assert not verification.works
    assert "does not accept the token" in verification.message
    host.secrets.delete(account_secret(TENANT, NUMBER, "token"))
    assert "has no token" in verified(host).message


def test_a_host_that_does_not_answer_is_asked_again(host: KubernetesHost) -> None:
    from local.kubernetes.api import Fault

    host.api.faults.append(Fault("create", "selfsubjectaccessreviews", 503, times=99))
    with pytest.raises(VendorUnavailable):
        verified(host)


def token_until(moment: float | str | None) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": moment}).encode()).decode().rstrip("=")
    return f"header.{claims}.signature"


def test_credentials_that_end_are_told(host: KubernetesHost) -> None:
    now = host.clock.now()
    for seconds, works, text in (
        (90 * 86_400, True, ""),
        (20 * 86_400, True, f"The credentials end at {to_text(now + timedelta(days=20))}: give new ones before."),
        (-1, False, "The credentials ended at"),
    ):
        token = token_until((now + timedelta(seconds=seconds)).timestamp())
        host.api._accounts[token] = (NAMESPACE, "stockyard")
        host.secrets.put(account_secret(TENANT, NUMBER, "token"), token)
        verification = verified(host)
        assert verification.works is works
        assert text in " ".join((verification.message, *verification.warnings))
        assert token not in verification.message
        assert bool(verification.warnings) is (works and bool(text))
    for odd in ("soon", None, 1e30):
        host.api._accounts[token_until(odd)] = (NAMESPACE, "stockyard")
        host.secrets.put(account_secret(TENANT, NUMBER, "token"), token_until(odd))
        assert verified(host).warnings == ()


def test_a_certificate_that_ends_is_told(host: KubernetesHost) -> None:
    user = certificate()  # of nine days
    host.secrets.put(account_secret(TENANT, NUMBER, "client_key"), user.key_b64)
    account = kubernetes_account(client_certificate=user.certificate_b64)
    credentials = host.access().credentials(TENANT, account)
    assert credentials.ends_at is not None
    assert user.key_b64 not in repr(credentials)
    host.secrets.delete(account_secret(TENANT, NUMBER, "client_key"))
    assert "has no client_key" in host.cloud().verify(account, TENANT).message


def test_a_cluster_that_stockyard_made_is_a_host_by_its_own_kubeconfig(host: KubernetesHost) -> None:
    cluster = host.cluster()
    access = host.access()
    assert access.host_client(TENANT, cluster).may("create", "", "configmaps", NAMESPACE)
    with pytest.raises(CredentialsRevoked, match="no kubeconfig of cluster"):
        access.host_client("globex", cluster)
    host.secrets.put(f"{TENANT}/{cluster.id}/kubeconfig", "exec: []")
    with pytest.raises(CredentialsRevoked, match="cannot be read"):
        access.host_client(TENANT, cluster)


def test_a_host_behind_a_site_is_reached_without_credentials_of_ours(host: KubernetesHost) -> None:
    account = replace(host.account, attributes={"via": SITE, "namespaces": ["machines"]}, secrets=())
    host.secrets.delete(account_secret(TENANT, NUMBER, "token"))
    assert host.cloud().verify(account, TENANT) == Verification(
        True, "The account has every right that it needs in machines."
    )
    host.without("patch", "secrets")
    assert "patch secrets in namespace machines" in host.cloud().verify(account, TENANT).message
    make(host, "a")
    assert [thing.vendor_id for thing in host.cloud().tagged(account, INSTALLATION, TENANT, ())] == ["a", "a"]


def test_what_carries_our_marks_is_found_in_the_accounts_namespaces(host: KubernetesHost) -> None:
    make(host, "a")
    make(host, "b", "more")
    make(host, "c", "default")
    make(host, "d", tenant="globex")
    host.api.install([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "e", "namespace": "more"}}])
    assert [(thing.kind, thing.region, thing.vendor_id) for thing in tagged(host)] == [
        ("ConfigMap", "machines", "a"),
        ("Secret", "machines", "a"),
        ("ConfigMap", "more", "b"),
        ("Secret", "more", "b"),
    ]
    (thing, *_) = tagged(host)
    assert (thing.tenant, thing.resource_id, thing.generation) == (TENANT, CLAIM, "1")
    assert thing.created_at


def test_a_namespace_that_cannot_be_asked_is_left_out_and_told(host: KubernetesHost) -> None:
    make(host, "a")
    host.without("list", "secrets", "more")
    with pytest.raises(PermissionDenied):
        tagged(host)
    skipped: list[tuple[str, VendorError]] = []
    things = host.cloud().tagged(host.account, INSTALLATION, TENANT, (), lambda *skip: skipped.append(skip))
    assert [thing.vendor_id for thing in things] == ["a", "a"]
    assert [region for region, _ in skipped] == ["more"]
    host.without("list", "configmaps")
    with pytest.raises(PermissionDenied):
        host.cloud().tagged(host.account, INSTALLATION, TENANT, (), lambda *skip: skipped.append(skip))


def test_an_orphan_is_removed_and_what_is_anothers_stays(host: KubernetesHost) -> None:
    make(host, "a")
    cloud = host.cloud()
    for thing in tagged(host):
        assert not cloud.discard(host.account, replace(thing, tenant="globex"), TENANT)
        assert not cloud.discard(host.account, replace(thing, resource_id="ncl_other"), TENANT)
        assert not cloud.discard(host.account, replace(thing, kind="Pod"), TENANT)
        assert cloud.discard(host.account, thing, TENANT)
        assert cloud.discard(host.account, thing, TENANT), "what is gone is gone"
    assert tagged(host) == []


def test_a_tenant_whose_name_is_no_label_has_one_of_its_own(host: KubernetesHost) -> None:
    names = ["acme.", "acme-", "a" * 63 + "."]
    values = [marks(INSTALLATION, name, CLAIM, 1)["stockyard.dev/tenant"] for name in names]
    assert len(set(values)) == len(names)
    for name in names:
        labels = marks(INSTALLATION, name, CLAIM, 1)
        meta = {"name": "x", "namespace": NAMESPACE, "labels": labels}
        host.api.install([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}])
        host.secrets.put(account_secret(name, NUMBER, "token"), host.token)
        (thing,) = host.cloud().tagged(host.account, INSTALLATION, name, ())
        assert thing.tenant == name


def test_the_template_is_what_the_owner_applies(host: KubernetesHost) -> None:
    template: Any = host.cloud().template(host.account, INSTALLATION)
    assert (template["kind"], template["apiVersion"]) == ("List", "v1")
    kinds = [(item["kind"], item["metadata"].get("namespace", "")) for item in template["items"]]
    own = [(kind, space) for space in ("machines", "more") for kind in ("Role", "RoleBinding", "ResourceQuota")]
    assert kinds == [("Namespace", ""), ("Namespace", ""), ("ServiceAccount", "machines"), *own]
    granted = {
        (verb, resource)
        for item in template["items"]
        if item["kind"] == "Role"
        for rule in item["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }
    assert granted == {(right.verb, right.resource) for right in rights_of([BASE])}
    assert "ClusterRole" not in json.dumps(template)


def test_hosts_are_called_behind_the_guard(host: KubernetesHost) -> None:
    guard = Guard(resolve=lambda _host, _port: ("169.254.169.254",))
    cloud = KubernetesHosts(Access(lambda: host.secrets, guard, host.site_transport, host.transport()), host.clock.now)
    verification = cloud.verify(host.account, TENANT)
    assert not verification.works
    assert "nobody outside may choose" in verification.message
    assert host.api.calls == []


def test_what_the_port_asks_besides(host: KubernetesHost) -> None:
    cloud, attributes = host.cloud(), host.account.attributes
    assert cloud.principal(attributes) == attributes["server"]
    assert cloud.principal({"via": SITE, "namespaces": ["a"]}) == SITE
    assert list(cloud.regions(host.account)) == []
    cloud.check_attributes(attributes)
    first = host.access()
    client = first.client(TENANT, host.account)
    assert first.client(TENANT, host.account) is client
    host.exchange_token()
    assert first.client(TENANT, host.account) is not client
