"""Requests by event: the same models, keys and problems as over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from stockyard.edge.requests import ACCEPTED, REFUSED, EventCommand, answer_of
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

    def use(self, request):
        self.wishes.append(request)
        if self.error is not None:
            raise self.error
        return {"cluster": request.cluster or "clu_1", "n": len(self.wishes)}

    def send(self, kind="CreateCluster", detail=None, tenant="acme", now=NOW, **more):
        commands = {
            "CreateCluster": EventCommand("clusters.clusters:ClusterCreate", False, self.use),
            "DeleteCluster": EventCommand(None, True, self.use),
        }
        event = {"id": "e-1", "account": "222222222222", "detail-type": kind, "detail": detail, **more}
        return answer_of(event, tenant, commands, lambda _: self.keys, now, b"salt")


@pytest.fixture
def bus(memory_keys):
    return Bus(memory_keys)


def test_a_request_is_carried_out_for_the_envelopes_tenant(bus):
    kind, detail = bus.send(detail={"body": BODY})
    assert kind == ACCEPTED
    assert detail == {"request": "e-1", "detail_type": "CreateCluster", "cluster": "clu_1", "n": 1}
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
    assert bus.send("DeleteCluster", {"cluster": "one"})[1]["cluster"] == "one"
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
        return {"cluster": "clu_1"}

    bus.use = twice
    assert bus.send(detail={"body": BODY})[0] == ACCEPTED
    assert bus.send(detail={"body": BODY})[0] == ACCEPTED


def test_a_refusal_of_the_use_case_is_the_answer(bus):
    bus.error = ClusterNameInUse("There is a cluster called one.")
    kind, detail = bus.send(detail={"body": BODY})
    assert (kind, detail["problem"]["status"]) == (REFUSED, 409)
