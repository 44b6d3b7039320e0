"""The schemas in ``docs/events`` describe what is really sent, and refuse what is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from functions.requests.commands import COMMANDS
from functions.requests.common import outcome
from local.testing.memory_store import MemoryRegistry
from stockyard.domain.operation_records import EventFollower
from stockyard.domain.records import Cluster, OperationError, Outbox
from stockyard.domain.values import ids, times
from stockyard.domain.values.rights import ADMIN
from stockyard.edge.requests import answers_of
from stockyard.errors import ClusterNameInUse, QuotaExceeded
from stockyard.lifecycle.change import Failure, Transition
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.operation import new_operation
from stockyard.operations.cloud_accounts.accounts import delete_account, register_account, verify_account
from stockyard.operations.engine.advance import change_writes
from stockyard.operations.engine.tell import tell
from stockyard.operations.idempotency_keys import IdempotencyKeys
from stockyard.ports import Cloud, Create, Verification
from tests.harness.sent import waiting
from tests.harness.worlds.ports import memory_services, partial_port

SCHEMAS = {
    path.stem: json.loads(path.read_text()) for path in (Path(__file__).parents[3] / "docs/events").glob("*.json")
}
ERROR = OperationError("ClusterCouldNotBeDeployed", "network", "cause", "hint")


def check(kind: str, detail: object) -> None:
    """Raise ``ValidationError`` unless ``detail`` is what the schema of ``kind`` says, as JSON."""
    validator = jsonschema.Draft202012Validator(SCHEMAS[kind])
    validator.validate(json.loads(json.dumps(detail)))


class Verifier(Cloud):
    fault: str | None = None

    def verify(self, account, tenant):
        return Verification(self.fault is None, self.fault or "")

    def check_attributes(self, attributes):
        pass

    def regions(self, account):
        return ()


@pytest.fixture
def services():
    return memory_services(MemoryRegistry(), clouds={"aws": partial_port(Verifier)})


@pytest.fixture
def life(services):
    """A cluster's life by the lifecycle's own decisions: (services, details by kind)."""
    now = times.to_text(services.clock.now())
    cluster = Cluster(
        services.new_id(ids.CLUSTER), "demo", "", "k8s", "aws", 1, "demo-1", "accepting", {}, now, now, operation_id="x"
    )
    creation, deletion = services.procedure("create_cluster"), services.procedure("delete_cluster")
    operation = new_operation(services.new_id(ids.OPERATION), creation, cluster, "user:ann", now)
    follower = EventFollower("e-1", "CreateCluster", "mine", "222222222222")
    operation = replace(operation, followers=(follower,))
    sent: list[tuple[str, dict[str, Any]]] = []

    def step(change):
        changed, ongoing, writes = change_writes(services, "user:ann", change)
        for write in writes:
            if isinstance(write, Create) and isinstance(write.record, Outbox):
                messages = [message for kind, message in write.record.messages if kind == "event"]
                sent.extend((message["detail_type"], message["detail"]) for message in messages)
        return changed, ongoing

    cluster, operation = step(MOVES.prepare(cluster, operation, creation, now))
    cluster, operation = step(MOVES.begin_phase(cluster, operation, creation.phase("network"), now))
    cluster, operation = step(MOVES.end_phase(cluster, operation, creation.phase("network"), "done", now))
    cluster, operation = step(MOVES.fail(cluster, operation, Failure(creation, ERROR), now))
    cluster, operation = step(MOVES.resume(cluster, operation, creation, now))
    ready, _ = step(MOVES.become_ready(cluster, operation, "complete", now))
    removal = new_operation(services.new_id(ids.OPERATION), deletion, cluster, "user:ann", now)
    step(MOVES.start_deletion(cluster, (operation, creation), removal, deletion, now))
    leaving, removal = step(MOVES.start_deletion(ready, None, removal, deletion, now))
    blocked = replace(ERROR, phase="network")
    leaving, removal = step(MOVES.block(leaving, removal, blocked, ("vpc-1",), now))
    step(MOVES.retry(leaving, removal, deletion, now))
    return sent


def test_every_event_of_a_cluster_matches_its_schema(life):
    answers = [kind for kind, _ in life if kind.startswith("Request")]
    assert set(answers) == {"RequestProgressed", "RequestCompleted", "RequestFailed"}
    assert {kind for kind, _ in life} == {"Cluster", "Operation", *answers}
    assert {detail["phase"]["after"] for kind, detail in life if kind == "Cluster"} == {
        "preparing",
        "failed",
        "ready",
        "deleting",
    }
    assert "Superseded" in {detail.get("reason") for _, detail in life}
    for kind, detail in life:
        check(kind, detail)


def test_every_event_of_a_cloud_account_matches_its_schema(services):
    attributes = {"role_arn": "arn:aws:iam::222222222222:role/stockyard", "region": "us-east-1"}
    account = register_account(
        services, provider="aws", name="main", description="", attributes=attributes, tags={}, actor="user:ann"
    )
    verify_account(services, account.id, "user:ann")
    services.clouds["aws"].fault = "The role cannot be assumed."
    verify_account(services, account.id, "user:ann")
    delete_account(services, account.id, "user:ann")
    details = [message["detail"] for message in waiting(services.store, "event")]
    states = [detail["phase"]["after"] for detail in sorted(details, key=lambda detail: detail["sequence"])]
    assert states == ["unverified", "verified", "failed", None]
    for detail in details:
        check("CloudAccount", detail)


@pytest.mark.parametrize("kind", ["Cluster", "Operation", "CloudAccount"])
def test_a_schema_refuses_what_is_never_sent(services, kind):
    subject = {"Cluster": services.new_id(ids.CLUSTER), "Operation": services.new_id(ids.OPERATION)}
    about = SimpleNamespace(id="", version=1, sequence=1)
    transition = Transition(kind, None, None, "New", "")
    good = tell(services, "user:ann", about, transition, subject.get(kind, "cloud-account/1"))
    detail = good[1].record.payload["detail"]
    check(kind, detail)
    for wrong in (
        {"sequence": 0},
        {"reason": "not one word"},
        {"subject": "other"},
        {"secret": "x"},
        {"time": "today"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            check(kind, {**detail, **wrong})


def answered(services, detail, kind="DeleteCluster", use=None, end=None):
    """The answers to a request whose use case answers as those of all commands do."""
    cluster, operation_id = services.new_id(ids.CLUSTER), services.new_id(ids.OPERATION)
    work = outcome(cluster, "demo", "ready", operation_id, cluster)
    commands = {name: replace(command, handler=use or (lambda _: work)) for name, command in COMMANDS.items()}
    event = {"id": services.new_id(ids.EVENT), "detail-type": kind, "account": "222222222222", "detail": detail}
    keys = IdempotencyKeys(services.store)
    return answers_of(event, "acme", commands, lambda _: keys, lambda *_: end, services.clock.now(), b"salt", ADMIN)


FOLDER = Path(__file__).parents[3] / "examples"
EXAMPLES = {
    **json.loads((FOLDER / "api/bodies.json").read_text()),
    "ClusterCreate": json.loads((FOLDER / "aws-cluster.json").read_text()),
}
BODIES = {kind: EXAMPLES[command.body.partition(":")[2]] for kind, command in COMMANDS.items() if command.body}
GOOD = {
    kind: {**dict.fromkeys(command.names, "demo"), **({"body": BODIES[kind]} if command.body else {})}
    for kind, command in COMMANDS.items()
}
"""A request of each kind."""


def bad(kind):
    """Details of this kind that nobody takes."""
    good = GOOD[kind]
    yield {**good, "tenant": "globex"}
    yield {**good, "correlation_id": "with a space"}
    yield {**good, "correlation_id": "x" * 2049}
    for name in good:
        yield {key: value for key, value in good.items() if key != name}
        yield {**good, name: 1}
        if name != "body":
            yield {**good, name: ""}
    if kind == "CreateCluster":
        yield {"body": {**BODIES[kind], "secret": "s" * 24}}


@pytest.mark.parametrize("kind", sorted(COMMANDS))
def test_schema_and_code_take_and_refuse_the_same_requests(services, kind):
    longest = {**GOOD[kind], "idempotency_key": "k", "correlation_id": "~" * 2048}
    for good in (GOOD[kind], longest):
        check(kind, good)
        ((answer, detail),) = answered(services, good, kind)
        assert answer == "RequestAccepted", detail
        check(answer, detail)
    for wrong in bad(kind):
        with pytest.raises(jsonschema.ValidationError):
            check(kind, wrong)
        ((answer, detail),) = answered(services, wrong, kind)
        assert (answer, detail["problem"]["error_type"]) == ("RequestRefused", "InvalidInput")
        check(answer, detail)


def test_what_is_done_at_once_is_completed_at_once(services):
    work = outcome("pool", "web", "ready")
    (_, accepted), (answer, detail) = answered(services, GOOD["CreatePool"], "CreatePool", lambda _: work)
    assert (answer, detail["operation_id"], accepted["operation_id"]) == ("RequestCompleted", None, None)
    check("RequestAccepted", accepted)
    check(answer, detail)


@pytest.mark.parametrize("error", [ClusterNameInUse("There is a cluster demo."), QuotaExceeded("clusters: 20 of 20")])
def test_a_refusal_by_the_use_case_matches_its_schema(services, error):
    def refuse(_wish):
        raise error

    ((answer, detail),) = answered(services, GOOD["DeleteCluster"], use=refuse)
    assert (answer, detail["problem"]["error_type"]) == ("RequestRefused", error.error_type)
    check(answer, detail)


def test_the_schemas_are_well_formed_and_name_the_fields_of_the_code():
    for kind, schema in SCHEMAS.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["title"] == kind
    for kind, command in COMMANDS.items():
        assert set(SCHEMAS[kind]["properties"]) == command.fields
        if command.body is not None:
            assert f"(`{command.body.partition(':')[2]}`)" in SCHEMAS[kind]["properties"]["body"]["description"]


def test_the_problem_is_the_one_of_the_api():
    api = json.loads((Path(__file__).parents[3] / "openapi.json").read_text())
    assert SCHEMAS["RequestRefused"]["properties"]["problem"] == api["components"]["schemas"]["Problem"]
