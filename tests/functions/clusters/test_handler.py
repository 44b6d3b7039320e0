"""Changes of a ready cluster over HTTP: plans, 202 with the operation, 409 with the one that is at work, 412."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from functions.clusters import handler
from functions.pools import handler as pools_handler
from stockyard.domain.models.clusters.views import ClusterView
from stockyard.domain.models.operations import OperationView
from stockyard.domain.models.plan import PlanView
from stockyard.domain.records import AuditRecord
from stockyard.operations.listing import every
from tests.harness.asking import Ask, Reply, asking
from tests.unit.operations.clusters.managed_world import GPU, ManagedWorld, managed_world

EXTENDED = {"settings": {"support": "extended"}}


@pytest.fixture
def managed() -> ManagedWorld:
    return managed_world()


@pytest.fixture
def ask(managed: ManagedWorld) -> Iterator[Ask]:
    """Calls a route of the functions in process, by default with the cluster's version as it is."""
    with asking(lambda: managed.world.services, module_of, handler, pools_handler) as send:

        def call(method: str, path: str, body: Any = None, *, version: int | None = None, **more: Any) -> Reply:
            current = managed.cluster.version if version is None else version
            return send(method, f"/v1/clusters/{managed.id}{path}", body, version=current, **more)

        yield call


def module_of(path: str) -> ModuleType:
    """The handler that serves a path."""
    return pools_handler if "/pools" in path else handler


def test_a_change_answers_with_its_operation(managed: ManagedWorld, ask: Ask) -> None:
    reply = ask("PATCH", "", EXTENDED)
    assert reply.status == 202, reply.json
    assert reply.headers["Location"] == f"/v1/operations/{managed.operation.id}"
    assert reply.headers["ETag"] == f'"{managed.cluster.version}"'
    view = ClusterView.model_validate(reply.json, strict=True)
    assert (view.status, view.settings["support"], view.operation_id) == ("ready", "extended", managed.operation.id)
    (audit,) = [r for r in every(managed.world.services.store, AuditRecord) if r.action == "ChangeCluster"]
    assert audit.detail == "Changed: settings."


def test_what_needs_no_operation_is_answered_as_done(ask: Ask) -> None:
    for body in ({"description": "other"}, {"settings": {"mirror": False}}, {"settings": {"support": "standard"}}):
        reply = ask("PATCH", "", body)
        assert (reply.status, "Location" in reply.headers) == (200, False), reply.json


def test_a_second_change_is_refused_with_the_id_of_the_first(managed: ManagedWorld, ask: Ask) -> None:
    assert ask("PATCH", "", EXTENDED).status == 202
    operation_id = managed.operation.id
    for dry_run in (True, False):
        reply = ask("PATCH", "", {"kubernetes_version": "1.35"}, dry_run=dry_run, version=1)
        assert (reply.status, reply.json["error_type"]) == (409, "IllegalTransition")
        assert operation_id in reply.json["detail"]
    for body in ({"description": "still possible"}, {"settings": {"mirror": False}}):
        reply = ask("PATCH", "", body)
        assert (reply.status, managed.operation.id) == (200, operation_id)
    assert managed.drive() == "changed"
    assert ask("PATCH", "", {"kubernetes_version": "1.35"}, version=1).status == 412


def test_a_dry_run_answers_a_plan_and_writes_nothing(managed: ManagedWorld, ask: Ask) -> None:
    before = managed.cluster
    body = {**managed.groups({"name": "system", "max_size": 3}), "description": "other"}
    reply = ask("PATCH", "", body, dry_run=True)
    assert reply.status == 200, reply.json
    plan = PlanView.model_validate(reply.json, strict=True).plan
    assert [change.pointer for change in plan.changes] == [
        "/description",
        "/settings/node_groups/0/builtin",
        "/settings/node_groups/0/max_size",
        "/settings/node_groups/0",
    ]
    assert [(thing.kind, thing.name) for thing in plan.deletes] == [("pool", "l4")]
    assert plan.price_before is not None
    assert managed.cluster == before
    assert ask("PATCH", "", {"kubernetes_version": "1.36"}, dry_run=True).status == 422


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"kubernetes_version": "1.36"}, "/kubernetes_version"),
        ({"settings": {"vpc_cidr": "10.1.0.0/16"}}, "/settings/vpc_cidr"),
        ({"settings": {"node_groups": [{**GPU, "min_size": 9}]}}, "/settings/node_groups/0/min_size"),
        ({"driver": "ec2"}, "/driver"),
    ],
)
def test_faults_have_pointers_into_the_patch(ask: Ask, body: Any, pointer: str) -> None:
    reply = ask("PATCH", "", body)
    assert (reply.status, [fault["pointer"] for fault in reply.json["errors"]]) == (422, [pointer])


def test_an_operation_is_stopped_and_shows_what_stood_before(managed: ManagedWorld, ask: Ask) -> None:
    assert ask("POST", "/cancel").status == 409
    ask("PATCH", "", EXTENDED)
    reply = ask("POST", "/cancel")
    assert reply.status == 202
    view = OperationView.model_validate(reply.json, strict=True)
    assert (view.status, view.kind) == ("cancelled", "change_cluster")
    assert view.changes[0].before == "standard"
    plan = ask("POST", "/resume", dry_run=True).json["plan"]
    assert plan["verdict"].endswith("with attempt 2.")
    assert plan["steps"]
    assert ask("POST", "/resume").json["status"] == "running"


def test_pools_of_groups_are_changed_in_the_settings(ask: Ask, managed: ManagedWorld) -> None:
    version = managed.pools()["l4"].version
    refused = ask("PATCH", "/pools/l4", {"labels": {"a": "b"}}, version=version)
    assert refused.status == 422
    assert "node group" in refused.json["errors"][0]["detail"]
    plan = ask("PATCH", "/pools/l4", {"floor": 1}, version=version, dry_run=True).json["plan"]
    pointers = {change["pointer"] for change in plan["changes"]}
    assert "/settings/node_groups/0/min_size" in pointers
    reply = ask("PATCH", "/pools/l4", {"floor": 1}, version=version)
    assert reply.status == 202, reply.json
    assert reply.headers["Location"] == f"/v1/operations/{managed.cluster.operation_id}"
    assert managed.cluster.settings["node_groups"][0]["min_size"] == 1


def test_a_pool_of_a_group_is_removed_by_its_name(ask: Ask, managed: ManagedWorld) -> None:
    unconfirmed = ask("DELETE", "/pools/l4")
    assert unconfirmed.status == 422
    assert unconfirmed.json["errors"][0]["pointer"] == "/confirm"
    assert {"kind": "pool", "name": "l4"} in ask("DELETE", "/pools/l4", dry_run=True).json["plan"]["deletes"]
