"""The served API, tokens of every kind, and the operations of ``openapi.json``, from which the matrices are made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.cloud import LocalCloud
from local.gateway import Gateway

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "openapi.json"
FUNCTIONS = ("clusters", "cloud_accounts", "node_providers", "node_claims", "apply", "records", "machines")
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


def operations() -> list[Operation]:
    """Every operation of the committed document."""
    paths = json.loads(DOCUMENT.read_text(encoding="utf-8"))["paths"]
    return [
        Operation(
            method.upper(),
            path,
            tuple(one["x-stockyard-roles"]),
            one["x-stockyard-machine"],
            one.get("security") == [],
            one["x-stockyard-platform"],
            tuple(parameter["name"] for parameter in one["parameters"]),
        )
        for path, methods in paths.items()
        for method, one in methods.items()
    ]


CHOICES: Mapping[str, Callable[[Operation], bool]] = {
    "operation": lambda one: True,
    "guarded": lambda one: not one.public,
    "closed_to_platform": lambda one: not one.public and "stockyard-platform" not in one.roles,
    "with_id": lambda one: "{id}" in one.path and not one.public,
    "listing": lambda one: one.method == "GET" and "{" not in one.path and not one.public,
    "paged": lambda one: "page_token" in one.parameters,
}
"""Names of arguments that run over all operations, or over some."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test over the operations that its argument's name stands for."""
    for name, chosen in CHOICES.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, [one for one in operations() if chosen(one)], ids=str)


@dataclass(frozen=True)
class Api:
    """The local cloud's API: calls, and tokens that its identity server signs."""

    cloud: LocalCloud
    client: httpx.Client

    def call(
        self, operation: Operation, token: str | None, *, at: str = UNKNOWN, query: str = "", tenant: str | None = None
    ) -> httpx.Response:
        """One operation with the least that lets it come to its decision, changing nothing where it may not."""
        headers = {"If-Match": '"1"'} if "If-Match" in operation.parameters else {}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if tenant is not None:
            headers["X-Stockyard-Tenant"] = tenant
        body: Any = {} if operation.method == "PATCH" else BODIES.get(str(operation))
        return self.send(operation.method, operation.at(at) + query, headers, body)

    def send(self, method: str, path: str, headers: Mapping[str, str], body: Any = None) -> httpx.Response:
        """A request as it is; ``body`` is a document, or the bytes themselves."""
        given = {"content": body} if isinstance(body, bytes) else {"json": body}
        return self.client.request(method, path, headers=headers, **given)

    def token(self, tenant: str = "acme", *roles: str, **more: Any) -> str:
        """A token of a person of ``tenant``."""
        return self.cloud.identity.token(tenant, roles, **more)

    def signed(self, claims: Mapping[str, Any]) -> str:
        """A token of exactly these claims on top of a good one's; ``None`` removes one."""
        good = self.claims(self.token("acme", *ROLES[:3]))
        merged = {**good, **claims}
        return self.cloud.identity.realm._key.sign({key: value for key, value in merged.items() if value is not None})

    def claims(self, token: str) -> dict[str, Any]:
        """What a token of ours says."""
        found = self.cloud.identity.realm._key.verified(token)
        assert found is not None
        return found


KUBECONFIG = "{clusters: [{name: k, cluster: {server: 'https://k'}}], users: [{name: k, user: {token: k}}]}"
"""The least that a machine's report may hold."""

BODIES: Mapping[str, Any] = {
    "POST /v1/clusters/{id}/ready": {"kubeconfig": KUBECONFIG, "certificate_authority": "c"},
    "POST /v1/clusters/{id}/bootstrap": {"method": "POST", "url": "https://sts.amazonaws.com/", "headers": {}},
    "POST /v1/clusters/{id}/observations": {
        "sequence": 1,
        "observed_at": "2026-01-01T00:00:00.000Z",
        "agent_version": "1",
        "kubernetes_version": "v1.34.1",
        "ca_hash": "sha256:" + "0" * 64,
        "nodes": [],
    },
    "POST /v1/node-claims/{id}/join": {
        "method": "POST",
        "url": "https://sts.amazonaws.com/",
        "headers": {},
        "cluster_id": "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV",
    },
    "POST /v1/clusters": {},
    "POST /v1/cloud-accounts": {},
    "PUT /v1/quotas/{name}": {"limit": 20},
    "POST /v1/node-providers": {},
    "POST /v1/node-claims": {"cluster": UNKNOWN},
    "POST /v1/node-claims/{id}/power": {"state": "On"},
    "POST /v1/apply": {},
    "PUT /v1/allowed-node-types": {"allowed": None},
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
    """A local cloud for the tests of a file. Its threads end with them and disturb nobody else's."""
    with served(tmp_path_factory.mktemp("cloud")) as made:
        yield made


@pytest.fixture(scope="module")
def broken(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Api]]:
    """Makes the same API with a deliberate fault: the real functions, before whose handlers ``fault`` runs.

    ``authorizer`` takes the place of the gateway's.
    """
    with ExitStack() as stack:

        def make(fault: str = "", authorizer: Any = None) -> Api:
            folder, functions = tmp_path_factory.mktemp("broken"), api.cloud.functions
            routes = []
            for route in api.cloud.gateway._routes:
                chosen = authorizer if authorizer and route.authorizer else route.authorizer
                name = f"{route.function}-{folder.name}" if fault else route.function
                routes.append(replace(route, function=name, authorizer=chosen))
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
def chosen(all_operations: list[Operation]) -> Mapping[str, list[Operation]]:
    """What each argument's name stands for."""
    return {name: [one for one in all_operations if choice(one)] for name, choice in CHOICES.items()}


@pytest.fixture(scope="session")
def whole() -> Callable[[Iterable[Operation]], None]:
    """The check that operations are exactly what the functions declare: their routes, roles and doors for machines."""
    from stockyard.edge.identity import ROLE_NAMES

    routes = [route for name in FUNCTIONS for route in import_module(f"functions.{name}.routes").door.routes]
    declared = {
        (
            route.name,
            tuple(name for name, role in ROLE_NAMES.items() if role & route.roles),
            route.machine,
            not route.token,
        )
        for route in routes
    }

    def check(given: Iterable[Operation]) -> None:
        assert {(str(one), one.roles, one.machine, one.public) for one in given} == declared

    return check


@pytest.fixture(scope="session")
def document_path() -> Path:
    """Where the committed document is."""
    return DOCUMENT
