"""Each kind of thing by event: made, changed and deleted; an event twice is one request, and each end is messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from functions.requests import handler
from stockyard import wiring
from stockyard.domain.nodes.records import NodeClaim, NodeProvider
from stockyard.domain.operation_records import MOST_FOLLOWERS
from stockyard.domain.platform import PLATFORM
from stockyard.domain.pools.records import Pool
from stockyard.domain.profiles.records import ClusterProfile
from stockyard.domain.records import AuditRecord, Operation, Outbox
from stockyard.domain.values.rights import ADMIN
from stockyard.edge import idempotency
from stockyard.errors import StoreUnavailable
from stockyard.operations.cloud_accounts.event_accounts import set_event_accounts
from stockyard.operations.idempotency_keys import IdempotencyKeys
from stockyard.operations.listing import every
from stockyard.ports import Create, Store, Write
from tests.harness.worlds.inprocess import Context
from tests.unit.operations.fleet.pools.conftest import Yard, make_yard

ACCOUNT = "2" * 12
BODIES = json.loads((Path(__file__).parents[3] / "examples/api/bodies.json").read_text())
LAB = BODIES["NodeProviderCreate"]
AUDITED = {"AddClusterProfileVersion": "ChangeClusterProfile"}
"""Detail types whose audit record has another name."""


class Requests:
    """Sends events and keeps what was answered. ``yard`` is the tenant's world."""

    def __init__(self, yard: Yard) -> None:
        self.yard, self.services = yard, yard.nodes.services
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.messages: list[tuple[str, dict[str, Any]]] = []
        self.number = 0

    def publish_all(self, answers: Any) -> None:
        self.sent += answers

    def __call__(self, kind: str, *, id: str | None = None, **detail: Any) -> list[tuple[str, dict[str, Any]]]:
        """The answers to a new event, or to one more delivery of that of this ``id``."""
        self.number += 1
        event_id, before = id or f"event-{self.number}", len(self.sent)
        event = {"id": event_id, "account": ACCOUNT, "detail-type": kind, "detail": detail}
        handler.lambda_handler(event, Context("requests", event_id))
        return self.sent[before:]

    def done(self, kind: str, **detail: Any) -> dict[str, Any]:
        """The acceptance of what was done at once; delivered twice, it is done once, and answered alike."""
        first = self(kind, **detail)
        again = self(kind, id=f"event-{self.number}", **detail)
        assert [kind for kind, _ in first] == ["RequestAccepted", "RequestCompleted"], first
        assert first[0] == again[0]
        assert len(self.audited(kind)) == 1
        return first[0][1]

    def audited(self, kind: str) -> list[AuditRecord]:
        name, request = AUDITED.get(kind, kind), f"event-{self.number}"
        records = [record for record in every(self.services.store, AuditRecord) if record.action == name]
        return [record for record in records if record.actor == f"event:{ACCOUNT}" and record.request_id <= request]

    def messages_of(self, correlation_id: str) -> list[tuple[str, dict[str, Any]]]:
        """Messages that went out for a request with the changes that they tell of, in order."""
        return [entry for entry in self.messages if entry[1].get("correlation_id") == correlation_id]

    def keep(self, writes: Sequence[Write]) -> None:
        """Keep what a transaction sends: what reads the outbox removes it."""
        items = [write.record for write in writes if isinstance(write, Create) and isinstance(write.record, Outbox)]
        messages = [message for item in items for kind, message in item.messages if kind == "event"]
        self.messages += [(message["detail_type"], message["detail"]) for message in messages]


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    yard = make_yard()
    requests, registry = Requests(yard), yard.nodes.registry
    platform = registry.platform()
    services = requests.services
    parts = {name: getattr(services, name) for name in services.__slots__ if name != "store"}
    set_event_accounts(type(services)(**parts, store=platform), "acme", [ACCOUNT], 0, ADMIN)
    store = type(requests.services.store)
    commit = store.commit

    def commit_and_keep(self: Store, *writes: Write) -> None:
        commit(self, *writes)
        requests.keep(writes)

    monkeypatch.setattr(store, "commit", commit_and_keep)
    monkeypatch.setattr(wiring, "store", lambda tenant: platform if tenant == PLATFORM else registry.store(tenant))
    monkeypatch.setattr(wiring, "services", lambda _: requests.services)
    monkeypatch.setattr(wiring, "clock", lambda: yard.nodes.clock)
    monkeypatch.setattr(wiring, "keys_of", lambda tenant: IdempotencyKeys(registry.store(tenant)))
    monkeypatch.setattr(wiring, "audit", lambda tenant, record: registry.store(tenant).commit(Create(record)))
    monkeypatch.setattr(wiring, "bus", lambda: requests)
    return requests


