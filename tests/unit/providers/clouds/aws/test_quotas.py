"""A new cluster is refused before anything is made where a quota of the account has no room for it."""

from __future__ import annotations

from typing import Any

import pytest

from local.aws.corrections.quotas import account_quotas
from stockyard.errors import PermissionDenied
from stockyard.ports import Finding
from stockyard.providers.clouds.aws import quotas
from stockyard.providers.clouds.aws.calls import Calls

VPCS, ADDRESSES, PROCESSORS = "L-F678F1CE", "L-0263D0A3", "L-1216C47A"
NEW_ACCOUNT = {VPCS: 5, ADDRESSES: 5, PROCESSORS: 5}


def findings(yard: Any, *types: str, own_network: bool = True) -> list[Finding]:
    calls = Calls(yard.provider._sessions.of(yard.account, "op_1"), "us-east-1")
    pointers = ("/settings/control_plane_instance_type", "/settings/vpc_id")
    addresses = 1 if own_network else 0
    return list(quotas.findings(calls, types or ("t3.xlarge",), pointers[0], addresses=addresses, network=pointers[1]))


def test_a_new_account_has_room_for_a_first_cluster(yard: Any) -> None:
    with account_quotas(NEW_ACCOUNT):
        assert findings(yard) == []


@pytest.mark.parametrize(("code", "pointer"), [(VPCS, "/settings/vpc_id"), (ADDRESSES, "/settings/vpc_id")])
def test_a_quota_without_room_is_named(yard: Any, code: str, pointer: str) -> None:
    ec2 = yard.tenant().client("ec2")
    for number in range(5):
        ec2.create_vpc(CidrBlock=f"10.{number}.0.0/16")
        ec2.allocate_address(Domain="vpc")
    with account_quotas({**NEW_ACCOUNT, VPCS: 100, ADDRESSES: 100, code: 5}):
        (finding,) = findings(yard)
        assert findings(yard, own_network=False) == []
    assert (finding.pointer, finding.warning) == (pointer, False)
    assert code in finding.detail
    assert "of 5" in finding.detail


def test_vcpus_that_run_count(yard: Any) -> None:
    ec2 = yard.tenant().client("ec2")
    image = ec2.describe_images()["Images"][0]["ImageId"]
    ec2.run_instances(ImageId=image, InstanceType="t3.medium", MinCount=1, MaxCount=1)
    with account_quotas(NEW_ACCOUNT):
        (finding,) = findings(yard, own_network=False)
    assert finding.pointer == "/settings/control_plane_instance_type"
    assert "2 of 5 vCPUs" in finding.detail
    assert "needs 4 for t3.xlarge" in finding.detail


def test_quota_that_has_room_for_some_types_is_a_warning(yard: Any) -> None:
    ec2 = yard.tenant().client("ec2")
    image = ec2.describe_images()["Images"][0]["ImageId"]
    ec2.run_instances(ImageId=image, InstanceType="t3.medium", MinCount=1, MaxCount=1)
    with account_quotas(NEW_ACCOUNT):
        (partial,) = findings(yard, "m5.xlarge", "t3.large", "x9.unknown", own_network=False)
        (complete,) = findings(yard, "m5.xlarge", "t3.xlarge", own_network=False)
    assert (partial.warning, complete.warning) == (True, False)
    assert "needs 4 for m5.xlarge." in partial.detail
    assert "needs 4 for m5.xlarge, 4 for t3.xlarge." in complete.detail


@pytest.mark.parametrize(("name", "code"), [("g6.xlarge", "L-DB2E81BA"), ("p5.48xlarge", "L-417A185B")])
def test_gpus_have_quotas_of_their_own(yard: Any, name: str, code: str) -> None:
    with account_quotas({**NEW_ACCOUNT, code: 0}):
        (finding,) = findings(yard, "m5.xlarge", name, own_network=False)
        assert findings(yard, "m5.xlarge", "inf2.48xlarge", own_network=False) == []
    assert (finding.warning, code in finding.detail) == (True, True)
    assert f"for {name}." in finding.detail


def test_a_role_that_may_not_look_is_a_warning(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Calls.call

    def call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        if service == "service-quotas":
            raise PermissionDenied("not allowed", code="AccessDeniedException")
        return real(self, service, operation, **parameters)

    monkeypatch.setattr(Calls, "call", call)
    (finding,) = findings(yard)
    assert finding.warning
    assert "template" in finding.detail
