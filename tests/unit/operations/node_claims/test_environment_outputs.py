"""Outputs of environments: any JSON, replaced whole, bounded; secret ones are sealed and go with the environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from stockyard.adapters.dynamodb.codec import from_item, to_item
from stockyard.domain.nodes.views import node_environment_view
from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment
from stockyard.errors import Conflict
from stockyard.operations.engine.advance import Fence
from stockyard.operations.listing import every
from stockyard.operations.node_claims.environment_outputs import MOST_BYTES, opened
from stockyard.operations.node_claims.environments import look_again, remove_unused
from stockyard.operations.node_claims.work import node_work
from stockyard.ports import Outcome
from stockyard.ports.node_work import EnvironmentWork, Prepared
from tests.harness.sweeping import Reaper
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World, make_world
from tests.unit.operations.node_claims.test_environments import SMALL, Building
from tests.unit.operations.nodes import Nodes

CANARY = "canary-4f1c"


class _Templated(Building):
    """Source whose outputs are ``outputs``, those of ``secret`` sealed."""

    outputs: Mapping[str, Any] = MappingProxyType({})
    secret: frozenset[str] = frozenset()

    def prepare(self, work: EnvironmentWork) -> Outcome:
        super().prepare(work)
        return Prepared(True, facts={"found": "here"}, outputs=self.outputs, secret_outputs=self.secret)


def source_of(world: World) -> _Templated:
    source = _Templated(world.registry.store)
    source.things, source.meanwhile = set(), lambda: None
    return source


def yard(world: World, source: _Templated) -> Nodes:
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.services = with_ports(nodes.services, node_sources={"simulated": source})
    assert world.drive(world.create(), "provision_cluster") == "ready"
    nodes.provider("lab", SMALL)
    return nodes


@pytest.fixture
def source(world: World) -> _Templated:
    return source_of(world)


@pytest.fixture
def nodes(world: World, source: _Templated) -> Nodes:
    return yard(world, source)


def available(nodes: Nodes) -> NodeClaim:
    claim = nodes.claim(cluster_ref="demo")
    nodes.schedule()
    nodes.relay()
    return nodes.now(claim)


def prepared_again(nodes: Nodes) -> NodeClaim:
    (cluster,) = every(nodes.services.store, Cluster)
    look_again(nodes.services, cluster)
    return available(nodes)


def environment(nodes: Nodes) -> NodeEnvironment:
    (found_environment,) = every(nodes.services.store, NodeEnvironment)
    return found_environment


def sealed(nodes: Nodes) -> list[str]:
    return [name for name in nodes.services.secrets.names("acme/") if "/outputs-" in name]


def test_outputs_are_json_and_one_that_goes_goes(nodes: Nodes, source: _Templated) -> None:
    source.outputs = {"ids": ["a", 1, None], "network": {"deep": [{"mtu": 1500.5}]}, "flag": True}
    assert available(nodes).phase == "Available"
    assert environment(nodes).outputs == {**source.outputs, "found": "here"}
    source.outputs = {"ids": []}
    assert prepared_again(nodes).phase == "Available"
    assert environment(nodes).outputs == {"ids": [], "found": "here"}
    assert sealed(nodes) == []


def test_secret_outputs_are_sealed_and_given_to_the_source_alone(nodes: Nodes, source: _Templated) -> None:
    source.outputs, source.secret = {"token": {"value": CANARY}, "open": "yes"}, frozenset({"token"})
    claim = available(nodes)
    record = environment(nodes)
    assert (record.outputs, record.secret_outputs) == ({"found": "here", "open": "yes"}, ("token",))
    assert CANARY not in json.dumps(node_environment_view(record)) + repr(nodes.registry.table)
    _, work = node_work(nodes.services, claim, "launch", Fence.of(claim))
    assert work.secret_outputs() == opened(nodes.services, record) == {"token": {"value": CANARY}}
    assert CANARY not in repr(work)
    (first,) = sealed(nodes)
    source.outputs = {"token": CANARY * 2}
    again = prepared_again(nodes)
    (second,) = sealed(nodes)
    assert second != first
    assert opened(nodes.services, environment(nodes)) == {"token": CANARY * 2}
    for each in (claim, again):
        nodes.delete(each)
    nodes.relay()
    assert remove_unused(nodes.services, environment(nodes))
    assert sealed(nodes) == []


def test_the_worker_that_is_late_takes_its_seal_away(nodes: Nodes, source: _Templated, monkeypatch: Any) -> None:
    source.outputs, source.secret = {"token": CANARY}, frozenset({"token"})
    available(nodes)
    before = sealed(nodes)
    commit = type(nodes.services.store).commit

    def late(store: Any, *writes: Any) -> None:
        if any(
            isinstance(getattr(write, "record", None), NodeEnvironment) and write.record.sealed_as for write in writes
        ):
            raise Conflict("somebody was first")
        commit(store, *writes)

    (cluster,) = every(nodes.services.store, Cluster)
    look_again(nodes.services, cluster)
    monkeypatch.setattr(type(nodes.services.store), "commit", late)
    assert available(nodes).phase == "Available"
    assert sealed(nodes) == before
    assert opened(nodes.services, environment(nodes)) == {"token": CANARY}


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ({"small": "x", "plan": CANARY * (MOST_BYTES // 11 + 1)}, "the largest is plan with"),
        ({"plan": {1, 2}}, "Output plan of the environment is no JSON value."),
        ({"plan": float("nan")}, "Output plan of the environment is no JSON value."),
    ],
    ids=["too large", "no json", "not finite"],
)
def test_what_cannot_be_kept_fails_by_name_and_shows_no_value(
    nodes: Nodes, source: _Templated, outputs: dict[str, Any], words: str
) -> None:
    source.outputs, source.secret = outputs, frozenset({"plan"})
    claim = available(nodes)
    operation = nodes.operation(claim)
    assert claim.phase == "Failed"
    assert operation.error is not None
    assert words in operation.error.cause
    assert CANARY not in repr(operation)
    assert sealed(nodes) == []


def test_a_record_of_an_earlier_release_is_read() -> None:
    record = NodeEnvironment("nev_1", "clu_1", "npr_1", "lab", "t", "t", outputs={"subnets": "a"})
    item = to_item("acme", record)
    name = next(key for key, value in item.items() if value == {"S": '{"subnets":"a"}'})
    earlier = {**item, name: {"M": {"subnets": {"S": "a"}}}}
    for new in ("secret_outputs", "sealed_as"):
        earlier.pop(new, None)
    assert from_item(NodeEnvironment, earlier) == from_item(NodeEnvironment, item) == record
    changed = replace(record, outputs={"deep": [1, {"a": None}]})
    assert from_item(NodeEnvironment, to_item("acme", changed)) == changed


class _Killed(BaseException):
    """End of a worker, which nothing catches."""


def _killing(monkeypatch: pytest.MonkeyPatch, nodes: Nodes, number: int, *, behind: bool) -> list[str]:
    """Kill the worker before or ``behind`` the write of that number; names of the writes so far."""
    calls: list[str] = []

    def counted(kind: type[Any], name: str) -> None:
        real = getattr(kind, name)

        def call(self: Any, *args: Any) -> Any:
            calls.append(name)
            if len(calls) != number:
                return real(self, *args)
            if behind:
                real(self, *args)
            raise _Killed

        monkeypatch.setattr(kind, name, call)

    counted(type(nodes.services.store), "commit")
    for name in ("put", "delete"):
        counted(type(nodes.services.secrets), name)
    return calls


def _life(monkeypatch: pytest.MonkeyPatch, number: int, *, behind: bool) -> list[str]:
    """A first preparation with a secret whose worker is killed at that write, another one with a new secret, and the
    removal of the environment. The writes of the first one."""
    world = make_world()
    source = source_of(world)
    nodes = yard(world, source)
    source.outputs, source.secret = {"token": CANARY}, frozenset({"token"})
    first = nodes.claim("first", cluster_ref="demo")
    nodes.schedule()
    with monkeypatch.context() as patched:
        calls = _killing(patched, nodes, number, behind=behind)
        with suppress(_Killed):
            nodes.relay()
    nodes.relay()
    assert nodes.now(first).phase == "Available", number
    assert opened(nodes.services, environment(nodes)) == {"token": CANARY}, number
    source.outputs = {"token": CANARY * 2}
    second = prepared_again(nodes)
    assert opened(nodes.services, environment(nodes)) == {"token": CANARY * 2}, number
    for claim in (first, second):
        nodes.delete(claim)
    nodes.relay()
    assert remove_unused(nodes.services, environment(nodes)), number
    for _ in range(4):
        nodes.hours(0.5)
        Reaper(nodes.registry, nodes.clock, lambda _: nodes.services).run(reconciled=True)
    assert sealed(nodes) == [], number
    return calls


def test_a_worker_killed_at_any_write_leaves_outputs_and_seal_together(
    monkeypatch: pytest.MonkeyPatch, soaking: bool
) -> None:
    calls = _life(monkeypatch, 0, behind=False)
    seal_at = calls.index("put") + 1
    numbers = range(1, len(calls) + 1) if soaking else range(seal_at, seal_at + 2)
    for number in numbers:
        for behind in (False, True):
            assert len(_life(monkeypatch, number, behind=behind)) >= number
