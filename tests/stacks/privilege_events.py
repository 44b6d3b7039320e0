"""Requests by events, and whose events are requests: a part of the run in :mod:`tests.stacks.privilege_run`."""

from __future__ import annotations

import json
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
        answer = served.call("PUT", "/v1/event-accounts", {"accounts": accounts}, headers=headers, token=token)
        assert answer.status == 200, answer.text
    assert served.call("GET", "/v1/event-accounts").body["version"] == 3


def send_events(served: Served, body: dict[str, Any], with_key: int) -> None:
    """A creation by an event, and a deletion by another while it runs; and one that the cloud's own lists refuse."""
    client = served.aws("events", ACME_ACCOUNT)
    bus = f"arn:aws:events:{REGION}:{OWN_ACCOUNT}:event-bus/{Names('dev').bus}"

    def send(kind: str, detail: dict[str, Any]) -> None:
        entry = {"Source": "stockyard.request", "DetailType": kind, "Detail": json.dumps(detail), "EventBusName": bus}
        assert client.put_events(Entries=[entry])["FailedEntryCount"] == 0

    def named() -> dict[str, Any] | None:
        items = served.call("GET", "/v1/clusters").body["items"]
        return next((item for item in items if item["name"] == "by-event"), None)

    unsold = cudo_body(with_key)
    unsold["settings"]["autoscaler_node_groups"][0]["machine_type"] = "none"
    send("CreateCluster", {"body": unsold})
    send("CreateCluster", {"body": {**body, "name": "by-event"}})
    cluster = served.wait("the cluster of the event", named)
    send("DeleteCluster", {"cluster": cluster["id"]})
    served.wait("its deletion", lambda: named() is None)


def invoke(served: Served, function: str) -> None:
    """As a schedule does."""
    answer = served.aws("lambda").invoke(FunctionName=Names("dev").function(function), Payload=b"{}")
    assert "FunctionError" not in answer, answer["Payload"].read().decode()
