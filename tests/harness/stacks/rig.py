"""A runner of CloudFormation, the handler of the constructs, and the product's API, wired to each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from local.cloudformation import Fault, Provider, Runner
from local.cloudformation.timeline import Timeline
from stockyard_stack_resources.api import Api, Exchange, Login
from stockyard_stack_resources.handler import Handler
from stockyard_stack_resources.life import Life
from stockyard_stack_resources.proofs import by_secret
from stockyard_stack_resources.stack import looking
from tests.harness.stacks.product import ISSUER, URL, Product, product

LIMIT = timedelta(minutes=55)
TOKEN = "arn:aws:lambda:us-east-1:222222222222:function:framework"


@dataclass
class Rig:
    """Parts that a test needs."""

    product: Product
    runner: Runner
    timeline: Timeline

    @property
    def requests(self) -> list[tuple[str, str]]:
        """Type and logical id of each request so far."""
        sent = (pending.request for pending in self.runner.requests.sent)
        return [(request["RequestType"], request["LogicalResourceId"]) for request in sent]

    def settle(self) -> None:
        """Let everything that is still under way happen, for eight hours."""
        self.timeline.run(lambda: False, 8 * 3600)


class _CloudFormation:
    """A client of boto3, as far as the handler uses it."""

    class exceptions:  # noqa: N801 - a client's own word
        ClientError = ClientError

    def __init__(self) -> None:
        self.runner: Runner | None = None

    def describe_stack_resource(self, **arguments: str) -> dict[str, Any]:
        assert self.runner is not None
        return self.runner.describe_stack_resource(**arguments)


@contextmanager
def rig(
    fault: Fault = lambda _: False,
    *,
    through: Callable[[Exchange], Exchange] = lambda send: send,
    at_work: Callable[[Product], None] = Product.work,
    notes_failed_ids: bool = False,
) -> Iterator[Rig]:
    """A new region with a tenant. ``through`` stands between the handler and the API, ``at_work`` is what Stockyard
    does while time passes."""
    with product() as served:
        timeline = Timeline(moment=served.world.clock.now())

        def passed(seconds: float) -> None:
            served.world.clock.advance(seconds)
            at_work(served)

        timeline.passed = passed
        send = through(served.send)

        proof = by_secret(served.secrets.__getitem__, "client")
        login = Login(ISSUER, proof, send, lambda: timeline.now().timestamp())
        client = _CloudFormation()
        life = Life(Api(URL, login, send), served.secrets.__getitem__, timeline.now)
        handler = Handler(life, looking(client), LIMIT, timeline.now)
        provider = Provider(handler.on_event, handler.is_complete, timeline, 20.0, LIMIT.total_seconds(), fault)
        runner = client.runner = Runner(provider, timeline, fault, notes_failed_ids)
        yield Rig(served, runner, timeline)


def template(**resources: Any) -> dict[str, Any]:
    """A template of custom resources: logical id -> (kind, document, more properties)."""
    return {"Resources": {name: _resource(*parts) for name, parts in resources.items()}}


def _resource(kind: str, document: Any, more: dict[str, Any] | None = None) -> dict[str, Any]:
    text = document if isinstance(document, dict) and "Fn::Join" in document else json.dumps(document)
    properties = {"ServiceToken": TOKEN, "Kind": kind, "Document": text, **(more or {})}
    return {"Type": f"Custom::Stockyard{kind}", "Properties": properties}
