"""Records as callers see them: exactly the fields of the API."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.machines import BootstrapProof, ReadyReport
from stockyard.domain.models.clusters.views import ClusterView
from stockyard.domain.models.events import AuditView, EventView
from stockyard.domain.models.operations import OperationView
from stockyard.domain.models.plan import PlanView
from stockyard.domain.models.prices import PriceView
from stockyard.domain.models.quotas import QuotaPut, QuotaView
from stockyard.domain.records import AuditRecord, Cluster, Event, Operation, OperationError, PhaseRecord
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.pointers import pointer
from stockyard.domain.views import audit_view, cluster_view, event_view, operation_view
from stockyard.errors import FieldProblem, InvalidInput

CLUSTER = Cluster(
    id="clu_1",
    name="one",
    description="",
    cluster_type="k8s",
    provider="aws",
    cloud_account_id=1,
    client_id="one-0123",
    status="preparing",
    settings={"key_pair": "k"},
    created_at="t1",
    updated_at="t2",
    phase="network",
    conditions=(Condition("Ready", "False", "Preparing", "", "t1"),),
    operation_id="op_1",
)


def test_a_cluster_shows_the_fields_of_the_api_and_no_more():
    view = cluster_view(CLUSTER)
    names = (
        "id name description cluster_type provider driver cloud_account_id client_id endpoint "
        "status phase conditions settings tags limits created_at updated_at version operation_id kubernetes_version "
        "certificates_expire_at "
        "keep_failed kept_until expires_at kubeconfig_secret queue bastion last_snapshot reason message warnings price "
        "costs "
        "vpn node_to_node"
    )
    assert set(view) == set(names.split())
    assert set(view) == set(ClusterView.model_fields)
    assert (view["vpn"], view["node_to_node"]) == (False, False)
    view = cluster_view(replace(CLUSTER, settings={"overlay": {"range": "100.64.0.0/16", "node_to_node": True}}))
    assert (view["vpn"], view["node_to_node"]) == (True, True)
    assert ClusterView.model_validate(view).conditions[0].reason == "Preparing"
    json.dumps(view)


@pytest.mark.parametrize(
    ("status", "condition", "trouble"),
    [
        ("failed", ("Ready", "False"), ("NoRoom", "There is none.")),
        ("ready", ("Degraded", "True"), ("NoRoom", "There is none.")),
        ("ready", ("Degraded", "False"), ("", "")),
        ("ready", ("Ready", "True"), ("", "")),
        ("preparing", ("Ready", "False"), ("", "")),
    ],
)
def test_a_cluster_says_why_it_is_not_well(status, condition, trouble):
    conditions = (
        Condition("NetworkReady", "True", "Done", "m", "t1"),
        Condition(condition[0], condition[1], "NoRoom", "There is none.", "t"),
    )
    view = cluster_view(replace(CLUSTER, status=status, conditions=conditions))
    assert (view["reason"], view["message"]) == trouble


def test_an_operation_with_and_without_an_error():
    operation = Operation(
        "op_1", "create_cluster", "clu_1", "failed", (PhaseRecord("network"),), "t1", "t2", "user:bob"
    )
    view = operation_view(operation, 40)
    assert set(view) == set(OperationView.model_fields)
    assert (view["error"], view["progress"], view["phases"][0]["state"]) == (None, 40, "pending")
    assert OperationView.model_validate(view)
    failed = Operation(
        **{name: getattr(operation, name) for name in ("id", "kind", "subject", "status", "phases")},
        created_at="t1",
        updated_at="t2",
        actor="a",
        error=OperationError("ClusterCouldNotBeDeployed", "network", "cause", "hint", "VendorQuotaExceeded"),
    )
    view = operation_view(failed, 40)
    assert (view["error"]["hint"], view["error"]["cause_type"]) == ("hint", "VendorQuotaExceeded")
    assert OperationView.model_validate(view)


def test_events_and_audit_records():
    event = Event("evt_1", "Cluster", "clu_1", 4, "t", "user:bob", None, "preparing", "Created", "m")
    view = event_view(event, "acme")
    assert view["phase"] == {"before": None, "after": "preparing"}
    assert (view["tenant"], view["sequence"]) == ("acme", 4)
    assert set(view) == set(EventView.model_fields)
    assert EventView.model_validate(view)
    record = AuditRecord("aud_1", "t", "user:bob", "CreateCluster", "clu_1", "done", "r", "name")
    assert set(audit_view(record)) == set(AuditView.model_fields)
    assert AuditView.model_validate(audit_view(record)).detail == "name"


def test_a_plan_of_nothing_is_a_plan():
    plan = PlanView.model_validate({"plan": {}}).model_dump()["plan"]
    sums = {"hour": 0, "month": 0, "known_hour": 0, "known_month": 0}
    assert plan["price"] == {"currency": "USD", **sums, "complete": True, "items": []}
    assert [plan[name] for name in ("creates", "changes", "deletes", "rejected", "warnings")] == [[]] * 5


def test_prices_and_quotas():
    price = PriceView(region="us-east-1", kind="instance", name="t3.large", unit="hour", currency="USD", price=0.0832)
    assert PriceView.model_validate(price.model_dump()) == price
    assert QuotaView(name="clusters", limit=20, used=1, version=0).model_dump()["used"] == 1
    assert read(QuotaPut, {"limit": 0}).limit == 0
    assert read(QuotaPut, {"limit": None}).limit is None
    for limit in (-1, 100_000_001, "7", True):
        with pytest.raises(InvalidInput):
            read(QuotaPut, {"limit": limit})


def test_a_report_hides_its_kubeconfig():
    text = "{clusters: [{name: k, cluster: {}}], users: [{name: k, user: {token: canary}}]}"
    report = read(ReadyReport, {"kubeconfig": text, "certificate_authority": "ca"})
    assert report.kubeconfig.get_secret_value() == text
    assert "canary" not in repr(report)


def test_a_proof_is_a_signed_request():
    proof = read(BootstrapProof, {"method": "POST", "url": "https://sts.amazonaws.com/?x=1", "headers": {"a": "b"}})
    assert proof.headers == {"a": "b"}


def test_pointers_are_escaped():
    assert pointer("a/b", 0, "c~d") == "/a~1b/0/c~0d"
    assert InvalidInput.of([FieldProblem("", "must be an object")]).detail == "the body: must be an object"
    faults = [FieldProblem("/a", "must be a string"), FieldProblem("/b", "unknown field")]
    assert InvalidInput.of(faults).detail == "2 fields are not valid."
