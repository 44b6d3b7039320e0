"""Folders that apply into the same tenant, as people and pipelines do it by the command line, with and without
``--prune``: no folder ever removes what another one owns, or what nobody has applied.

Beside them somebody makes and deletes pools by hand, and applies without any set. A model knows who owns what.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import hypothesis
import stamina
from hypothesis import HealthCheck, Phase, settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from typer.testing import CliRunner, Result

from stockyard.domain.manifest_sets import SetMember
from stockyard.domain.nodes.os_images import OSImage
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import NodeProvider
from stockyard.domain.views import operation_view
from stockyard.errors import StockyardError
from stockyard.lifecycle.operation import progress
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.fleet.pools.pools import delete_pool, find_pool
from stockyard.operations.listing import every
from stockyard.operations.manifests.apply import apply_manifests, document_warnings, plan_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.manifests.sets import ManifestSet
from stockyard.operations.node_providers.os_images import delete_os_image, find_os_image
from stockyard.operations.node_providers.providers import delete_provider
from stockyard.ports import Remove
from stockyard_client.cli.app import app
from stockyard_client.cli.context import Context
from tests.unit.operations.conftest import make_world
from tests.unit.operations.manifests.test_pools import SMALL, USER, node_pool, own, vcluster
from tests.unit.operations.nodes import Nodes

SETS = ("shop", "shop/canary")
POOLS, AUTO, PROVIDERS, IMAGES = ("web", "batch"), ("a", "b"), ("lab-1",), ("noble",)
NAMES = (*POOLS, *AUTO, *PROVIDERS, *IMAGES)
Name = strategies.sampled_from(NAMES)
Names = strategies.sets(Name, min_size=1, max_size=4)


def documents_of(names: set[str], quantity: int) -> list[dict[str, Any]]:
    """Manifests of the things of these names; two pools are always of a vcluster.yaml, one is a NodePool."""
    auto = [vcluster(*({"name": name, "quantity": quantity} for name in AUTO if name in names), cluster="demo")]
    pools = [own(name, quantity=quantity) for name in POOLS[:1] if name in names]
    cluster_pools = [node_pool("batch", "demo", weight=quantity)] if "batch" in names else []
    types = [{"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}]
    providers = [
        {"apiVersion": "stockyard/v1", "kind": "NodeProvider", "metadata": {"name": name}, "spec": spec}
        for name, spec in ((name, {"simulated": {"nodeTypes": types}}) for name in PROVIDERS if name in names)
    ]
    images = [
        {"apiVersion": "stockyard/v1", "kind": "OSImage", "metadata": {"name": name}, "spec": {"url": "https://a.b/c"}}
        for name in IMAGES
        if name in names
    ]
    return [*(auto if names & set(AUTO) else []), *pools, *cluster_pools, *providers, *images]


@dataclass
class Api:
    """The routes that the command line calls, by the use cases behind them, on a tenant in memory."""

    nodes: Nodes
    deleted: list[str] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        try:
            if request.method == "POST":
                return httpx.Response(200, json=self._apply(json.loads(request.content), request.url.params))
            status, body = self._delete(request.url.path.split("/")[2:], "dry_run" in request.url.params)
            return httpx.Response(status, json=body)
        except StockyardError as refused:
            problem = {"status": refused.status, "error_type": refused.error_type, "detail": refused.detail}
            faults = [{"pointer": fault.pointer, "detail": fault.detail} for fault in refused.errors]
            return httpx.Response(refused.status, json={**problem, "errors": faults})

    def _apply(self, documents: list[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
        services, name = self.nodes.services, query.get("set")
        own_set = ManifestSet.of(services, name, documents, takes="take" in query) if name else None
        desired = read_desired(services, documents, USER, admin=True, prune="prune" in query, set_name=name)
        unnamed: dict[str, Any] = {}
        if own_set is not None:
            own_set.check(desired)
            unnamed = {"unnamed": own_set.unnamed(desired)}
        if "dry_run" in query:
            return {"plan": {**plan_manifests(services, desired), **unnamed}}
        results = apply_manifests(services, desired, USER, "req-1", on_applied=own_set.note if own_set else None)
        if own_set is not None:
            own_set.forget_gone()
        self.deleted += [result["name"] for result in results if result["action"] == "deleted"]
        return {"results": results, "warnings": document_warnings(desired), **unnamed}

    def _delete(self, parts: list[str], dry_run: bool) -> tuple[int, Any]:
        services = self.nodes.services
        if dry_run:
            return 200, {"plan": {}}
        if parts[0] == "clusters":
            pool = delete_pool(services, find_cluster(services, parts[1]), parts[3], USER)
            self.deleted.append(pool.name)
            return 202, {"name": pool.name, "kind": pool.kind}
        if parts[0] == "os-images":
            image = find_os_image(services, parts[1])
            operation, name = delete_os_image(services, image, USER), image.name
        else:
            provider = services.store.get(NodeProvider, parts[1])
            assert provider is not None
            operation, name = delete_provider(services, parts[1], USER), provider.name
        self.deleted.append(name)
        return 202, operation_view(operation, progress(operation))


class Folders(RuleBasedStateMachine):
    """``owners`` is the model: who has applied each thing that is there; None for nobody's."""

    def __init__(self) -> None:
        super().__init__()
        world = make_world()
        world.create("demo")
        self.nodes = Nodes.of(world.registry, world.services, world.clock)
        self.api = Api(self.nodes)
        self.owners: dict[str, str | None] = {}

    @initialize()
    def begin(self) -> None:
        self.nodes.provider("lab", SMALL)

    def cli(self, *arguments: str, documents: list[dict[str, Any]]) -> Result:
        context = Context(
            environment={"STOCKYARD_URL": "https://api.test", "STOCKYARD_TOKEN": "t"},
            transport=httpx.MockTransport(self.api),
            terminal=False,
        )
        return CliRunner().invoke(app, list(arguments), obj=context, input=json.dumps(documents))

    @rule(name=strategies.sampled_from(SETS), names=Names, quantity=strategies.integers(1, 3), data=strategies.data())
    def apply(self, name: str, names: set[str], quantity: int, data: strategies.DataObject) -> None:
        prune, take = data.draw(strategies.booleans()), data.draw(strategies.integers(0, 3)) == 0
        options = [*(["--prune"] if prune else []), *(["--take"] if take else [])]
        before, self.api.deleted = dict(self.owners), []
        result = self.cli("apply", "-f", "-", "--set", name, *options, documents=documents_of(names, quantity))
        foreign = {each for each in names if before.get(each) not in (None, name)}
        if foreign and not take:
            assert (result.exit_code, self.api.deleted) == (5, []), result.output
            return
        assert result.exit_code == 0, result.output
        expected = {each for each, owner in before.items() if owner == name and each not in names} if prune else set()
        assert set(self.api.deleted) == expected
        self._passed()
        self.owners = {each: owner for each, owner in before.items() if each not in expected}
        self.owners |= dict.fromkeys(names, name)
        hypothesis.event(f"removes {min(len(expected), 3)}, takes {bool(foreign)}")

    @rule(names=Names)
    def apply_without_a_set(self, names: set[str]) -> None:
        """Prune by a vcluster.yaml alone; pools of sets are spared."""
        self.api.deleted = []
        prunes = bool(names & set(AUTO))
        result = self.cli("apply", "-f", "-", *(["--prune"] if prunes else []), documents=documents_of(names, 1))
        assert result.exit_code == 0, result.output
        stay = {each for each in AUTO if each in names or self.owners.get(each) is not None}
        assert set(self.api.deleted) == ({each for each in AUTO if each in self.owners} - stay if prunes else set())
        self._passed()
        self.owners = {each: owner for each, owner in self.owners.items() if each not in self.api.deleted}
        self.owners = {**dict.fromkeys(names, None), **self.owners}

    @rule(name=strategies.sampled_from((*POOLS, *AUTO)))
    def delete_by_hand(self, name: str) -> None:
        if name in self.owners:
            delete_pool(self.nodes.services, find_cluster(self.nodes.services, "demo"), name, USER)
            self._passed()
            del self.owners[name]

    def _passed(self) -> None:
        """Let the passes over the pools end those that go, and time pass."""
        for pool in list(every(self.nodes.services.store, Pool)):
            if pool.deleting:
                self.nodes.services.store.commit(Remove(Pool, pool.id))
        self.nodes.hours(1)

    def teardown(self) -> None:
        services = self.nodes.services
        stands = {record.name for kind in (Pool, NodeProvider, OSImage) for record in every(services.store, kind)}
        assert stands == {"lab", *self.owners}
        cluster = find_cluster(services, "demo")
        for name, owner in self.owners.items():
            if name in (*POOLS, *AUTO):
                member = services.store.get(SetMember, f"pool/{find_pool(services, cluster, name).id}")
                current = member if member and member.made_at == find_pool(services, cluster, name).created_at else None
                assert (current.set_name if current else None) == owner


def test_no_folder_removes_what_another_owns(soaking: bool, seed: int) -> None:
    hypothesis.seed(seed)(Folders)
    with stamina.set_testing(True, attempts=1):
        run_state_machine_as_test(
            Folders,
            settings=settings(
                max_examples=300 if soaking else 15,
                stateful_step_count=25 if soaking else 12,
                deadline=None,
                phases=(Phase.explicit, Phase.generate),
                suppress_health_check=list(HealthCheck),
            ),
        )
