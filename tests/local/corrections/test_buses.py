"""Events on a bus reach the listener, with the sender's account in the envelope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import boto3
from moto import mock_aws

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.buses import heard_buses
from tests.harness.worlds.inprocess import credentials

BUS = f"arn:aws:events:{REGION}:{OWN_ACCOUNT}:event-bus/stockyard"


def test_events_of_both_accounts_reach_the_listener_of_our_bus() -> None:
    heard: list[tuple[str, Mapping[str, Any]]] = []
    entry: Any = {"Source": "stockyard.request", "DetailType": "CreateCluster", "Detail": '{"body": {}}'}
    with mock_aws(), heard_buses(lambda bus, event: heard.append((bus, event))):
        with credentials(OWN_ACCOUNT):
            boto3.client("events").create_event_bus(Name="stockyard")
            first: Any = boto3.client("events")
            first.put_events(Entries=[dict(entry, EventBusName="stockyard")])
        with credentials("222222222222"):
            client: Any = boto3.client("events")
            good = client.put_events(Entries=[dict(entry, EventBusName=BUS)])
            bad = client.put_events(Entries=[dict(entry, EventBusName=BUS + "-none")])
    assert [bus for bus, _ in heard] == [BUS, BUS]
    assert [event["account"] for _, event in heard] == [OWN_ACCOUNT, "222222222222"]
    assert heard[1][1]["id"] == good["Entries"][0]["EventId"]
    assert heard[1][1]["detail"] == {"body": {}}
    assert bad["Entries"][0]["ErrorCode"] == "ResourceNotFoundException"