def test_a_pool_is_made_changed_and_deleted(requests: Requests) -> None:
    cluster = requests.yard.cluster
    first = requests.done("CreatePool", cluster="demo", body={"name": "web", "quantity": 2})
    assert (first["name"], first["cluster"], first["operation_id"]) == ("web", cluster.id, None)
    requests.done("ChangePool", cluster="demo", pool="web", body={"quantity": 3})
    pool = requests.services.store.get(Pool, first["subject"])
    assert pool is not None
    assert pool.quantity == 3
    requests.done("DeletePool", cluster=cluster.id, pool="web")
    requests.yard.settle()
    assert requests.services.store.get(Pool, first["subject"]) is None
    ((kind, refusal),) = requests("DeletePool", cluster="demo", pool="web")
    assert (kind, refusal["problem"]["status"]) == ("RequestRefused", 404)


def test_a_provider_is_made_changed_and_deleted(requests: Requests) -> None:
    first = requests.done("CreateNodeProvider", body=LAB)
    requests.done("ChangeNodeProvider", provider="lab", body={"display_name": "The lab"})
    provider = requests.services.store.get(NodeProvider, first["subject"])
    assert provider is not None
    assert provider.display_name == "The lab"
    removed = requests.done("DeleteNodeProvider", provider="lab")
    assert (removed["status"], removed["operation_id"] is None) == ("deleted", False)
    faulty = {"name": "-", "kind": "simulated", "spec": {}, "price_per_cost_unit": "x"}
    ((kind, refusal),) = requests("CreateNodeProvider", body=faulty)
    pointers = {fault["pointer"] for fault in refusal["problem"]["errors"]}
    assert (kind, pointers) == ("RequestRefused", {"/body/name", "/body/price_per_cost_unit"})


def test_a_profile_is_made_given_a_version_and_removed(requests: Requests) -> None:
    first = requests.done("CreateClusterProfile", body=BODIES["ClusterProfileCreate"])
    changed = requests.done("AddClusterProfileVersion", profile="base", body=BODIES["ClusterProfilePut"])
    assert (first["status"], changed["status"]) == ("1.0.0", "1.1.0")
    profile = requests.services.store.get(ClusterProfile, first["subject"])
    assert profile is not None
    assert {version.rights for version in profile.versions} == {ADMIN}
    requests.done("DeleteClusterProfile", profile=profile.id)


def test_a_claim_is_followed_from_its_wish_to_its_end(requests: Requests) -> None:
    ((_, first),) = requests("CreateNodeClaim", correlation_id="mine", body={"name": "one", "cluster": "demo"})
    requests.yard.settle()
    claim = requests.services.store.get(NodeClaim, first["subject"])
    assert claim is not None
    assert claim.phase == "Available"
    messages = requests.messages_of("mine")
    assert {kind for kind, _ in messages[:-1]} == {"RequestProgressed"}
    assert (messages[-1][0], messages[-1][1]["operation_id"]) == ("RequestCompleted", first["operation_id"])
    assert [kind for kind, _ in messages].count("RequestCompleted") == 1
    progress = [detail["progress"] for _, detail in messages[:-1]]
    assert progress == sorted(progress)
    requests.done("ChangeNodeClaim", claim="one", body={"labels": {"a": "b"}})
    ((_, leaving),) = requests("DeleteNodeClaim", correlation_id="bye", claim="one")
    requests.yard.settle()
    assert requests.messages_of("bye")[-1][0] == "RequestCompleted"
    assert leaving["status"] == "Deleting"


