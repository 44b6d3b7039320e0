"""Exactly one audit record per changing call and per secret that is read."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.values import ids
from stockyard.edge import audit
from stockyard.edge.route import Answer, Roles
from stockyard.errors import NotFound, StoreUnavailable

CLUSTER_ID = "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV"
PATCH = {"description": "canary-value", "tags": {"a": "b"}}


def patch_route(world, use):
    world.http.route(
        "PATCH /v1/clusters/{id}",
        summary="Change",
        action="ChangeCluster",
        roles=Roles.OPERATOR,
        body="clusters.patch:ClusterPatch",
        answers={200: None},
        if_match=True,
    )(use)


def secret_route(world, use):
    world.http.route(
        "GET /v1/clusters/{id}/client-secret",
        summary="Secret",
        action="ReadClientSecret",
        roles=Roles.OPERATOR,
        answers={200: None},
        audited=True,
    )(use)


def change(world):
    return world.call("PATCH", "/v1/clusters/one", body=PATCH, headers={"if-match": '"1"'})


def test_change_is_recorded_with_names_and_no_values(world):
    patch_route(world, lambda _: Answer(200, {"id": CLUSTER_ID}))
    assert change(world).status == 200
    ((tenant, record),) = world.audits
    assert tenant == "acme"
    assert ids.is_id(record.id)
    assert (record.actor, record.action, record.subject) == ("user:bob", "ChangeCluster", CLUSTER_ID)
    assert (record.outcome, record.request_id, record.detail) == ("done", "req-1", "description, tags")
    assert "canary-value" not in repr(record)


def test_refused_change_is_recorded_with_error(world):
    def refuse(_):
        raise NotFound("no")

    patch_route(world, refuse)
    assert change(world).status == 404
    ((_, record),) = world.audits
    assert (record.outcome, record.subject) == ("NotFound", "cluster/one")


def test_record_of_use_case_is_not_repeated(world):
    patch_route(world, lambda _: Answer(200, {"id": CLUSTER_ID}, audited=True))
    change(world)
    assert world.audits == []


def test_only_reads_of_secrets_are_recorded(world):
    world.http.route(
        "GET /v1/clusters", summary="List", action="ListClusters", roles=Roles.READERS, answers={200: None}
    )(lambda _: Answer(200, {}))
    world.call("GET", "/v1/clusters")
    assert world.audits == []
    secret_route(world, lambda _: Answer(200, {"client_secret": "s3cret-canary"}))
    assert world.call("GET", "/v1/clusters/one/client-secret").json == {"client_secret": "s3cret-canary"}
    ((_, record),) = world.audits
    assert (record.action, record.subject, record.outcome) == ("ReadClientSecret", "cluster/one", "done")
    assert "s3cret-canary" not in repr(record)


def test_secret_is_withheld_if_read_cannot_be_recorded(world):
    world.audits = FailingList()
    secret_route(world, lambda _: Answer(200, {"client_secret": "s3cret-canary"}))
    result = world.call("GET", "/v1/clusters/one/client-secret")
    assert result.status == 503
    assert "s3cret-canary" not in result.text


def test_completed_change_is_answered_if_record_fails(world, capsys):
    world.audits = FailingList()
    patch_route(world, lambda _: Answer(200, {"id": CLUSTER_ID}))
    assert change(world).status == 200
    assert "StoreUnavailable" in capsys.readouterr().out


class FailingList(list[Any]):
    def append(self, _):
        raise StoreUnavailable("down")


@pytest.mark.parametrize(
    ("path", "parameters", "body", "subject"),
    [
        ("/v1/clusters", [], {"id": CLUSTER_ID}, CLUSTER_ID),
        ("/v1/cloud-accounts", [], {"id": 7}, "cloud-account/7"),
        ("/v1/cloud-accounts/7", ["7"], None, "cloud-account/7"),
        ("/v1/clusters", [], None, "cluster"),
        ("/v1/quotas/clusters", ["clusters"], {"name": "clusters"}, "quota/clusters"),
    ],
)
def test_subject_of_a_call(path, parameters, body, subject):
    assert audit.subject_of(path, parameters, body) == subject
