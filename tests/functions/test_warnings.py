"""Warnings of a dry run come in the real run as well: over the routes that make or change things."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from functions.apply import handler as apply
from functions.cluster_profiles import handler as profiles
from functions.clusters import handler as clusters
from functions.node_claims import handler as claims
from functions.node_providers import handler as providers
from functions.pools import handler as pools
from stockyard.domain.records import CloudAccount, NodeProvider
from stockyard.ports import Finding
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.asking import Ask, asking
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.clusters.balanced_world import WEB, BalancedWorld, balanced_world
from tests.unit.operations.clusters.managed_world import GPU, ManagedWorld, managed_world
from tests.unit.operations.nodes import Nodes

MODULES = {
    "pools": pools,
    "node-claims": claims,
    "node-providers": providers,
    "cluster-profiles": profiles,
    "apply": apply,
    "clusters": clusters,
}
LIVE = {"pointer": "/settings", "detail": "The account is nearly full."}
SMALL = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1, "maxCapacity": 1}
PROVIDER = {"name": "lab", "kind": "simulated", "spec": {"nodeTypes": [SMALL]}}
NO_TYPES = {"spec": {"nodeTypes": []}}
OWN_POOL = {"name": "own", "quantity": 0, "provider": "lab"}
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
PACK = {
    "name": "app",
    "tag": "1.0.0",
    "layer": "addon",
    "namespace": "app",
    "manifests": [{"name": "a", "content": CONFIG}],
}

State = ManagedWorld | BalancedWorld


def module_of(path: str) -> ModuleType:
    """The handler that serves a path."""
    return next(module for name, module in MODULES.items() if f"/{name}" in path)


@pytest.fixture(params=["eks", "ec2"])
def state(request: pytest.FixtureRequest) -> State:
    """A ready cluster with a control plane of the cloud's own, or on machines."""
    return managed_world() if request.param == "eks" else balanced_world()


@pytest.fixture
def managed() -> ManagedWorld:
    return managed_world()


@pytest.fixture
def ask(request: pytest.FixtureRequest) -> Iterator[Ask]:
    name = "state" if "state" in request.fixturenames else "managed"
    world = request.getfixturevalue(name).world
    world.services = Nodes.of(world.registry, world.services, world.clock).services
    with asking(lambda: world.services, module_of, *MODULES.values()) as call:
        yield call


