"""The product's API over a tenant in memory: its own functions, called as a client's HTTPS requests would call them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import ModuleType
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

from stockyard import wiring
from stockyard.domain.nodes.records import NodeProvider
from stockyard.domain.pools.records import Pool
from stockyard.domain.profiles.records import ClusterProfile
from stockyard.domain.records import CloudAccount, Cluster, Operation
from stockyard.edge import paths
from stockyard.operations.fleet.pools.reconcile import reconcile
from stockyard.operations.idempotency_keys import IdempotencyKeys
from stockyard.operations.listing import every
from stockyard_stack_resources.api import Reply
from tests.harness.crash.route_keys import route_key
from tests.harness.worlds.inprocess import Context

URL = "https://stockyard.test"
ISSUER = "https://keycloak.test/realms/stockyard"
CLIENT = ("pipeline", "s3cret-of-the-pipeline")
FUNCTIONS = ("clusters", "pools", "node_providers", "cloud_accounts", "cluster_profiles", "records")
ROLES = ("stockyard-operator", "stockyard-admin")


@dataclass
class Product:
    """A tenant's API. ``send`` is an ``Exchange`` of the handler's; ``secrets`` is what Secrets Manager holds."""

    world: Any
    """A tenant in memory, as the tests of operations have it."""
    modules: Mapping[str, ModuleType]
    secrets: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, str, int]] = field(default_factory=list)
    """Method, path and status of each request so far."""

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
        """Answers a request to the API or to the issuer."""
        parts = urlsplit(url)
        if url.startswith(ISSUER):
            return self._login(parts.path, body)
        if headers.get("Authorization") != "Bearer the-token":
            return Reply(401, {}, {"detail": "no token", "error_type": "Unauthorized"})
        reply = self._answer(method, parts.path, parts.query, headers, body)
        self.calls.append((method, parts.path, reply.status))
        return reply

    def _login(self, path: str, body: bytes | None) -> Reply:
        if path.endswith("/openid-configuration"):
            return Reply(200, {}, {"token_endpoint": f"{ISSUER}/token"})
        form = {name: values[0] for name, values in parse_qs((body or b"").decode()).items()}
        if (form.get("client_id"), form.get("client_secret")) != CLIENT:
            return Reply(401, {}, {"error": "invalid_client"})
        return Reply(200, {}, {"access_token": "the-token", "expires_in": 300})

    def _answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
        payload = {"sub": "svc", "organization": {"acme": {}}, "realm_access": {"roles": list(ROLES)}, "azp": CLIENT[0]}
        text = base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")
        sent = {name.lower(): value for name, value in headers.items()} | {"authorization": f"Bearer e30.{text}.sig"}
        context: dict[str, Any] = {"requestId": "r", "stage": "$default", "http": {"method": method, "path": path}}
        context["authorizer"] = {"jwt": {"claims": {"sub": "svc"}, "scopes": None}}
        event = {
            "version": "2.0",
            "routeKey": route_key(method, path, paths.methods()),
            "rawPath": path,
            "rawQueryString": query,
            "headers": sent,
            "requestContext": context,
            "body": None if body is None else body.decode(),
            "isBase64Encoded": False,
        }
        answer = self.modules[_function_of(path)].lambda_handler(event, Context("function", "request"))
        fields = {name.lower(): value for name, value in answer["headers"].items()}
        return Reply(int(answer["statusCode"]), fields, json.loads(answer["body"]) if answer.get("body") else None)

    def things(self) -> dict[str, list[str]]:
        """Names of what there is, by kind: records, and what stands in the cloud."""
        store = self.world.services.store
        names = {
            kind.__name__: sorted(str(getattr(record, "name", "")) for record in every(store, kind))
            for kind in (Cluster, Pool, NodeProvider, ClusterProfile, CloudAccount)
        }
        return {**names, "cloud": sorted(self.world.provider.things)}

    def work(self) -> None:
        """Let the operations of clusters that are begun go to their end, and pools be looked after."""
        for cluster in list(every(self.world.services.store, Cluster)):
            reconcile(self.world.services, cluster.id)
            if cluster.status == "preparing":
                self.world.drive(cluster, "provision_cluster")
            elif cluster.status == "deleting":
                self.world.drive(cluster, "delete_cluster")
            elif self._works_on(cluster) == "retag_cluster":
                self.world.drive(cluster, "retag_cluster")

    def _works_on(self, cluster: Cluster) -> str | None:
        """Kind of the operation that works on a cluster, None when none does."""
        operation = self.world.services.store.get(Operation, cluster.operation_id or "")
        return operation.kind if operation is not None and operation.status == "running" else None


def _function_of(path: str) -> str:
    parts = path.split("/")
    if parts[2] == "operations":
        return "records"
    return "pools" if "pools" in parts[4:5] else parts[2].replace("-", "_")


@contextmanager
def product() -> Iterator[Product]:
    """A new tenant's API."""
    world = import_module("tests.unit.operations.conftest").make_world()
    world.services.store.next_number("cloud-account")  # that of the account that it has
    modules = {name: import_module(f"functions.{name}.handler") for name in FUNCTIONS}
    with ExitStack() as stack:
        parts: dict[str, Any] = {"services": lambda _: world.services, "store": lambda _: world.services.store}
        for name, part in {**parts, "audit": lambda *_: None}.items():
            stack.enter_context(patch.object(wiring, name, part))
        for module in modules.values():
            dependencies = replace(
                module.http._dependencies,
                clock=world.services.clock.now,
                admit=lambda _: None,
                audit=lambda _, record: None,
                keys=lambda _: IdempotencyKeys(world.services.store),
            )
            stack.enter_context(patch.object(module.http, "_dependencies", dependencies))
            stack.enter_context(patch.object(module.http, "_origin", None))
        client = {"client_id": CLIENT[0], "client_secret": CLIENT[1]}
        yield Product(world, modules, {"client": json.dumps(client)})
