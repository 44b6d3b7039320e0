"""The checks of tenants fail where a tenant sees another one's resources, and every operation has a check."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.api.one_cloud.isolation import FILTERS, KINDS, ROLES, intruder, invisible, no_trace

LEAK = """
from stockyard.adapters.dynamodb.registry import DynamoRegistry

own = DynamoRegistry.store
DynamoRegistry.store = lambda self, tenant: own(self, "acme")
"""
ELSEWHERE = {
    "GET /v1/health": "says nothing of anybody",
    "GET /v1/docs": "says nothing of anybody",
    "GET /v1/openapi.json": "says nothing of anybody",
    "POST /v1/cloud-accounts": "test_an_idempotency_key_of_another_tenant_does_not_give_its_answer",
    "POST /v1/cluster-profiles": "test_a_profile_with_a_foreign_name_is_an_own_one",
    "POST /v1/os-images": "test_an_image_with_a_foreign_name_is_an_own_one",
    "POST /v1/sites": "test_a_site_with_a_foreign_name_is_an_own_one",
    "POST /v1/clusters": "test_a_foreign_account_cannot_be_used",
    "POST /v1/apply": "test_manifests_with_a_foreign_name_create_an_own_resource",
    "POST /v1/placements": "test_pods_are_planned_for_own_clusters_and_on_own_providers_alone",
    "POST /v1/simulations": "test_traces_are_replayed_on_own_clusters_and_own_providers_alone",
    "POST /v1/node-claims": "test_a_claim_for_a_foreign_cluster_is_refused",
    "POST /v1/node-providers": "test_manifests_with_a_foreign_name_create_an_own_resource",
    "PUT /v1/allowed-node-types": "test_quotas_and_allowed_types_of_two_tenants_are_separate",
    "PUT /v1/disruption": "test_each_tenant_has_a_switch_of_its_own",
    "PUT /v1/event-accounts": "test_an_account_sends_the_requests_of_one_tenant_alone",
    "POST /v1/clusters/{id}/bootstrap": "test_bootstrap_and_join_give_nothing_without_a_machines_attestation",
    "POST /v1/node-claims/{id}/join": "test_bootstrap_and_join_give_nothing_without_a_machines_attestation",
    "POST /v1/node-claims/{id}/member-reports": "test_bootstrap_and_join_give_nothing_without_a_machines_attestation",
    "POST /v1/clusters/{id}/boot-reports": "test_bootstrap_and_join_give_nothing_without_a_machines_attestation",
    "POST /v1/clusters/{id}/snapshot-reports": "test_bootstrap_and_join_give_nothing_without_a_machines_attestation",
    "POST /v1/node-claims/{id}/boot-reports": "test_bootstrap_and_join_give_nothing_without_a_machines_attestation",
    "POST /v1/node-claims/{id}/interruptions": "test_bootstrap_and_join_give_nothing_without_a_machines_attestation",
    **{
        f"{method} /v1/runs/{{id}}/{part}": "test_a_run_is_reached_by_its_own_token_alone"
        for method, part in (
            ("POST", "begin"),
            ("POST", "log"),
            ("POST", "end"),
            ("GET", "state"),
            ("POST", "state"),
            ("DELETE", "state"),
            ("PUT", "lock"),
            ("DELETE", "lock"),
        )
    },
    "PUT /v1/quotas/{name}": "test_quotas_and_allowed_types_of_two_tenants_are_separate",
}
"""Operations whose path has no foreign id and that return no list, each with the test that covers it."""


def covered(operations, operations_by_choice):
    """Checks that every operation is in this matrix."""
    inside = {str(operation) for name in ("with_id", "listing") for operation in operations_by_choice[name]}
    assert {str(operation) for operation in operations} == inside | set(ELSEWHERE)
    assert not inside & set(ELSEWHERE)


def test_the_checks_fail_for_a_token_of_the_owner(api, all_operations, acme):
    """With a token of acme the answers contain everything of acme, so the checks must fail."""
    readable = [operation for operation in all_operations if operation.method == "GET" and not operation.public]
    for operation in readable:
        if "{id}" in operation.path:
            with pytest.raises(AssertionError):
                invisible(api, operation, acme, acme["token"])
    listed = ("clusters", "operations", "events", "audit", "cloud-accounts")
    for path in (
        f"/v1/{resource}"
        for resource in (
            *listed,
            "node-providers",
            "node-types",
            "node-claims",
            "node-environments",
            "cluster-profiles",
        )
    ):
        operation = next(operation for operation in readable if operation.path == path)
        with pytest.raises(AssertionError):
            no_trace(api.call(operation, acme["token"]), acme)


def one_of_each_kind(operations):
    """An operation of each kind of resource, and of each method."""
    return list({(operation.path.split("/")[2], operation.method): operation for operation in operations}.values())


def test_the_checks_fail_when_handlers_read_the_store_of_another_tenant(broken, operations_by_choice, acme, soaking):
    """Runs the real functions with a store that is always the store of acme. Without the full counts, one operation of
    each kind of resource and method: it is about the checks, and functions start for each."""
    leaking, choose = broken(LEAK), list if soaking else one_of_each_kind
    for operation in choose(operations_by_choice["listing"]):
        # Prices are equal for all tenants, quotas are numbers, acme has no allowed node types, and whose events an
        # account sends is a record of the platform.
        if operation.path not in (
            "/v1/prices",
            "/v1/quotas",
            "/v1/allowed-node-types",
            "/v1/event-accounts",
            "/v1/disruption",
        ):
            with pytest.raises(AssertionError):
                no_trace(leaking.call(operation, leaking.token("initech", *ROLES)), acme)
    with_id = [operation for operation in operations_by_choice["with_id"] if operation.roles]
    for operation in sorted(choose(with_id), key=lambda candidate: candidate.method == "DELETE"):
        with pytest.raises(AssertionError):
            invisible(leaking, operation, acme, intruder(leaking, operation))


def test_the_matrix_of_tenants_has_every_operation(
    all_operations, operations_by_choice, check_all_declared, record_property
):
    check_all_declared(all_operations)
    covered(all_operations, operations_by_choice)
    for operation in all_operations:
        with pytest.raises(AssertionError):
            covered([candidate for candidate in all_operations if candidate != operation], operations_by_choice)
    with pytest.raises(AssertionError):
        covered([*all_operations, replace(all_operations[0], path="/v1/new")], operations_by_choice)
    with_id, listing = len(operations_by_choice["with_id"]), len(operations_by_choice["listing"])
    filters = sum(name in FILTERS for operation in operations_by_choice["listing"] for name in operation.parameters)
    cells = (with_id + filters) * len(KINDS) + with_id + listing + len(operations_by_choice["paged"]) + len(ELSEWHERE)
    counts = {"operations": len(all_operations), "ids": len(KINDS), "cells": cells}
    record_property("figure:tenants", {**counts, "percent": 100})
