"""Waiting polls, slows down, tells of changes, and stops."""

from __future__ import annotations

import pytest

from stockyard_client import OperationFailed, WaitTimedOut


def test_waits_until_it_has_succeeded(api, client, clock, operation_document):
    for document in (
        operation_document("running", "running"),
        operation_document("running", "running"),
        operation_document("succeeded", "succeeded", "succeeded", "succeeded"),
    ):
        api.answer("GET", "/v1/operations/op_01", document)
    statuses = []
    operation = client.wait_operation("op_01", on_change=lambda operation: statuses.append(operation.status))
    assert operation.status == "succeeded"
    assert statuses == ["running", "succeeded"]
    # the API did not wait for news, so a pause came between two looks
    assert clock.slept == [1.0]


def test_pause_grows_to_five_seconds_and_never_beyond_the_time_left(api, client, clock, operation_document):
    api.answer("GET", "/v1/operations/op_01", operation_document())
    with pytest.raises(WaitTimedOut) as caught:
        client.wait_operation("op_01", timeout=30)
    assert caught.value.operation.id == "op_01"
    assert max(clock.slept) == 5.0
    assert clock.time == 30


def test_operation_that_ends_at_timeout_counts_as_ended(api, client, clock, operation_document):
    api.answer("GET", "/v1/operations/op_01", operation_document())
    api.answer("GET", "/v1/operations/op_01", operation_document("succeeded"))
    assert client.wait_operation("op_01", timeout=1).status == "succeeded"


def test_failure_is_raised_with_its_operation(api, client, operation_document):
    error = {"error_type": "ClusterCouldNotBeDeployed", "phase": "network", "cause": "no VPC left", "hint": "ask"}
    api.answer("GET", "/v1/operations/op_01", operation_document("failed", error=error))
    with pytest.raises(OperationFailed, match="no VPC left") as caught:
        client.wait_operation("op_01")
    assert caught.value.operation.error is not None
    assert caught.value.operation.error.hint == "ask"


def test_wait_with_zero_timeout_reads_once(api, client, clock, operation_document):
    api.answer("GET", "/v1/operations/op_01", operation_document())
    with pytest.raises(WaitTimedOut):
        client.wait_operation("op_01", timeout=0)
    assert len(api.requests) == 1
    assert clock.slept == []


@pytest.mark.parametrize("settings", [{}, {"control_plane_size": 1}, {"control_plane_size": "md"}])
def test_nothing_is_waited_for_where_a_control_plane_is_one_machine(api, client, cluster_document, settings):
    api.answer("GET", "/v1/clusters/demo", cluster_document(settings=settings))
    cluster = client.clusters.get("demo")
    assert client.wait_control_plane(cluster) is cluster
    assert len(api.requests) == 1
