"""The served API, tokens of every kind, and the operations of ``openapi.json`` over which the tests run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from local import openapi as generator
from local.cloud import LocalCloud
from local.functions.gateway import Gateway
from tests.harness.crash.machine_report import machine_report

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "openapi.json"
ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin", "stockyard-platform")
UNKNOWN = "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV"


@dataclass(frozen=True)
class Operation:
    """One method of one path, as the document has it."""

    method: str
    path: str
    roles: tuple[str, ...]
    machine: bool
    public: bool
    platform: bool = False
    parameters: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def at(self, value: str = UNKNOWN) -> str:
        """The path with ``value`` as its parameter."""
        return self.path.replace("{id}", value).replace("{name}", value)


def inlined(part: Mapping[str, Any], document: Mapping[str, Any]) -> Any:
    """A parameter or an answer of a document. A reference to the components is resolved."""
    if "$ref" not in part:
        return part
    _, _, kind, name = part["$ref"].split("/")
    return document["components"][kind][name]


def operations() -> list[Operation]:
    """Every operation of the committed document."""
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    return [
        Operation(
            method.upper(),
            path,
            tuple(declaration["x-stockyard-roles"]),
            declaration.get("x-stockyard-machine", False),
            declaration.get("security") == [],
            declaration.get("x-stockyard-platform", False),
            tuple(inlined(parameter, document)["name"] for parameter in declaration["parameters"]),
        )
        for path, methods in document["paths"].items()
        for method, declaration in methods.items()
    ]


CHOICES: Mapping[str, Callable[[Operation], bool]] = {
    "operation": lambda operation: True,
    "guarded": lambda operation: not operation.public,
    "closed_to_platform": lambda operation: not operation.public and "stockyard-platform" not in operation.roles,
    "with_id": lambda operation: "{id}" in operation.path and not operation.public,
    "listing": lambda operation: operation.method == "GET" and "{" not in operation.path and not operation.public,
    "paged": lambda operation: "page_token" in operation.parameters and "{" not in operation.path,
}
"""Names of groups of operations that tests run over."""


@dataclass(frozen=True)
class Api:
    """The local cloud's API: calls, and tokens that its identity server signs."""

    cloud: LocalCloud
    client: httpx.Client

    def call(
        self, operation: Operation, token: str | None, *, at: str = UNKNOWN, query: str = "", tenant: str | None = None
    ) -> httpx.Response:
        """Calls one operation with the smallest valid request that reaches the decision about access."""
        headers = {"If-Match": '"1"'} if "If-Match" in operation.parameters else {}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if tenant is not None:
            headers["X-Stockyard-Tenant"] = tenant
        body: Any = BODIES.get(str(operation), {} if operation.method == "PATCH" else None)
        return self.send(operation.method, operation.at(at) + query, headers, body)

    def send(self, method: str, path: str, headers: Mapping[str, str], body: Any = None) -> httpx.Response:
        """Sends a request unchanged; ``body`` is a document, or the bytes themselves."""
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        return self.client.request(method, path, headers=headers, **content)

    def token(self, tenant: str = "acme", *roles: str, **more: Any) -> str:
        """A token of a person of ``tenant``."""
        return self.cloud.identity.token(tenant, roles, **more)

    def signed(self, claims: Mapping[str, Any]) -> str:
        """A signed token with the claims of a valid one, changed by ``claims``. The value ``None`` removes a claim."""
        good = self.claims(self.token("acme", *ROLES[:3]))
        merged = {**good, **claims}
        return self.cloud.identity.realm._key.sign({key: value for key, value in merged.items() if value is not None})

    def claims(self, token: str) -> dict[str, Any]:
        """The claims of a token that this identity server signed."""
        claims = self.cloud.identity.realm._key.verified(token)
        assert claims is not None
        return claims


