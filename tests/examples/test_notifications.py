"""The example of notifications tells of what fails, by mail and in a chat, and of nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from threading import Thread
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.sns.models import sns_backends

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.buses import heard_buses
from local.loopback import LoopbackServer
from tests.harness.stories.event_examples import deploy
from tests.harness.worlds.inprocess import credentials

MESSAGE = 'Phase "network" failed: a \\ and "quotes"'


class _Chat(LoopbackServer):
    messages: list[Any]


class _Handler(BaseHTTPRequestHandler):
    server: _Chat

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Keep a message."""
        self.server.messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()


@pytest.fixture
def chat() -> Iterator[_Chat]:
    server = _Chat(("127.0.0.1", 0), _Handler)
    server.messages = []
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


def detail(after: str | None, reason: str, tenant: str = "acme") -> dict[str, Any]:
    phase = {"before": "running", "after": after}
    return {"tenant": tenant, "subject": "op_1", "phase": phase, "reason": reason, "message": MESSAGE}


def test_failures_are_told_by_mail_and_in_a_chat(chat: _Chat) -> None:
    with mock_aws(), heard_buses(lambda *_: None), credentials(OWN_ACCOUNT):
        boto3.client("events").create_event_bus(Name="stockyard-prod")
        webhook = f"http://127.0.0.1:{chat.server_address[1]}/hook"
        values = {"Tenant": "acme", "Mail": "ann@example.com", "Webhook": webhook}
        deployed = deploy(boto3.client, OWN_ACCOUNT, "notifications/alerts.yaml", **values)
        events = [
            ("Operation", detail("failed", "VendorRefused")),
            ("NodeClaim", detail("Failed", "LaunchRefused")),
            ("Quota", detail(None, "BudgetReached")),
            ("Operation", detail("succeeded", "Succeeded")),
            ("Operation", detail("failed", "VendorRefused", tenant="globex")),
            ("RequestFailed", detail("failed", "VendorRefused")),
        ]
        for kind, body in events:
            text = json.dumps(body)
            boto3.client("events").put_events(
                Entries=[{"EventBusName": "stockyard-prod", "Source": "stockyard", "DetailType": kind, "Detail": text}]
            )
        topic = sns_backends[OWN_ACCOUNT][REGION].topics[deployed.refs["Alerts"]]
        mails = [sent[1] for sent in topic.sent_notifications]
    reasons = ["Operation op_1: VendorRefused", "NodeClaim op_1: LaunchRefused", "Quota op_1: BudgetReached"]
    assert mails == [f"{reason}. {MESSAGE}" for reason in reasons]
    assert [message["text"] for message in chat.messages] == [MESSAGE] * 3
    (section, context) = chat.messages[0]["blocks"]
    assert section["text"]["text"] == MESSAGE
    assert [element["text"] for element in context["elements"]] == ["Operation", "op_1", "VendorRefused"]
    (role,) = deployed.roles["ChatRole"]
    assert role["Action"] == "events:InvokeApiDestination"
