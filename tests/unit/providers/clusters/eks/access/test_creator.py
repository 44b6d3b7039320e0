"""The tenant's role is deleted and made again under its name: the cluster lets the new one in, and people by it."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from moto.iam.models import iam_backends

from local.aws.corrections.eks.eks import eks_backends
from stockyard.errors import VendorUnavailable
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clusters.eks import names
from stockyard.providers.clusters.eks.access import creator
from tests.harness.worlds import inventory
from tests.unit.providers.clusters.eks.conftest import Run
from tests.unit.providers.conftest import ACME

OWN = f"arn:aws:iam::{ACME}:role/stockyard"


def role_ids() -> dict[str, str]:
    """ARN -> the id that IAM has for it now."""
    return {role.arn: role.id for role in iam_backends[ACME]["aws"].roles.values()}


def let_in(eks: Any) -> dict[str, str | None]:
    """ARN -> the id that the cluster lets in."""
    entries = eks_backends[ACME]["us-east-1"].clusters[names.cluster_name(eks.cluster)].entries
    return {arn: entry.principal_id for arn, entry in entries.items()}


def redeploy(eks: Any) -> str:
    """Delete the stack of the account's template, and deploy it again; the id of the former role."""
    former = role_ids()[OWN]
    eks.tenant().client("iam").delete_role(RoleName="stockyard")
    inventory.tenant_role(ACME, "stockyard")
    eks.provider._sessions._kept.clear()
    eks.later(3600)
    return former


def ensured(eks: Any, phase: str) -> None:
    for _ in range(4):
        if eks.ensure(phase).done:
            return
        eks.later(120)
    raise AssertionError(f"{phase} does not end")


def trusted(eks: Any, role: str) -> Any:
    name = f"vantage-{eks.cluster.client_id}-{role}-role"
    document = eks.tenant().client("iam").get_role(RoleName=name)["Role"]["AssumeRolePolicyDocument"]
    return document["Statement"][0]["Principal"]


def test_the_cluster_lets_the_new_role_in_and_people_by_it(eks: Any, run: Run) -> None:
    run("objects")
    eks.later(3600)
    for _ in range(2):
        former = redeploy(eks)
        assert let_in(eks)[OWN] == former != role_ids()[OWN], "else nobody is locked out"
        assert trusted(eks, "viewer") == {"AWS": former}, "IAM shows the id of a principal that is gone"
        ensured(eks, "identity")
        ensured(eks, "access")
        assert {arn: role_ids()[arn] for arn in let_in(eks)} == let_in(eks)
        assert [trusted(eks, role) for role in ("viewer", "operator", "admin")] == [{"AWS": OWN}] * 3
        policies = (
            eks.tenant()
            .client("eks")
            .list_associated_access_policies(clusterName=names.cluster_name(eks.cluster), principalArn=OWN)[
                "associatedAccessPolicies"
            ]
        )
        assert [policy["policyArn"].rpartition("/")[2] for policy in policies] == ["AmazonEKSClusterAdminPolicy"]
        assert eks.provider.mint(eks.work("tokens"), "viewer").token
    assert all(line.state == "made" for line in eks.ledger.lines())


def test_nothing_is_changed_while_the_role_is_the_same(eks: Any, run: Run) -> None:
    run("access")
    eks.later(3600)
    before, writes = let_in(eks), eks.ledger.writes
    for phase in ("identity", "access"):
        ensured(eks, phase)
    assert (let_in(eks), eks.ledger.writes) == (before, writes)


def test_a_cluster_of_an_earlier_release_lets_the_role_in_anew_once(eks: Any, run: Run) -> None:
    run("access")
    eks.later(3600)
    line = eks.ledger.find("eks_cluster", "main")
    former = {key: value for key, value in line.detail.items() if key != creator.CREATOR}
    eks.ledger.made(line, line.vendor_id, former)
    redeploy(eks)
    ensured(eks, "identity")
    ensured(eks, "access")
    assert let_in(eks)[OWN] == role_ids()[OWN]
    writes = eks.ledger.writes
    ensured(eks, "access")
    assert eks.ledger.writes == writes


@pytest.mark.parametrize("operation", ["create_access_entry", "associate_access_policy"])
def test_a_crash_while_the_entry_is_made_anew_is_mended_by_the_next_try(eks: Any, run: Run, operation: str) -> None:
    run("access")
    redeploy(eks)
    ensured(eks, "identity")
    original = Calls.call

    def crash(self: Calls, service: str, name: str, **parameters: Any) -> Any:
        if name == operation:
            raise VendorUnavailable("the process ends here")
        return original(self, service, name, **parameters)

    with patch.object(Calls, "call", crash), pytest.raises(VendorUnavailable):
        eks.ensure("access")
    ensured(eks, "access")
    assert let_in(eks)[OWN] == role_ids()[OWN]