def test_a_deletion_of_what_never_had_a_machine_has_ended_when_it_is_accepted(requests: Requests) -> None:
    requests("CreateNodeClaim", body={"name": "huge", "cluster": "demo", "resources": {"cpu": "640"}})
    (_, accepted), (kind, end) = requests("DeleteNodeClaim", correlation_id="bye", claim="huge")
    assert (kind, end["operation_id"], end["correlation_id"]) == ("RequestCompleted", accepted["operation_id"], "bye")


def test_several_requests_wait_for_one_operation_and_each_is_told_of_its_end(requests: Requests) -> None:
    requests("CreateNodeClaim", body={"name": "one", "cluster": "demo"})
    requests.yard.settle()
    for number in range(MOST_FOLLOWERS):
        requests("DeleteNodeClaim", id=f"e-{number}", claim="one")
        requests("DeleteNodeClaim", id=f"e-{number}", claim="one")
    ((kind, refusal),) = requests("DeleteNodeClaim", claim="one")
    assert (kind, refusal["problem"]["error_type"]) == ("RequestRefused", "IllegalTransition")
    requests.yard.settle()
    for number in range(MOST_FOLLOWERS):
        assert [kind for kind, _ in requests.messages_of(f"e-{number}")].count("RequestCompleted") == 1


def test_a_request_that_another_one_overtakes_has_failed_with_the_cause(requests: Requests) -> None:
    ((_, first),) = requests("CreateNodeClaim", correlation_id="mine", body={"name": "one", "cluster": "demo"})
    ((_, leaving), *_) = requests("DeleteNodeClaim", correlation_id="other", claim="one")
    (failure,) = [detail for kind, detail in requests.messages_of("mine") if kind == "RequestFailed"]
    assert (failure["status"], failure["operation_id"]) == ("failed", first["operation_id"])
    assert failure["error"]["cause"]
    assert leaving["operation_id"] != first["operation_id"]
    operation = requests.services.store.get(Operation, first["operation_id"])
    assert operation is not None
    assert operation.status == failure["status"]


@pytest.mark.parametrize(
    "kind", ["DeletePool", "DeleteNodeProvider", "DeleteClusterProfile", "AddClusterProfileVersion"]
)
def test_a_delivery_that_died_after_its_work_is_taken_up_and_not_missed(
    requests: Requests, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests("CreatePool", cluster="demo", body={"name": "web", "quantity": 0})
    requests("CreateNodeProvider", body=LAB)
    requests("CreateClusterProfile", body=BODIES["ClusterProfileCreate"])
    detail = {
        "DeletePool": {"cluster": "demo", "pool": "web"},
        "DeleteNodeProvider": {"provider": "lab"},
        "DeleteClusterProfile": {"profile": "base"},
        "AddClusterProfileVersion": {"profile": "base", "body": BODIES["ClusterProfilePut"]},
    }[kind]
    with monkeypatch.context() as patch:
        patch.setattr(idempotency, "finish", _died)
        with pytest.raises(StoreUnavailable):
            requests(kind, id="once", **detail)
    requests.yard.settle()
    requests.yard.nodes.clock.advance(61)
    answers = requests(kind, id="once", **detail)
    assert [name for name, _ in answers] == ["RequestAccepted", "RequestCompleted"], answers
    assert requests(kind, id="once", **detail)[0] == answers[0]


def _died(*_: Any) -> None:
    raise StoreUnavailable("It died.")


def test_a_pool_of_a_cluster_that_is_not_there_is_refused(requests: Requests) -> None:
    ((kind, refusal),) = requests("CreatePool", cluster="nowhere", body={"name": "web", "quantity": 2})
    assert (kind, refusal["problem"]["error_type"]) == ("RequestRefused", "NotFound")
