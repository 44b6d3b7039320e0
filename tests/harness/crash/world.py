"""The whole product in one thread over moto, to be crashed: real functions, documents and table, a virtual clock.

Step Functions are ``tests.harness.worlds.states``; Keycloak and vdeployer are those in memory; the tenant's cloud is a
``CrashCloud``; everything else is moto with its corrections. Nothing waits: clocks, waits, retry intervals, leases and
the hiding of new things pass on one clock.
"""

from __future__ import annotations

import base64
import gc
import json
import logging
import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import boto3
from moto import mock_aws
from moto.moto_api._internal import mock_random

from functions.cluster_phases.handler import lambda_handler as phases_handler
from functions.clusters import handler as clusters
from functions.machines import handler as machines
from functions.reaper.handler import lambda_handler as reaper_handler
from functions.relay import handler as relay
from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.tables import atomic_tables
from local.functions.invocation import Invocation, failure
from local.testing import direct_table
from local.testing.fresh_wiring import fresh_wiring
from stacks import workflows
from stockyard import wiring
from stockyard.adapters import catalog
from stockyard.adapters.telemetry import LoggedTelemetry
from stockyard.domain import records
from stockyard.domain.records import Cluster, Counter, Fact, Name, Operation, Outbox, Resource
from stockyard.domain.subject_entries import BOUNDS
from stockyard.edge import paths
from stockyard.errors import StockyardError
from stockyard.metrics import OUTBOX_REFUSED, Metric
from stockyard.operations.sweep.quiet import CALM
from stockyard.ports import Create, Put
from stockyard.wiring import passes
from tests.harness.crash.cloud import CrashCloud
from tests.harness.crash.ec2 import CrashEc2
from tests.harness.crash.faults import Crash, Intercept, Tap, Tapped, tapped_clients
from tests.harness.crash.machine_report import machine_report
from tests.harness.crash.route_keys import route_key
from tests.harness.crash.table import LEAN, CrashTable, MemoryCrashTable, MotoTable
from tests.harness.worlds.direct_aws import direct_aws
from tests.harness.worlds.inprocess import Context, credentials
from tests.harness.worlds.memory import FixedClock, MemoryAttestor, MemoryDeployer, MemoryIdentity
from tests.harness.worlds.states import ExecutionAlreadyExists, States

TENANT = "acme"
TABLE = "stockyard"
SECRETS_KEY, MACHINE_KEY = "alias/stockyard-cluster-secrets", "stockyard-machine-key"
_WORKFLOWS = ("provision", "delete", "change", "upgrade")
PREFIX = f"arn:aws:states:{REGION}:{OWN_ACCOUNT}:stateMachine:"
_ENVIRONMENT = {
    "STOCKYARD_TABLE": TABLE,
    "STOCKYARD_BUS": "stockyard",
    "STOCKYARD_API_URL": "https://api.stockyard.example",
    "STOCKYARD_ISSUER": "https://id.stockyard.example/realms/stockyard",
    "STOCKYARD_SECRETS_KEY": SECRETS_KEY,
    "STOCKYARD_MACHINE_KEY_SECRET": MACHINE_KEY,
    "STOCKYARD_WORKFLOW_PREFIX": PREFIX,
    "POWERTOOLS_LOG_LEVEL": "CRITICAL",
    # Lives follow each other faster than a tenant may ask, which is counted in real time. 0: all are served.
    "STOCKYARD_TENANT_RATE_LIMIT": "0",
    "STOCKYARD_ENDED_MINORS": "true",
}
_IDENTITY = frozenset({"create_client", "find_client", "client_secret", "delete_client", "owned_clients"})
_DEPLOYER = frozenset({"deploy"})


class TwoClusters(Exception):
    """One request has made more than one cluster."""


