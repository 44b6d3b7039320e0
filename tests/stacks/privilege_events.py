"""Requests by events, and whose events are requests: a part of the run in :mod:`tests.stacks.privilege_run`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from local.aws.accounts import ACME_ACCOUNT, OWN_ACCOUNT, REGION
from local.testing.example import cudo_body
from stacks.names import Names

if TYPE_CHECKING:
    from local.testing.serving import Served


def change_event_accounts(served: Served) -> None:
    """The accounts of a tenant's events: one more, and one less."""
    for version, accounts in ((1, [ACME_ACCOUNT, "999999999999"]), (2, [ACME_ACCOUNT])):
        headers = {"If-Match": f'"{version}"', "X-Stockyard-Tenant": "acme"}
        token = "STOCKYARD_TOKEN_PLATFORM"
        answer = served.call(
            "PUT", "/v1/event-accounts", {"accounts": accounts, "rights": "admin"}, headers=headers, token=token
        )
        assert answer.status == 200, answer.text
    assert served.call("GET", "/v1/event-accounts").body["version"] == 3


def send_event(served: Served, kind: str, detail: dict[str, Any]) -> None:
    """Put one request on the bus, as the tenant's account."""
    bus = f"arn:aws:events:{REGION}:{OWN_ACCOUNT}:event-bus/{Names('dev').bus}"
    entry = {"Source": "stockyard.request", "DetailType": kind, "Detail": json.dumps(detail), "EventBusName": bus}
    assert served.aws("events", ACME_ACCOUNT).put_events(Entries=[entry])["FailedEntryCount"] == 0


def send_events(served: Served, body: dict[str, Any], with_key: int) -> None:
    """A creation by an event, and a deletion by another while it runs; and one that the cloud's own lists refuse.
    Meanwhile things of each other kind come and go."""
    send = partial(send_event, served)

    def named() -> dict[str, Any] | None:
        items = served.call("GET", "/v1/clusters").body["items"]
        return next((item for item in items if item["name"] == "by-event"), None)

    unsold = cudo_body(with_key)
    unsold["settings"]["autoscaler_node_groups"][0]["machine_type"] = "none"
    send("CreateCluster", {"body": unsold})
    send("CreateCluster", {"body": {**body, "name": "by-event"}})
    cluster = served.wait("the cluster of the event", named)
    _kinds_by_event(served, cluster["id"])
    send("DeleteCluster", {"cluster": cluster["id"]})
    served.wait("its deletion", lambda: named() is None)


def _kinds_by_event(served: Served, cluster: str) -> None:
    """A pool, a provider, a claim and a profile: made, changed and deleted, each when the request before is done."""

    def request(path: str, kind: str, expected: Callable[[Any], bool], **detail: Any) -> None:
        def is_there() -> bool:
            return any(map(expected, served.call("GET", f"/v1/{path}").body["items"]))

        before = is_there()
        send_event(served, kind, detail)
        served.wait(f"the effect of {kind}", lambda: is_there() != before, 120)

    pools = f"clusters/{cluster}/pools"
    provider = {
        "name": "by-event",
        "kind": "simulated",
        "spec": {"nodeTypes": [{"name": "s", "resources": {"cpu": "2", "memory": "4Gi"}}]},
    }
    claim = {"name": "by-event", "cluster": cluster, "resources": {"cpu": "64"}, "provider": "by-event"}
    packs = [{"layer": "k8s", "name": "kubernetes", "tag": "1.35"}]
    request(pools, "CreatePool", _named, cluster=cluster, body={"name": "by-event", "quantity": 0})
    request(pools, "ChangePool", _labelled, cluster=cluster, pool="by-event", body={"labels": {"a": "b"}})
    request(pools, "DeletePool", _named, cluster=cluster, pool="by-event")
    request("node-providers", "CreateNodeProvider", _named, body=provider)
    request("node-providers", "ChangeNodeProvider", _labelled, provider="by-event", body={"labels": {"a": "b"}})
    request("node-claims", "CreateNodeClaim", _named, body=claim)
    request("node-claims", "ChangeNodeClaim", _labelled, claim="by-event", body={"labels": {"a": "b"}})
    request("node-claims", "DeleteNodeClaim", _named, claim="by-event")
    request("node-providers", "DeleteNodeProvider", _named, provider="by-event")
    profiles = "cluster-profiles"
    request(profiles, "CreateClusterProfile", _named, body={"name": "by-event", "version": "1.0.0", "packs": packs})
    request(
        profiles,
        "AddClusterProfileVersion",
        lambda item: _named(item) and item["version"] == "1.1.0",
        profile="by-event",
        body={"version": "1.1.0", "packs": packs},
    )
    request(profiles, "DeleteClusterProfile", _named, profile="by-event")


def _named(item: Any) -> bool:
    return bool(item["name"] == "by-event")


def _labelled(item: Any) -> bool:
    return _named(item) and bool(item["labels"])


def invoke(served: Served, function: str) -> None:
    """As a schedule does."""
    answer = served.aws("lambda").invoke(FunctionName=Names("dev").function(function), Payload=b"{}")
    assert "FunctionError" not in answer, answer["Payload"].read().decode()