def warnings(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The warnings of an answer: of the plan, or of what was made and of each result."""
    answers = [document.get("plan", document), *document.get("results", ())]
    return sorted((entry["pointer"], entry["detail"]) for answer in answers for entry in answer.get("warnings", ()))


def both(ask: Ask, method: str, path: str, body: Any, version: int = 0) -> list[tuple[str, str]]:
    """The warnings of the dry run and of the real run, which are the same."""
    planned = ask(method, path, body, version=version, dry_run=True)
    assert planned.status == 200, planned.json
    done = ask(method, path, body, version=version)
    assert done.status in (200, 201, 202), done.json
    assert warnings(done.json) == warnings(planned.json)
    return warnings(done.json)


def fewer(state: State) -> dict[str, Any]:
    """A patch that takes the nodes of a group away."""
    if isinstance(state, ManagedWorld):
        state.make_claims("l4", 2)
        return state.groups({"name": "system"}, {**GPU, "max_size": 1})
    return state.groups({**WEB, "min_size": 1, "max_size": 1})


CHANGES: dict[str, tuple[Callable[[State], dict[str, Any]], str]] = {
    "upgrade": (lambda _: {"kubernetes_version": "1.35"}, "The control plane is upgraded first"),
    "fewer nodes": (fewer, "drained and given back"),
    "mirror": (lambda _: {"settings": {"mirror": False}}, ""),
    "description": (lambda _: {"description": "other"}, ""),
    "tags": (lambda _: {"tags": {"team": "a"}}, ""),
}


@pytest.mark.parametrize("live", [False, True], ids=["quiet", "warned"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_cluster_warns_of_what_its_plan_warns_of(state: State, ask: Ask, change: str, live: bool) -> None:
    patch, remark = CHANGES[change]
    body = patch(state)
    state.provider.findings = [Finding(**LIVE, warning=True)] if live else []
    remarks = both(ask, "PATCH", f"/v1/clusters/{state.id}", body, state.cluster.version)
    assert any(remark in detail for _, detail in remarks) == bool(remark)
    is_checked = bool(remark)
    assert ((LIVE["pointer"], LIVE["detail"]) in remarks) == (live and is_checked)


@pytest.mark.parametrize("live", [False, True], ids=["quiet", "warned"])
def test_a_creation_of_a_cluster_warns_of_what_its_plan_warns_of(state: State, ask: Ask, live: bool) -> None:
    state.provider.findings = [Finding(**LIVE, warning=True)] if live else []
    settings = {name: value for name, value in state.cluster.settings.items() if name in ("region_name", "key_pair")}
    body = {
        "name": "other",
        "description": "a cluster",
        "cloud_account_id": 1,
        "cluster_type": "k8s",
        "driver": state.cluster.driver,
        "settings": settings,
    }
    assert ((LIVE["pointer"], LIVE["detail"]) in both(ask, "POST", "/v1/clusters", body)) == live


@dataclass(frozen=True)
class Row:
    """A request, whose version is that of the resource in ``before``, and a part of a warning; empty for none."""

    method: str
    path: str
    body: Any
    remark: str = ""
    before: tuple[tuple[str, str, Any], ...] = ()
    version: int = 0


LAB = ("POST", "/v1/node-providers", PROVIDER)
POOLS = "/v1/clusters/demo/pools"
CLAIM = {"cluster": "demo", "name": "one"}


def document(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "stockyard/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


LAB_DOCUMENT = document("NodeProvider", "lab", simulated={"nodeTypes": [SMALL]})
EMPTY = document("NodeProvider", "lab", simulated={"nodeTypes": []})
EKS = {
    "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
    "kind": "EKSCluster",
    "metadata": {"name": "demo"},
    "spec": {
        "region": "us-east-1",
        "nodePools": [{"name": "system", "role": "System", "instanceType": "m6i.xlarge", "nodeCount": 2}],
    },
}
PROFILE = {"name": "base", "version": "1.0.0", "cloud": "any", "packs": [PACK]}
ROWS = {
    "pool": Row("POST", POOLS, OWN_POOL, before=(LAB,)),
    "pool that no node fits": Row("POST", POOLS, {"name": "own", "limits": {"cpu": 1}}, "No node fits", (LAB,)),
    "pool's label": Row("PATCH", f"{POOLS}/own", {"labels": {"a": "b"}}, "", (LAB, ("POST", POOLS, OWN_POOL)), 1),
    "claim": Row("POST", "/v1/node-claims", CLAIM, "it will wait"),
    "claim with a node": Row("POST", "/v1/node-claims", CLAIM, before=(LAB,)),
    "claim's label": Row(
        "PATCH", "/v1/node-claims/one", {"labels": {"a": "b"}}, "", (("POST", "/v1/node-claims", CLAIM),), 1
    ),
    "provider": Row("POST", "/v1/node-providers", PROVIDER),
    "provider without types": Row(
        "POST", "/v1/node-providers", {**PROVIDER, "spec": {"nodeTypes": []}}, "no node types"
    ),
    "provider's types": Row("PATCH", "/v1/node-providers/lab", NO_TYPES, "no node types", (LAB,), 1),
    "provider's name": Row("PATCH", "/v1/node-providers/lab", {"display_name": "L"}, "", (LAB,), 1),
    "applied claim and pool": Row(
        "POST",
        "/v1/apply",
        [document("NodeClaim", "one", cluster="demo"), document("Pool", "own", cluster="demo", limits={"cpu": 1})],
        "it will wait",
    ),
    "applied claims, of which one is too many": Row(
        "POST",
        "/v1/apply",
        [document("NodeClaim", name, cluster="demo") for name in ("one", "two")],
        before=(LAB,),
    ),
    "applied with their provider": Row(
        "POST",
        "/v1/apply",
        [
            LAB_DOCUMENT,
            document("NodeClaim", "one", cluster="demo", type="lab.small"),
            document("Pool", "own", cluster="demo", provider="lab", limits={"cpu": 1}),
        ],
    ),
    "applied provider": Row("POST", "/v1/apply", [EMPTY], "no node types"),
    "applied change of a provider": Row("POST", "/v1/apply", [EMPTY], "no node types", (LAB,)),
    "applied limits": Row(
        "POST",
        "/v1/apply",
        [document("Pool", "own", cluster="demo", provider="lab", quantity=0, limits={"cpu": 1})],
        "No node fits",
        (LAB, ("POST", POOLS, {**OWN_POOL})),
    ),
    "applied cluster": Row("POST", "/v1/apply", [EKS], LIVE["detail"]),
    "profile": Row("POST", "/v1/cluster-profiles", PROFILE),
    "profile's version": Row(
        "PUT",
        "/v1/cluster-profiles/base",
        {"version": "1.1.0", "packs": [PACK]},
        "",
        (("POST", "/v1/cluster-profiles", PROFILE),),
        1,
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_is_made_or_changed_warns_of_what_its_plan_warns_of(managed: ManagedWorld, ask: Ask, row: Row) -> None:
    managed.provider.findings = [Finding(**LIVE, warning=True)]
    for method, path, body in row.before:
        assert ask(method, path, body).status in (201, 202), path
    remarks = both(ask, row.method, row.path, row.body, row.version)
    assert any(row.remark in detail for _, detail in remarks) if row.remark else not remarks, remarks


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_change_of_a_group_by_its_pool_warns_of_what_its_plan_warns_of(
    managed: ManagedWorld, ask: Ask, method: str
) -> None:
    managed.provider.findings = [Finding(**LIVE, warning=True)]
    managed.make_claims("l4", 2)
    path, version = "/v1/clusters/demo/pools/l4", managed.pools()["l4"].version
    body = {"limits": {"nodes": 1}} if method == "PATCH" else None
    planned = ask(method, path, body, version=version, dry_run=True)
    confirmed = ask(method, path, body, version=version, query="confirm=l4" if method == "DELETE" else "")
    assert (planned.status, confirmed.status) == (200, 202)
    assert warnings(planned.json) == warnings(confirmed.json)
    details = [detail for _, detail in warnings(confirmed.json)]
    assert LIVE["detail"] in details
    assert any("of l4 are drained and given back" in detail for detail in details)


class _Remarking(SimulatedNodes):
    """A source that warns of what nothing is refused for."""

    def inspect(self, provider: NodeProvider, account: CloudAccount | None) -> list[Finding]:
        return [Finding("/spec", "It has no price.", warning=True)]


def test_what_a_source_warns_of_is_told_wherever_its_provider_is_answered(managed: ManagedWorld, ask: Ask) -> None:
    world = managed.world
    world.services = with_ports(world.services, node_sources={"simulated": _Remarking(world.registry.store)})
    expected = [("/spec", "It has no price.")]
    assert both(ask, "POST", "/v1/node-providers", PROVIDER) == expected
    answer = ask("GET", "/v1/node-providers/lab")
    assert warnings(answer.json) == expected
    patch = {"display_name": "a lab"}
    assert both(ask, "PATCH", "/v1/node-providers/lab", patch, answer.json["version"]) == expected
    manifest = {
        "apiVersion": "stockyard/v1",
        "kind": "NodeProvider",
        "metadata": {"name": "second"},
        "spec": {"simulated": PROVIDER["spec"]},
    }
    assert both(ask, "POST", "/v1/apply", [manifest]) == [("/0/spec/simulated", "It has no price.")]