class CrashWorld:
    """One installation with one tenant and one verified account of a cloud. ``reset`` brings it back to its first
    state."""

    def __init__(self, cloud: CrashCloud, *, lean: bool = False) -> None:
        self._life = ExitStack()
        """What must be forgotten between two lives."""
        self.cloud = cloud
        self.clock = FixedClock()
        self._point = ""
        self.tap = Tap(self._current_point)
        self.table: CrashTable = MemoryCrashTable(self.tap) if lean else MotoTable(TABLE)
        self.identity = MemoryIdentity()
        self.deployer = MemoryDeployer()
        self.scopes: list[dict[str, Any]] = []
        self.alarms: list[str] = []  # that the relay has raised in this life
        self.states = States(self.clock, self._invoke)
        rows, documents = f"-{cloud.rows}" if cloud.rows else "", workflows.documents()
        self._names = {name: f"{name}{rows}-cluster" for name in _WORKFLOWS}
        self.documents = {name: workflows.text(documents[own]) for name, own in self._names.items() if own in documents}
        """The first word of a workflow's name -> text of its document. A test may change it before ``reset``."""

    # --- the world --------------------------------------------------------------------------------------------------

    def reset(self, seed: int, story: str = "clean") -> None:
        """A fresh cloud, clock, tap and table. The same ``seed``: the same ids, jitter and times of hiding."""
        self.empty(story)
        mock_random.seed(seed)
        self.clock.moment, self.clock._random = FixedClock().moment, random.Random(seed)
        self.vary(seed)
        self.tap.__init__(self._current_point)  # type: ignore[misc]
        factories = (wiring.registry, wiring.installation, wiring.prices, wiring._providers)
        for cached in (*factories, wiring._factories):
            cached.cache_clear()
        self.states.__init__(self.clock, self._invoke, seed)  # type: ignore[misc]
        for name, text in self.documents.items():
            self.states.create(PREFIX + self._names[name], text.replace("${cluster_phases}", "cluster_phases"))
        self.store.commit(Create(self.cloud.account("2026-01-31T12:00:00.000Z")))
        for name, value in self.cloud.secrets().items():
            wiring.secrets().put(name, value)

    def vary(self, seed: int) -> None:
        """From now on, the cloud's randomness is drawn from ``seed``."""
        self.cloud.chance = random.Random(seed)

    def repair(self) -> None:
        """A person ends everything that has gone wrong so far."""
        self.tap.lift()
        self.cloud.repair()

    def empty(self, story: str = "clean") -> None:
        """Forget everything that was made, in every account and in our table."""
        self.close()
        self._life.enter_context(self.cloud.begin(story))
        self.table.clear()
        for collection in (self.identity.clients, self.deployer.calls, self.alarms):
            collection.clear()

    def close(self) -> None:
        """Give the cloud back as it was."""
        self._life.close()

    @property
    def store(self) -> Any:
        """The tenant's store."""
        return wiring.registry().store(TENANT)

    def _current_point(self) -> str:
        current = self.states.current
        if current is not None:
            return f"{current.machine.removeprefix(PREFIX).partition('-')[0]}:{current.state}"
        return self._point

    # --- functions --------------------------------------------------------------------------------------------------

    def _invoke(self, function: str, payload: Any) -> Invocation:
        handler = {"cluster_phases": phases_handler}[function]
        try:
            answer = handler(json.loads(json.dumps(payload)), Context(function, "request"))
        except Crash:
            return failure("Runtime.ExitError", "the process ended")
        except Exception as error:  # what a Lambda runtime does with any exception
            return failure(type(error).__name__, str(error))
        return Invocation(json.dumps(answer).encode())

    @contextmanager
    def _at(self, point: str) -> Iterator[None]:
        before, self._point = self._point, point
        try:
            yield
        finally:
            self._point = before

    def call(self, point: str, handler: Any, event: dict[str, Any]) -> dict[str, Any] | None:
        """Invoke a function once, its calls known by ``point``. None when it died or ended with an error of ours."""
        with self._at(point):
            try:
                answer: dict[str, Any] = handler(event, Context(point, "request"))
            except (Crash, StockyardError):
                return None
        return answer

    def patch(self, point: str, path: str, body: Any, version: int) -> tuple[int, Any]:
        """A merge patch, sent once; 0 for no answer."""
        event = _event("PATCH", path, body, {}, point)
        event["headers"] |= {"if-match": f'"{version}"', "content-type": "application/merge-patch+json"}
        answer = self.call(point, clusters.lambda_handler, event)
        return (answer["statusCode"], json.loads(answer["body"])) if answer else (0, None)

    def ask(
        self, point: str, method: str, path: str, body: Any = None, *, key: str = "", **claims: Any
    ) -> tuple[int, Any]:
        """An HTTP request as a patient client sends it: again with the same key after 5xx, 409, 429 or no answer. The
        ``key`` is the point's where none is given."""
        handler = (machines if path.endswith(("/ready", "/bootstrap")) else clusters).lambda_handler
        event = _event(method, path, body, claims, key or f"the-{point}")
        for _ in range(6):
            answer = self.call(point, handler, event)
            status = answer["statusCode"] if answer else 0
            if answer and status < 500 and status not in (409, 429):
                return status, json.loads(answer["body"])
            self.clock.advance(61)
        return status, json.loads(answer["body"]) if answer else None

    def relay(self) -> None:
        """The stream's new records, then the minute's schedule for what was not sent."""
        fresh = [r for r in self.table.news() if any(c.kind == "Outbox" and c.created for c in passes.changes([r]))]
        if fresh:
            self.call("relay", relay.lambda_handler, {"Records": fresh})
        if self.store.list(Outbox).items:  # else the schedule does nothing
            self.clock.advance(61)
            self.call("relay", relay.lambda_handler, {})

    def measure(self, message: str, metric: Metric, value: float, **_: Any) -> None:
        """``ports.Telemetry``: what the relay refuses raises an alarm."""
        self.alarms += [message] if metric is OUTBOX_REFUSED and value > 0 else []

    def reap(self) -> dict[str, Any] | None:
        """One sweep, and the scopes that it has handed out."""
        self.scopes.clear()
        report = self.call("reaper", reaper_handler, {})
        for event in self.scopes:
            self.call("sweep_scope", reaper_handler, event)
        return report

    def invoke(self, event: Mapping[str, Any]) -> None:
        """``ports.Background``: what the sweep hands out is swept when it has ended."""
        self.scopes.append(dict(event))

    def machine_reports(self) -> None:
        """The control plane of the one cluster proves itself and posts its kubeconfig."""
        cluster = self.cluster()
        if cluster is None or not cluster.instance_id or not self.cloud.alive(cluster.instance_id):
            return
        token = self.cloud.machine_token(cluster.instance_id)
        if token is None:
            self.store.commit(Put(Fact(f"{cluster.id}/bootstrapped", cluster.instance_id, cluster.updated_at)))
        elif self.ask("machine", "POST", f"/v1/clusters/{cluster.id}/bootstrap", {"token": token})[0] != 200:
            return
        body = machine_report(cluster.endpoint)
        self.ask("machine", "POST", f"/v1/clusters/{cluster.id}/ready", body, azp=cluster.client_id, roles=())

    # --- looking ----------------------------------------------------------------------------------------------------

    def cluster(self) -> Cluster | None:
        """The tenant's one cluster."""
        page = self.store.list(Cluster)
        if len(page.items) > 1:
            raise TwoClusters([cluster.id for cluster in page.items])
        return page.items[0] if page.items else None

    def operation(self) -> Operation | None:
        """The current operation of the cluster."""
        cluster = self.cluster()
        return self.store.get(Operation, cluster.operation_id) if cluster and cluster.operation_id else None

    def things(self) -> set[tuple[str, str]]:
        """(kind, id) of all that lives in the tenant's cloud."""
        return self.cloud.things()

    def leftovers(self) -> list[str]:
        """Everything that must not be there once the cluster is deleted."""
        leftovers = [f"{kind} {name}" for kind, name in sorted(self.things())]
        leftovers += [f"keycloak client {name}" for name in self.identity.clients]
        leftovers += [f"secret {name}" for name in self.secrets()]
        for kind in (Cluster, Name, Fact, Outbox):
            items = self.store.list(kind).items
            # The tenant's notes of when a scope was swept, which the next sweep takes away, and of up to where the
            # history has entries, which stay with the history.
            leftovers += [f"{kind.__name__} {item.id}" for item in items if not item.id.startswith((CALM, BOUNDS))]
        leftovers += [f"ledger {r.id}" for r in self.store.list(Resource, limit=200).items if r.state != "gone"]
        used = self.store.get(Counter, "quota/clusters")
        return leftovers + ([f"quota {used.value}"] if used is not None and used.value else [])

    def secrets(self) -> list[str]:
        """Names of the secrets of clusters."""
        own = {name.removeprefix(f"{TENANT}/") for name in self.cloud.secrets()}
        return [secret.id for secret in self.store.list(records.SealedSecret).items if secret.id not in own]

    # --- Step Functions ---------------------------------------------------------------------------------------------

    def step_functions(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        """The part of Step Functions' API that the product calls, on ``states``."""

        def refuse(code: str) -> Exception:
            error: Exception = client.exceptions.from_code(code)({"Error": {"Code": code, "Message": code}}, operation)
            return error

        if operation == "StartExecution":
            try:
                self.states.start(parameters["stateMachineArn"], parameters["name"], json.loads(parameters["input"]))
            except ExecutionAlreadyExists:
                raise refuse("ExecutionAlreadyExists") from None
            return {}
        if operation == "SendTaskSuccess":
            if not self.states.succeed(parameters["taskToken"], json.loads(parameters["output"])):
                raise refuse("TaskTimedOut")
            return {}
        arn, name = parameters["executionArn"].replace(":execution:", ":stateMachine:").rsplit(":", 1)
        if (arn, name) not in self.states.executions:
            raise refuse("ExecutionDoesNotExist")
        if operation == "StopExecution":
            self.states.stop(arn, name)
        return {"status": self.states.executions[(arn, name)].status}


def _event(method: str, path: str, body: Any, claims: Mapping[str, Any], key: str) -> dict[str, Any]:
    roles = claims.get("roles", ("stockyard-operator",))
    payload = {"sub": "ann", "organization": {TENANT: {}}, "realm_access": {"roles": list(roles)}, **claims}
    text = base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")
    headers = {"authorization": f"Bearer e30.{text}.sig", "content-type": "application/json", "idempotency-key": key}
    context: dict[str, Any] = {"requestId": "r", "stage": "$default", "http": {"method": method, "path": path}}
    context["authorizer"] = {"jwt": {"claims": {"sub": "ann"}, "scopes": None}}
    return {
        "version": "2.0",
        "routeKey": route_key(method, path, paths.methods()),
        "rawPath": path,
        "rawQueryString": "",
        "headers": headers,
        "requestContext": context,
        "body": None if body is None else json.dumps(body),
        "isBase64Encoded": False,
    }


@contextmanager
def crash_world(
    cloud: Callable[[], CrashCloud] = CrashEc2, *, wire: bool = False, lean: bool = False
) -> Iterator[CrashWorld]:
    """The world, ready for ``reset``. With ``wire`` calls to AWS are serialized and parsed; with ``lean`` the table is
    in memory, and so are the services beside it."""
    with ExitStack() as stack:
        stack.enter_context(mock_aws())
        stack.enter_context(direct_aws(wire=wire))
        world = CrashWorld(cloud(), lean=lean)
        stack.enter_context(atomic_tables())
        stack.enter_context(direct_table.lean())
        stack.callback(world.close)
        stack.enter_context(patch.dict(os.environ, _ENVIRONMENT))
        stack.enter_context(credentials(OWN_ACCOUNT))
        stack.enter_context(fresh_wiring())
        direct_table.make(TABLE)
        client: Callable[..., Any] = boto3.client
        client("events", region_name=REGION).create_event_bus(Name="stockyard")
        keys = client("kms", region_name=REGION)
        keys.create_alias(AliasName=SECRETS_KEY, TargetKeyId=keys.create_key()["KeyMetadata"]["KeyId"])
        client("secretsmanager", region_name=REGION).create_secret(Name=MACHINE_KEY, SecretString="the machines' key")
        wiring.machine_key()  # it is kept for minutes of real time, so no life reads it
        stack.enter_context(patch.object(wiring, "clock", lambda: world.clock))
        stack.enter_context(patch.object(LoggedTelemetry, "measure", world.measure))
        identity = Tapped(world.identity, world.tap, "identity", _IDENTITY)
        stack.enter_context(patch.object(wiring, "identity", lambda: identity))
        deployer = Tapped(world.deployer, world.tap, "deployer", _DEPLOYER)
        background = Tapped(world, world.tap, "lambda", frozenset({"invoke"}))
        stack.enter_context(patch.object(wiring, "background", lambda: background))
        stack.enter_context(patch.object(wiring, "_deployer", lambda: deployer))
        stack.enter_context(patch.object(wiring, "attestor", MemoryAttestor))
        # Real time passes while a life waits for those that have forked from it: nothing may be read again for that.
        for name in ("_KEEP_NOTHING_SECONDS", "_KEEP_SPOT_SECONDS"):
            stack.enter_context(patch.object(catalog, name, catalog._KEEP_SECONDS))
        for function in (clusters.http, machines.http):
            dependencies = replace(function._dependencies, clock=world.clock.now, randomness=world.clock.randomness)
            stack.enter_context(patch.object(function, "_dependencies", dependencies))
        intercepts: dict[str, Intercept] = {
            f"dynamodb.{action}": direct_table.intercepted for action in direct_table.ACTIONS
        }
        intercepts |= {"stepfunctions": world.step_functions, "dynamodb.DescribeTable": direct_table.described}
        if lean:
            intercepts |= LEAN
            stack.enter_context(patch.object(wiring, "registry", cache(lambda: world.table)))
        stack.enter_context(tapped_clients(world.tap, intercepts))
        stack.enter_context(world.cloud.installed(world.tap, world.clock))
        gc.collect()
        gc.freeze()  # a life makes much garbage; all modules would be searched for it each time
        stack.callback(gc.unfreeze)
        stack.callback(gc.set_threshold, *gc.get_threshold())
        gc.set_threshold(20_000, 10, 50)
        logging.disable(logging.CRITICAL)
        stack.callback(logging.disable, logging.NOTSET)
        yield world
