"""One effect and one answer for each key."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.edge import idempotency
from stockyard.edge.idempotency import IdempotencyLease, Replay
from stockyard.edge.route import Answer, Roles
from stockyard.errors import (
    ClusterNameInUse,
    Forbidden,
    IdempotencyConflict,
    InvalidInput,
    RequestInProgress,
    StoreUnavailable,
    UnexpectedBehavior,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
BODY = {
    "name": "one",
    "description": "a cluster",
    "cloud_account_id": 1,
    "cluster_type": "k8s",
    "secret": "canary-secret-canary-secret",
    "settings": {"key_pair": "my-key"},
}


@pytest.fixture
def create(world):
    """Serves POST /v1/clusters; ``outcomes`` are what the use case does, one after another."""
    outcomes = []

    def use(request):
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome(request)

    world.http.route(
        "POST /v1/clusters",
        summary="Create",
        action="CreateCluster",
        roles=Roles.OPERATOR,
        body="clusters.clusters:ClusterCreate",
        answers={202: None},
        idempotent=True,
    )(use)

    def call(*given_outcomes, key="k-1", body=BODY, **more):
        outcomes.extend(given_outcomes)
        return world.call("POST", "/v1/clusters", body=body, headers={"idempotency-key": key}, **more)

    return call


def accept(request):
    return Answer.accepted({"id": "clu_1", "moment": str(request.lease.moment)}, "op_1", version=1)


def test_repeated_request_gets_stored_answer(world, create):
    first = create(accept)
    world.wait(86_000)
    second = create()
    assert (first.status, second.status) == (202, 202)
    assert first.json == second.json
    assert second.headers["Location"] == "/v1/operations/op_1"
    assert second.headers["ETag"] == '"1"'
    assert second.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers
    assert [record.outcome for _, record in world.audits] == ["done"]
    reordered = dict(reversed(BODY.items()))
    assert create(body=reordered).json == first.json


def test_key_expires_after_a_day(world, create):
    create(accept)
    world.wait(86_400)
    assert create(ClusterNameInUse("taken")).status == 409


def test_key_with_other_body_is_refused(create):
    create(accept)
    result = create(body={**BODY, "name": "two"})
    assert (result.status, result.json["error_type"]) == (422, "IdempotencyConflict")


def test_keys_are_separate_for_each_tenant(world, create):
    create(accept)
    globex_claims = {"sub": "x", "organization": "globex", "realm_access": {"roles": ["stockyard-operator"]}}
    result = create(lambda _: Answer(202, {"id": "clu_2"}), claims=globex_claims)
    assert result.json == {"id": "clu_2"}
    assert set(world.keys) == {"acme", "globex"}


def test_keys_are_separate_for_each_client_of_a_cluster(world):
    seeds = []
    world.http.route(
        "POST /v1/node-claims",
        summary="Claim",
        action="CreateNodeClaim",
        roles=Roles.OPERATOR,
        machine=True,
        idempotent=True,
        answers={202: None},
    )(lambda request: seeds.append(request.lease.randomness) or Answer(202, {"of": request.caller.client_id}))
    clients = [{"sub": "s", "azp": name, "organization": "acme"} for name in ("one-0123", "two-0123")]
    person = {"sub": "p", "azp": "cli", "organization": "acme", "realm_access": {"roles": ["stockyard-operator"]}}
    for _ in range(2):
        for claims in (*clients, person, {**person, "azp": "console"}):
            result = world.call("POST", "/v1/node-claims", claims=claims, headers={"Idempotency-Key": "same"})
            of = claims["azp"] if "realm_access" not in claims else "cli"
            assert (result.status, result.json) == (202, {"of": of})
    assert len(set(seeds)) == len(seeds) == 3


def test_repeated_request_is_in_progress_while_first_runs(world, create):
    inner = []

    def slow(request):
        inner.append(create())
        return accept(request)

    assert create(slow).status == 202
    assert (inner[0].status, inner[0].json["error_type"]) == (409, "RequestInProgress")
    assert 1 <= int(inner[0].headers["Retry-After"]) <= 60


def test_take_over_after_crash_keeps_identifiers(world, create):
    leases = []

    def crash(request):
        leases.append(request.lease)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create(crash)
    world.wait(59)
    assert create().status == 409
    world.wait(1)

    def again(request):
        leases.append(request.lease)
        return accept(request)

    assert create(again).status == 202
    first, second = leases
    assert (first.record.version, second.record.version) == (1, 2)
    assert (first.moment, first.randomness) == (second.moment, second.randomness)
    assert len(first.randomness) == 10


def test_final_refusal_is_repeated(world, create):
    first = create(ClusterNameInUse("taken"))
    second = create()
    assert (second.status, second.json) == (409, first.json)
    assert second.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("error", [UnexpectedBehavior("keycloak"), StoreUnavailable("x"), RuntimeError("bug")])
def test_transient_failure_is_retried_at_once(world, create, error):
    versions = []
    assert create(error).status >= 500
    assert create(lambda request: versions.append(request.lease.record.version) or accept(request)).status == 202
    assert versions == [3], "begun, given up, and begun again"


def test_invalid_input_keeps_no_key(world, create):
    assert create(body={}).status == 422
    assert world.keys == {}
    assert create(accept).status == 202


@pytest.mark.parametrize("key", ["", "a\nb", "é", "x" * 256])
def test_keys_are_printable_and_short(create, key):
    assert create(key=key).status == 422


def test_stored_key_contains_no_secret(world, create):
    create(accept)
    create(body={**BODY, "name": "two"})
    assert "canary" not in repr(world.keys["acme"].records)


def test_store_failure_while_key_is_settled_keeps_answer(world, create, monkeypatch):
    def broken(_):
        raise StoreUnavailable("down")

    def use(request):
        monkeypatch.setattr(world.keys["acme"], "replace", broken)
        raise ClusterNameInUse("taken")

    assert create(use).json["error_type"] == "ClusterNameInUse"


def test_lost_race_for_take_over_is_in_progress(memory_keys):
    lease = idempotency.begin(memory_keys, "id", "d", NOW, b"salt")
    assert isinstance(lease, IdempotencyLease)
    later = NOW + timedelta(seconds=60)
    stale = memory_keys.get("id")
    assert isinstance(idempotency.begin(memory_keys, "id", "d", later, b"salt"), IdempotencyLease)
    assert memory_keys.replace(replace(stale, version=2)) is False
    with pytest.raises(RequestInProgress):
        idempotency.begin(memory_keys, "id", "d", later, b"salt")
    assert idempotency.finish(memory_keys, lease, 202, {}, {}) is False


def test_key_that_keeps_changing_is_in_progress(memory_keys):
    memory_keys.insert = lambda _: False
    with pytest.raises(RequestInProgress):
        idempotency.begin(memory_keys, "id", "d", NOW, b"salt")


@given(st.text(min_size=1, max_size=300))
def test_key_is_used_unchanged_or_refused(key):
    try:
        assert idempotency.checked_key(key) == key
    except InvalidInput:
        assert len(key) > 255 or not key.isascii() or not key.isprintable()


steps = st.lists(st.sampled_from(["begin", "finish", "fail", "wait", "wait long", "other"]), max_size=30)


@given(steps)
def test_any_order_of_tries_has_one_owner_and_one_answer(order):
    keys, now = fresh_keys(), NOW
    owners, answers = [], []
    for step in order:
        if step == "wait":
            now += timedelta(seconds=30)
        elif step == "wait long":
            now += timedelta(seconds=61)
        elif step == "finish" and owners:
            if idempotency.finish(keys, owners.pop(), 202, {}, {"n": len(answers)}):
                answers.append(len(answers))
        elif step == "fail" and owners:
            idempotency.give_up(keys, owners.pop(), now)
        else:
            try:
                result = idempotency.begin(keys, "id", "other" if step == "other" else "d", now, b"salt")
            except (RequestInProgress, IdempotencyConflict):
                continue
            if isinstance(result, Replay):
                assert (result.status, result.body) == (202, {"n": 0})
            else:
                owners.append(result)
    assert len(answers) <= 1


def fresh_keys():
    class Fresh:
        def __init__(self):
            self.record = None

        def get(self, _):
            return self.record

        def insert(self, record):
            return self._set(record, self.record is None)

        def replace(self, record):
            return self._set(record, self.record.version == record.version - 1)

        def _set(self, record, holds):
            if holds:
                self.record = record
            return holds

    return Fresh()


def test_ids_of_two_tries_are_the_same_and_cannot_be_guessed(memory_keys):
    first = idempotency.begin(memory_keys, "id", "d", NOW, b"salt")
    second = idempotency.begin(memory_keys, "id", "d", NOW + timedelta(seconds=60), b"other")
    assert isinstance(first, IdempotencyLease)
    assert isinstance(second, IdempotencyLease)
    assert first.stable_id("clu") == second.stable_id("clu")
    elsewhere = idempotency.begin(fresh_keys(), "id", "d", NOW, b"other")
    assert isinstance(elsewhere, IdempotencyLease)
    assert elsewhere.stable_id("clu") != first.stable_id("clu")


def test_a_refusal_for_who_asks_is_not_answered_to_somebody_else(create):
    def forbidden(_):
        raise Forbidden("Only an admin may.")

    assert create(forbidden).status == 403
    assert create(lambda _: Answer(202, {"id": "clu_1"})).status == 202
