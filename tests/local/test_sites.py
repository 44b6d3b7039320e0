"""The local cloud's site: its host is reached through the real connector's process, and in no other way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.aws.accounts import OWN_ACCOUNT
from local.cloud import LocalCloud
from local.sites import LocalSite
from stacks.names import Names
from stockyard.adapters.clock import SystemClock
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.adapters.envelope import EnvelopeSecrets
from stockyard.adapters.site_requests import StoredSiteRequests
from stockyard.domain.records import AuditRecord, Event, Site, SiteAnswer, SiteRequest
from stockyard.errors import PermissionDenied
from stockyard.providers.sites import SiteTransport

OBJECT = "/api/v1/namespaces/machines/configmaps/node-1"
APPLY = {"Content-Type": "application/apply-patch+yaml"}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    with LocalCloud(home=tmp_path_factory.mktemp("cloud"), schedules=False, limits=False) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def site(cloud: LocalCloud) -> Iterator[LocalSite]:
    local_site = LocalSite(cloud.call, "room", cloud.home / "site")
    try:
        local_site.start()
        yield local_site
    finally:
        local_site.close()


@pytest.fixture(scope="module")
def keys(cloud: LocalCloud) -> Any:
    return cloud.aws.keys(OWN_ACCOUNT)


@pytest.fixture(scope="module")
def store(cloud: LocalCloud, keys: Any) -> Any:
    registry = DynamoRegistry(cloud.aws.client("dynamodb", keys), Names("dev").table)
    return registry.store("acme")


@pytest.fixture(scope="module")
def client(cloud: LocalCloud, site: LocalSite, store: Any, keys: Any) -> httpx.Client:
    kms = cloud.aws.client("kms", keys)
    seals = EnvelopeSecrets(lambda: kms, Names("dev").secrets_key, lambda _tenant: store)
    requests = StoredSiteRequests(store, seals, SystemClock(), time.sleep)
    return httpx.Client(transport=SiteTransport(requests, "room"), base_url="https://host")


def answer_of(client: httpx.Client, method: str, path: str, **more: Any) -> httpx.Response:
    """The answer; a workflow asks again when there is none in time."""
    for _ in range(4):
        try:
            return client.request(method, path, **more)
        except httpx.ConnectTimeout:
            continue
    raise AssertionError("no answer")


def test_the_first_answer_comes_with_the_next_poll_and_the_next_ones_within_2_seconds(client: httpx.Client):
    begin = time.monotonic()
    assert answer_of(client, "GET", "/version").json()["gitVersion"].startswith("v1.")
    assert time.monotonic() - begin < 20, "the local cloud is told to come sooner than each minute"
    for _ in range(5):
        begin = time.monotonic()
        assert client.get("/version").status_code == 200
        assert time.monotonic() - begin < 2


def test_an_object_is_applied_and_deleted_there_and_the_rest_is_refused_by_the_connector(
    client: httpx.Client, site: LocalSite
):
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "node-1"}, "data": {"state": "on"}}
    applied = answer_of(client, "PATCH", f"{OBJECT}?fieldManager=stockyard&force=true", json=document, headers=APPLY)
    assert applied.status_code in (200, 201), applied.text
    before = len(site.cluster.api.calls)
    for method, path in (("GET", "/api/v1/services"), ("GET", f"{OBJECT}?watch=true"), ("PUT", OBJECT)):
        with pytest.raises(PermissionDenied, match="the site's connector refused"):
            answer_of(client, method, path)
    assert len(site.cluster.api.calls) == before
    assert answer_of(client, "DELETE", OBJECT).status_code == 200
    assert answer_of(client, "GET", OBJECT).status_code == 404


def test_a_connector_that_was_killed_comes_back_and_every_request_ends(
    client: httpx.Client, site: LocalSite, soaking: bool
):
    if not soaking:
        pytest.skip("a lost request is waited for twenty seconds: in the soak")
    for _ in range(2):
        site.kill()
        assert answer_of(client, "GET", "/version").status_code == 200


def test_an_account_is_reached_through_it_and_holds_it(cloud: LocalCloud, client: httpx.Client):
    answer_of(client, "GET", "/version")
    body = {"provider": "kubernetes", "name": "hosts", "attributes": {"via": "room", "namespaces": ["machines"]}}
    account = cloud.call("POST", "/v1/cloud-accounts", body)
    verified = cloud.call("POST", f"/v1/cloud-accounts/{account['id']}/verify")
    assert verified["verification"] == "verified", verified["verification_message"]
    with pytest.raises(Exception, match="is used by cloud account"):
        cloud.call("DELETE", "/v1/sites/room")
    cloud.call("DELETE", f"/v1/cloud-accounts/{account['id']}")


def test_no_credential_of_the_site_is_in_a_record_a_log_or_an_event(
    cloud: LocalCloud, site: LocalSite, store: Any, client: httpx.Client
):
    answer_of(client, "GET", "/version")
    accounts = site.cluster.api._accounts
    tokens = [token for token, owner in accounts.items() if owner == ("stockyard-site", "stockyard-site")]
    pods = sorted(Path(site.log.parent).glob("pod-*/var/run/stockyard-site/client_secret"))
    canaries = [*tokens, *(path.read_text() for path in pods)]
    assert len(canaries) >= 2
    records = [
        repr(record.__class__) + str([getattr(record, name) for name in record.__slots__])
        for kind in (Site, SiteRequest, SiteAnswer, Event, AuditRecord)
        for record in store.list(kind, limit=1000).items
    ]
    logs = [path.read_text(errors="replace") for path in (cloud.home / "logs").rglob("*") if path.is_file()]
    logs.append(site.log.read_text())
    for canary in canaries:
        assert not any(canary in text for text in (*records, *logs)), canary[:6]
    assert any("GET /version: 200" in text for text in logs)