BODIES: Mapping[str, Any] = {
    "PATCH /v1/clusters/{id}/repave": {"approved": True},
    "POST /v1/clusters/{id}/pools": {"name": "workers", "quantity": 1},
    "POST /v1/placements": {"manifests": [{"kind": "Pod", "metadata": {"name": "a"}, "spec": {}}]},
    "POST /v1/simulations": {
        "until": "1h",
        "events": [{"at": "0s", "arrive": [{"kind": "Pod", "metadata": {"name": "a"}, "spec": {}}]}],
    },
    "POST /v1/clusters/{id}/ready": machine_report("https://k"),
    "POST /v1/clusters/{id}/kubeconfig-secrets": {},
    "POST /v1/clusters/{id}/bootstrap": {"method": "POST", "url": "https://sts.amazonaws.com/", "headers": {}},
    "POST /v1/clusters/{id}/observations": {
        "sequence": 1,
        "observed_at": "2026-01-01T00:00:00.000Z",
        "agent_version": "1",
        "kubernetes_version": "v1.34.1",
        "ca_hash": "sha256:" + "0" * 64,
        "nodes": [],
    },
    "POST /v1/clusters/{id}/pending-pods": {
        "sequence": 1,
        "observed_at": "2026-01-01T00:00:00.000Z",
        "agent_version": "1",
        "groups": {},
        "pending": {},
    },
    "POST /v1/node-claims/{id}/join": {
        "method": "POST",
        "url": "https://sts.amazonaws.com/",
        "headers": {},
        "cluster_id": "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV",
    },
    "POST /v1/node-claims/{id}/member-reports": {
        "method": "POST",
        "url": "https://sts.amazonaws.com/",
        "headers": {},
        "cluster_id": "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "state": "joined",
    },
    "POST /v1/clusters/{id}/boot-reports": {
        "method": "GET",
        "url": "https://sts.amazonaws.com/",
        "headers": {},
        "step": "init",
    },
    "POST /v1/clusters/{id}/snapshot-reports": {"method": "GET", "url": "https://sts.amazonaws.com/", "headers": {}},
    "POST /v1/clusters/{id}/restore": {"snapshot": "latest"},
    "POST /v1/node-claims/{id}/boot-reports": {
        "method": "GET",
        "url": "https://sts.amazonaws.com/",
        "headers": {},
        "cluster_id": "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "step": "join",
    },
    "POST /v1/node-claims/{id}/interruptions": {
        "method": "GET",
        "url": "https://sts.amazonaws.com/",
        "headers": {},
        "cluster_id": "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "kind": "interruption",
        "time": "2026-01-01T00:00:00Z",
    },
    "POST /v1/clusters": {},
    "POST /v1/cloud-accounts": {},
    "PUT /v1/quotas/{name}": {"limit": 20},
    "POST /v1/node-providers": {},
    "POST /v1/node-claims": {"cluster": UNKNOWN},
    "POST /v1/node-claims/{id}/power": {"state": "On"},
    "POST /v1/apply": {},
    "POST /v1/cluster-profiles": {
        "name": "a",
        "version": "1.0.0",
        "packs": [{"layer": "k8s", "name": "kubernetes", "tag": "1.34"}],
    },
    "PUT /v1/cluster-profiles/{id}": {
        "version": "1.0.0",
        "packs": [{"layer": "k8s", "name": "kubernetes", "tag": "1.34"}],
    },
    "PUT /v1/clusters/{id}/profiles": {"profiles": []},
    "POST /v1/sites": {"name": "a"},
    "POST /v1/sites/{id}/exchange": {"version": "1", "wants": 1},
    "PUT /v1/allowed-node-types": {"allowed": None},
    "PUT /v1/disruption": {"paused": True},
    "PUT /v1/clusters/{id}/disruption": {"paused": True},
    "PUT /v1/event-accounts": {"accounts": ["999999999999"]},
}


@contextmanager
def served(home: Path) -> Iterator[Api]:
    """A local cloud in this process, without schedules and limits."""
    with (
        LocalCloud(home=home, schedules=False, limits=False) as cloud,
        httpx.Client(base_url=cloud.url, timeout=60) as client,
    ):
        yield Api(cloud, client)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A local cloud for the tests of one file. It is stopped after the file's last test."""
    with served(tmp_path_factory.mktemp("cloud")) as served_api:
        yield served_api


@pytest.fixture(scope="module")
def broken(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Api]]:
    """Makes the same API with a deliberate fault: the code ``fault`` runs in the real functions before their handlers.

    ``authorizer`` replaces the authorizer of the gateway.
    """
    with ExitStack() as stack:

        def make(fault: str = "", authorizer: Any = None) -> Api:
            folder, functions = tmp_path_factory.mktemp("broken"), api.cloud.functions
            routes = []
            for route in api.cloud.gateway._routes:
                route_authorizer = authorizer if authorizer and route.authorizer else route.authorizer
                name = f"{route.function}-{folder.name}" if fault else route.function
                routes.append(replace(route, function=name, authorizer=route_authorizer))
                if name not in functions.names():
                    real = functions.definition(route.function)
                    module, _, handler = real.handler.rpartition(".")
                    (folder / f"{name.replace('-', '_')}.py").write_text(f"{fault}\nfrom {module} import {handler}\n")
                    path = f"{real.environment['PYTHONPATH']}:{folder}"
                    functions.define(
                        replace(
                            real,
                            name=name,
                            handler=f"{name.replace('-', '_')}.{handler}",
                            environment={**real.environment, "PYTHONPATH": path},
                        )
                    )
            gateway = Gateway(functions)
            stack.callback(gateway.close)
            gateway.serve(routes)
            return Api(api.cloud, stack.enter_context(httpx.Client(base_url=gateway.url, timeout=60)))

        yield make


@pytest.fixture(scope="session")
def all_operations() -> list[Operation]:
    """Every operation of the document."""
    return operations()


@pytest.fixture(scope="session")
def operations_by_choice(all_operations: list[Operation]) -> Mapping[str, list[Operation]]:
    """The operations of each group of ``CHOICES``."""
    return {name: [operation for operation in all_operations if choice(operation)] for name, choice in CHOICES.items()}


@pytest.fixture(scope="session")
def check_all_declared() -> Callable[[Iterable[Operation]], None]:
    """A check that operations are exactly what the functions declare: routes, roles, machine callers."""
    from stockyard.edge.identity import ROLE_NAMES

    declared = {
        (
            route.name,
            tuple(name for name, role in ROLE_NAMES.items() if role & route.roles),
            route.machine,
            bool(route.open_because),
        )
        for function in generator.functions()
        for route in function.routes
    }

    def check(checked: Iterable[Operation]) -> None:
        assert {
            (str(operation), operation.roles, operation.machine, operation.public) for operation in checked
        } == declared

    return check


@pytest.fixture(scope="session")
def document_path() -> Path:
    """Path of the committed document."""
    return DOCUMENT
