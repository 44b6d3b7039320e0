"""Advice for every failure of a cloud, and how it goes on for every kind of operation."""

from __future__ import annotations

import pytest

from stockyard.errors import VendorError
from stockyard.lifecycle.change_phases import CHANGES
from stockyard.lifecycle.hints import HINTS, hint
from stockyard.lifecycle.phases import CREATE_CLUSTER, PROCEDURES, procedure_of
from stockyard.lifecycle.procedure import Procedure


def test_every_failure_of_a_cloud_has_advice_of_its_own() -> None:
    assert {leaf.__name__ for leaf in VendorError.__subclasses__()} <= set(HINTS)


@pytest.mark.parametrize("procedure", PROCEDURES.values(), ids=lambda procedure: procedure.kind)
def test_creations_and_changes_of_clusters_are_resumed(procedure: Procedure) -> None:
    assert procedure.resumable == (procedure.kind in (CREATE_CLUSTER, *CHANGES))
    for name in (*HINTS, "KeyError"):
        assert ("resume" in hint(name, procedure.advice)) == procedure.resumable
        assert hint(name, procedure.advice).count(".") >= 2


def test_a_claim_that_failed_is_made_anew() -> None:
    assert hint("PermissionDenied", procedure_of(PROCEDURES, "create_node").advice) == (
        "Give the account the key of somebody who may do it, or update its role from GET "
        "/v1/cloud-accounts/{id}/template. What a policy of its organization denies needs what that policy asks for, "
        "as a tag of the cluster's. The claim does not try again: delete it and make another."
    )


@pytest.mark.parametrize("name", ["CredentialsRevoked", "PermissionDenied"])
def test_advice_about_credentials_is_for_clouds_with_keys_and_with_roles(name: str) -> None:
    assert "key" in HINTS[name]
    assert "role" in HINTS[name]
