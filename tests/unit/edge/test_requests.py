"""Requests by event: the same models, keys and problems as over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from stockyard.edge.requests import ACCEPTED, COMPLETED, REFUSED, EventCommand, answers_of
from stockyard.errors import ClusterNameInUse, RequestInProgress, StoreUnavailable

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
BODY = {
    "name": "one",
    "description": "a cluster",
    "cloud_account_id": 1,
    "cluster_type": "k8s",
    "settings": {"key_pair": "my-key"},
}


class Bus:
    """Events in, answers out; ``wishes`` are what the use cases were asked."""

    def __init__(self, keys):
        self.keys = keys
        self.wishes = []
        self.error = None
        self.operation_id = "op_1"
        self.followed = []
        self.end = None

    def use(self, request):
        self.wishes.append(request)
        if self.error is not None:
            raise self.error
        name = request.names.get("cluster", "clu_1")
        return {"subject": name, "name": name, "operation_id": self.operation_id, "n": len(self.wishes)}

    def follow(self, tenant, operation_id, envelope):
        self.followed.append((tenant, operation_id, envelope["request"], envelope["correlation_id"]))
        return self.end

    def send(self, *arguments, **named):
        """The first answer."""
        return self.send_all(*arguments, **named)[0]

    def send_all(self, kind="CreateCluster", detail=None, tenant="acme", now=NOW, **more):
        commands = {
            "CreateCluster": EventCommand("clusters.clusters:ClusterCreate", (), self.use),
            "DeleteCluster": EventCommand(None, ("cluster",), self.use),
        }
        event = {"id": "e-1", "account": "222222222222", "detail-type": kind, "detail": detail, **more}
        return answers_of(event, tenant, commands, lambda _: self.keys, self.follow, now, b"salt")


@pytest.fixture
def bus(memory_keys):
    return Bus(memory_keys)


def test_a_request_is_carried_out_for_the_envelopes_tenant(bus):
    kind, detail = bus.send(detail={"body": BODY})
    assert kind == ACCEPTED
    envelope = {"request": "e-1", "detail_type": "CreateCluster", "correlation_id": "e-1", "tenant": "acme"}
    work = {"subject": "clu_1", "name": "clu_1", "operation_id": "op_1", "n": 1}
    assert detail == {**envelope, "account": "222222222222", **work}
    (request,) = bus.wishes
    assert (request.tenant, request.actor, request.request_id) == ("acme", "event:222222222222", "e-1")
    assert (request.body.name, request.lease.record.version) == ("one", 1)


def test_the_event_is_its_own_key_and_is_answered_once(bus):
    first = bus.send(detail={"body": BODY})
    assert bus.send(detail={"body": BODY}) == first
    assert len(bus.wishes) == 1
    bus.send(detail={"body": BODY}, id="e-2")
    assert len(bus.wishes) == 2


def test_a_key_of_the_caller_holds_over_events(bus):
    bus.send(detail={"body": BODY, "idempotency_key": "k"})
    bus.send(detail={"body": BODY, "idempotency_key": "k"}, id="e-2")
    assert len(bus.wishes) == 1
    other_request = {"body": {**BODY, "name": "two"}, "idempotency_key": "k"}
    kind, detail = bus.send(detail=other_request, id="e-3")
    assert (kind, detail["problem"]["error_type"]) == (REFUSED, "IdempotencyConflict")


@pytest.mark.parametrize(
    ("kind", "detail", "pointer"),
    [
        ("CreateCluster", {"body": {**BODY, "secret": "canary-secret-canary-secret"}}, "/body/secret"),
        ("CreateCluster", {"body": {**BODY, "name": "-"}}, "/body/name"),
        ("CreateCluster", {"body": BODY, "tenant": "globex"}, "/tenant"),
        ("CreateCluster", {}, "/body"),
        ("DeleteCluster", {}, "/cluster"),
        ("DeleteCluster", {"cluster": 7}, "/cluster"),
        ("CreateCluster", [], None),
        ("DropEverything", {}, None),
    ],
)
def test_what_is_refused_says_where_and_repeats_no_secret(bus, kind, detail, pointer):
    answered, answer = bus.send(kind, detail)
    assert answered == REFUSED
    assert (answer["problem"]["error_type"], answer["problem"]["status"]) == ("InvalidInput", 422)
    pointers = [problem["pointer"] for problem in answer["problem"]["errors"]]
    assert pointers == ([] if pointer is None else [pointer])
    assert "canary" not in repr(answer)
    assert bus.wishes == []


def test_an_account_without_a_tenant_is_refused(bus):
    kind, detail = bus.send(detail={"body": BODY}, tenant=None)
    assert (kind, detail["problem"]["error_type"]) == (REFUSED, "Forbidden")


def test_a_deletion_names_its_cluster(bus):
    assert bus.send("DeleteCluster", {"cluster": "one"})[1]["subject"] == "one"
    assert bus.wishes[0].body is None


def test_what_may_pass_is_raised_and_taken_over_at_the_next_delivery(bus):
    bus.error = StoreUnavailable("down")
    with pytest.raises(StoreUnavailable):
        bus.send(detail={"body": BODY})
    bus.error = None
    assert bus.send(detail={"body": BODY}, now=NOW + timedelta(seconds=1))[0] == ACCEPTED
    first, second = bus.wishes
    assert second.lease.record.version > first.lease.record.version
    assert first.lease.randomness == second.lease.randomness


def test_a_delivery_beside_the_first_one_is_not_refused_but_comes_again(bus):
    def twice(request):
        with pytest.raises(RequestInProgress):
            bus.send(detail={"body": BODY})
        return {"operation_id": "op_1"}

    bus.use = twice
    assert bus.send(detail={"body": BODY})[0] == ACCEPTED
    assert bus.send(detail={"body": BODY})[0] == ACCEPTED


def test_a_refusal_of_the_use_case_is_the_answer(bus):
    bus.error = ClusterNameInUse("There is a cluster called one.")
    kind, detail = bus.send(detail={"body": BODY})
    assert (kind, detail["problem"]["status"]) == (REFUSED, 409)


def test_every_fault_of_detail_and_body_is_in_the_answer(bus):
    body = {**BODY, "name": "-", "cloud_account_id": "x", "secret": "canary-secret-canary-secret"}
    _, answer = bus.send(detail={"body": body, "tenant": "globex", "correlation_id": ""})
    pointers = {problem["pointer"] for problem in answer["problem"]["errors"]}
    assert pointers == {"/tenant", "/correlation_id", "/body/secret", "/body/name", "/body/cloud_account_id"}
    assert answer["correlation_id"] == "e-1"
    _, answer = bus.send("DeleteCluster", {"extra": 1}, id="e-2")
    assert [problem["pointer"] for problem in answer["problem"]["errors"]] == ["/extra", "/cluster"]


def test_answers_carry_the_callers_own_id_and_the_work_is_followed_by_it(bus):
    bus.send(detail={"body": BODY, "correlation_id": "mine"})
    assert bus.followed == [("acme", "op_1", "e-1", "mine")]
    assert bus.send(detail={"body": BODY}, tenant=None)[1]["tenant"] is None
    again = bus.send(detail={"body": BODY, "correlation_id": "other"})
    assert (again[0], again[1]["correlation_id"]) == (ACCEPTED, "other"), "the same wish by another id is no other wish"
    assert bus.followed[-1] == ("acme", "op_1", "e-1", "other")
    assert len(bus.wishes) == 1


def test_what_has_ended_by_then_is_said_with_the_acceptance(bus):
    bus.end = (COMPLETED, {"status": "succeeded"})
    assert bus.send_all(detail={"body": BODY})[1:] == [bus.end]
    bus.operation_id = None
    (_, accepted), (kind, end) = bus.send_all("DeleteCluster", {"cluster": "one"}, id="e-2")
    assert (kind, end["subject"], end["status"], accepted["operation_id"]) == (COMPLETED, "one", "succeeded", None)
    assert end["time"] == "2026-11-21T12:00:00.000Z"
    assert len(bus.followed) == 1, "only operations are followed"
