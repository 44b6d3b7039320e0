"""A new cluster is refused before anything is made where a quota of the account has no room for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from local.aws.corrections.quotas import account_quotas
from stockyard.errors import PermissionDenied, VendorRefused
from stockyard.ports import Finding
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.catalog import quotas
from stockyard.providers.clouds.aws.catalog.processor_quotas import MachineNeed
from stockyard.providers.clouds.aws.catalog.quotas import NetworkNeed

VPCS, ADDRESSES, PROCESSORS = "L-F678F1CE", "L-0263D0A3", "L-1216C47A"
NEW_ACCOUNT = {VPCS: 5, ADDRESSES: 5, PROCESSORS: 5}


def findings(yard: Any, *types: str, own_network: bool = True, **need: Any) -> list[Finding]:
    machines = [MachineNeed("/settings/control_plane_instance_type", types or ("t3.xlarge",))]
    nat_zones = need.pop("nat_zones", ["us-east-1a"] if own_network else [])
    return of_needs(yard, machines, NetworkNeed("/settings/vpc_id", own=own_network, nat_zones=nat_zones, **need))


def of_needs(yard: Any, machines: Sequence[MachineNeed], network: NetworkNeed) -> list[Finding]:
    calls = Calls(yard.provider._sessions.of(yard.account, "op_1"), "us-east-1")
    return list(quotas.findings(calls, machines, network))


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


def test_a_quota_that_nobody_has_raised_is_what_every_account_has(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, Any] = {
        "get_service_quota": VendorRefused("no value", code="NoSuchResourceException"),
        "get_aws_default_service_quota": {"Quota": {"Value": 7.0}},
    }

    def call(_: Calls, _service: str, operation: str, **_parameters: Any) -> Any:
        answer = answers[operation]
        if isinstance(answer, Exception):
            raise answer
        return answer

    calls = Calls(yard.provider._sessions.of(yard.account, "op_1"), "us-east-1")
    monkeypatch.setattr(Calls, "call", call)
    assert quotas.quota(calls, "eks", "L-1194D53C") == 7
    answers["get_aws_default_service_quota"] = PermissionDenied("an older template", code="AccessDenied")
    assert [quotas.quota(calls, "eks", code) for code in ("L-1194D53C", "L-BD136A63")] == [100, 450]
    assert quotas.quota(calls, "eks", "L-UNKNOWN") == math.inf


def test_what_services_count_has_quotas(yard: Any) -> None:
    tenant = yard.tenant()
    groups = len(tenant.client("ec2").describe_security_groups()["SecurityGroups"])
    roles = len(tenant.client("iam").list_roles()["Roles"])
    need = quotas.ServiceNeed.of(
        [("security group", "a"), ("iam role", "b"), ("instance profile", "c"), ("snapshot policy", "d"), ("vpc", "e")]
    )
    assert need == quotas.ServiceNeed(1, 1, 1, 1, 0)
    calls = Calls(yard.provider._sessions.of(yard.account, "op_1"), "us-east-1")
    network = NetworkNeed("/settings/vpc_id", own=False)
    limits = {"L-E79EC296": groups, "L-FE177D64": roles, "L-6E65F664": 0}
    with account_quotas(limits):
        listed = list(quotas.findings(calls, [], network, need))
    with account_quotas({code: value + 1 for code, value in limits.items()}):
        assert list(quotas.findings(calls, [], network, need)) == []
    assert [finding.pointer for finding in listed] == [
        "/settings/region_name",
        "/cloud_account_id",
        "/cloud_account_id",
    ]
    assert f"{roles} of {roles} IAM roles in the account in use (quota L-FE177D64)" in listed[1].detail
    full = replace(need, lifecycle_policies=101)
    (finding,) = quotas.findings(calls, [], network, replace(full, security_groups=0, roles=0, profiles=0))
    assert "0 of 100 lifecycle policies" in finding.detail
    with account_quotas({"L-1194D53C": 0}):
        (finding,) = quotas.findings(calls, [], network, quotas.ServiceNeed(eks_clusters=1))
    assert "0 of 0 EKS clusters in us-east-1" in finding.detail


def test_gateways_and_balancers_have_quotas(yard: Any) -> None:
    """A finding each, at what of the settings asks for it, with code, limit, use and need."""
    yard.create()
    nat_zones = ["us-east-1a", "us-east-1b"]
    full = {"L-A4707A72": 1, "L-69A177A2": 1, "L-FE5A380F": 1, ADDRESSES: 2}
    with account_quotas(full):
        listed = findings(yard, balancers=1, nat_zones=nat_zones, nats_at="/settings/nat_gateways")
        assert findings(yard, own_network=False) == []
    assert [(finding.pointer, finding.warning) for finding in listed] == [
        ("/settings/vpc_id", False),
        ("/settings/region_name", False),
        ("/settings/nat_gateways", False),
        ("/settings/nat_gateways", False),
    ]
    texts = [finding.detail for finding in listed]
    assert "1 of 1 internet gateways in us-east-1 in use (quota L-A4707A72), and the cluster needs 1." in texts[0]
    assert "1 of 1 network load balancers in us-east-1 in use (quota L-69A177A2), and the cluster needs 1." in texts[1]
    assert "1 of 2 Elastic IP addresses in us-east-1 in use (quota L-0263D0A3), and the cluster needs 2." in texts[2]
    assert "1 of 1 NAT gateways in us-east-1a in use (quota L-FE5A380F), and the cluster needs 1." in texts[3], (
        "the other zone has room"
    )


def test_machines_of_one_cluster_share_a_quota(yard: Any) -> None:
    """Three machines of a pool beside the control plane: 4 + 12 of 15."""
    pool = MachineNeed("/settings/autoscaler_node_groups/0/min_size", ("m6i.xlarge",), 3)
    control_plane = MachineNeed("/settings/control_plane_instance_type", ("t3.xlarge", "m5.xlarge"))
    network = NetworkNeed("/settings/vpc_id", own=False)
    with account_quotas({PROCESSORS: 16}):
        assert of_needs(yard, [control_plane, pool], network) == []
    with account_quotas({PROCESSORS: 15}):
        (finding,) = of_needs(yard, [control_plane, pool], network)
        assert of_needs(yard, [control_plane], network) == []
    assert (finding.pointer, finding.warning) == (pool.pointer, False)
    assert "0 of 15 vCPUs of standard instances" in finding.detail
    assert "12 for m6i.xlarge (3 machines), beside 4 of its machines named before" in finding.detail


def test_spot_has_a_quota_of_its_own(yard: Any) -> None:
    pool = MachineNeed("/settings/autoscaler_node_groups/0/min_size", ("m6i.xlarge",), 3, spot=True)
    with account_quotas({PROCESSORS: 0, "L-34B43A08": 8}):
        (finding,) = of_needs(yard, [pool], NetworkNeed("/settings/vpc_id", own=False))
    assert "0 of 8 vCPUs of standard spot instances in us-east-1 in use (quota L-34B43A08)" in finding.detail
