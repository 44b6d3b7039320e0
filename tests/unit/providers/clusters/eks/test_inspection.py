"""Findings in the account about a cluster's settings, and about an upgrade, each with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from local.aws.corrections.compute.capacity_reservations import capacity_reservations
from local.aws.corrections.compute.reservations import new_block
from local.aws.corrections.eks.eks import eks_backends
from local.aws.corrections.eks.things import planned_insights
from local.aws.corrections.pace import paced
from local.aws.corrections.quotas import account_quotas
from local.aws.corrections.refusals import planned_refusals
from stockyard.ports import Finding
from stockyard.providers.clouds.aws.policies import template_parts, template_versions
from stockyard.providers.clusters.eks import names
from tests.unit.providers.clusters.eks.conftest import H100, settings
from tests.unit.providers.conftest import ACME, START

PLACE = "/settings/node_groups/0"
BEGIN = START + timedelta(days=2)


def findings(eks: Any, *groups: dict[str, Any], **values: Any) -> list[Finding]:
    eks.cluster = replace(eks.cluster, settings=settings(node_groups=list(groups), **values))
    return list(eks.provider.inspect(eks.work("account")))


def pointers(findings_of_it: list[Finding]) -> list[tuple[str, bool]]:
    return [(finding.pointer, finding.warning) for finding in findings_of_it]


def test_settings_that_fit_have_no_findings(eks: Any) -> None:
    assert findings(eks) == []
    assert findings(eks, {**H100, "zones": ["us-east-1a", "us-east-1b"]}) == []


def test_a_zone_that_the_region_lacks_or_that_takes_no_control_plane(eks: Any) -> None:
    cidrs = ["10.0.0.0/20", "10.0.16.0/20"]
    (absent,) = findings(eks, zones=["us-east-1a", "us-east-1x"], subnet_cidrs=cidrs)
    assert absent.pointer == "/settings/zones/1"
    ec2 = eks.tenant().client("ec2")
    ids = {zone["ZoneId"]: zone["ZoneName"] for zone in ec2.describe_availability_zones()["AvailabilityZones"]}
    (other,) = findings(eks, zones=["us-east-1a", ids["use1-az3"]], subnet_cidrs=cidrs)
    assert (other.pointer, other.detail) == ("/settings/zones/1", f"EKS has no control planes in {ids['use1-az3']}.")


def test_a_group_outside_of_the_subnets_is_named(eks: Any) -> None:
    (finding,) = findings(eks, {**H100, "zones": ["us-east-1f"]})
    assert pointers([finding]) == [(f"{PLACE}/zones", False)]
    assert "us-east-1a, us-east-1b, us-east-1c" in finding.detail


def test_a_type_that_the_zone_does_not_offer_is_named(eks: Any) -> None:
    (finding,) = findings(eks, {**H100, "instance_type": "x9.huge"})
    assert (finding.pointer, finding.detail) == (
        f"{PLACE}/instance_type",
        "x9.huge is not offered in us-east-1b.",
    )


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    with capacity_reservations(), paced(lambda _kind: 0.0, moment.timestamp):
        yield


def block(**fields: Any) -> str:
    zone, count = fields.get("zone", "us-east-1b"), fields.get("count", 4)
    return new_block(
        ACME, "us-east-1", fields.get("kind", "p5.48xlarge"), zone, count, BEGIN, BEGIN + timedelta(days=1)
    )


@pytest.mark.parametrize(
    ("fields", "pointer", "text"),
    [
        ({"zone": "us-east-1a"}, f"{PLACE}/zones", "is in us-east-1a"),
        ({"count": 2}, f"{PLACE}/count", "has 2 machines"),
        ({"kind": "p4d.24xlarge"}, f"{PLACE}/instance_type", "is of p4d.24xlarge"),
    ],
)
def test_a_block_that_is_not_what_the_group_takes_it_for(
    eks: Any, fields: dict[str, Any], pointer: str, text: str
) -> None:
    with at(START):
        group = {**H100, "capacity_reservation_id": block(**fields), "count": 3}
        first, *more = [finding for finding in findings(eks, group) if not finding.warning]
    assert more == []
    assert first.pointer == pointer
    assert text in first.detail


def test_groups_of_one_block_have_no_more_machines_together_than_it_has(eks: Any) -> None:
    with at(START):
        group = {**H100, "capacity_reservation_id": block(count=4), "count": 2, "max_size": 4}
        groups = [{**group, "name": name} for name in ("a", "b", "c")]
        answer = [finding for finding in findings(eks, *groups) if not finding.warning]
    assert [finding.pointer for finding in answer] == ["/settings/node_groups/2/count"]
    assert answer[0].detail.endswith("has 4 machines, of which other groups have 4.")


def test_a_block_of_one_machine_is_told_as_one(eks: Any) -> None:
    with at(START):
        group = {**H100, "capacity_reservation_id": block(count=1), "count": 2}
        texts = [finding.detail for finding in findings(eks, group) if not finding.warning]
    assert len(texts) == 1
    assert texts[0].endswith("has 1 machine.")


def test_a_block_smaller_than_the_maximum_is_a_warning(eks: Any) -> None:
    eks.now = BEGIN + timedelta(hours=1)
    with at(eks.now):
        (finding,) = findings(eks, {**H100, "capacity_reservation_id": block(count=2), "count": 2})
    assert pointers([finding]) == [(f"{PLACE}/max_size", True)]


def test_a_reservation_that_is_no_block_is_refused(eks: Any) -> None:
    with at(START):
        answer = (
            eks.tenant()
            .client("ec2")
            .create_capacity_reservation(
                InstanceType="p5.48xlarge",
                InstancePlatform="Linux/UNIX",
                AvailabilityZone="us-east-1b",
                InstanceCount=4,
            )
        )
        reservation = answer["CapacityReservation"]["CapacityReservationId"]
        (finding,) = findings(eks, {**H100, "capacity_reservation_id": reservation})
    assert pointers([finding]) == [(f"{PLACE}/capacity_reservation_id", False)]
    assert "is no capacity block" in finding.detail


def test_what_a_zone_offers_does_not_matter_to_a_block(eks: Any) -> None:
    eks.now = BEGIN + timedelta(hours=1)
    with at(eks.now):
        group = {**H100, "instance_type": "x9.huge", "capacity_reservation_id": block(kind="x9.huge")}
        assert findings(eks, group) == []


def test_a_block_before_its_start_is_a_warning_with_the_date(eks: Any) -> None:
    with at(START):
        (finding,) = findings(eks, {**H100, "capacity_reservation_id": block()})
    assert pointers([finding]) == [(f"{PLACE}/capacity_reservation_id", True)]
    assert f"begins at {BEGIN:%Y-%m-%d %H:%M}" in finding.detail


def test_a_block_that_has_ended_is_refused_and_one_that_goes_on_is_not(eks: Any) -> None:
    with at(START):
        reservation = block()
    group = {**H100, "capacity_reservation_id": reservation}
    eks.now = BEGIN + timedelta(hours=1)
    with at(eks.now):
        assert findings(eks, group) == []
    eks.now = BEGIN + timedelta(days=3)
    with at(eks.now):
        (finding,) = findings(eks, group)
    assert pointers([finding]) == [(f"{PLACE}/capacity_reservation_id", False)]
    assert "has ended" in finding.detail


@pytest.mark.parametrize("reservation", ["cr-0123456789abcdef0", "cr-1"])
def test_a_block_that_is_not_there_is_named(eks: Any, reservation: str) -> None:
    with at(START):
        (finding,) = findings(eks, {**H100, "capacity_reservation_id": reservation})
    assert finding.pointer == f"{PLACE}/capacity_reservation_id"


def test_quotas_count_an_address_for_each_gateway(eks: Any) -> None:
    with account_quotas({"L-0263D0A3": 2, "L-F678F1CE": 5}):
        assert findings(eks) == []
        (finding,) = findings(eks, nat_gateways="zone")
    assert finding.pointer == "/settings/nat_gateways"
    assert "needs 3" in finding.detail


def test_a_group_is_no_larger_than_the_account_lets_managed_groups_be(eks: Any) -> None:
    def sized(count: int, most: int) -> list[tuple[str, bool]]:
        group = {"name": "w", "role": "system", "instance_type": "m6i.large", "count": count, "max_size": most}
        return [each for each in pointers(findings(eks, group)) if "node_groups" in each[0]]

    with account_quotas({"L-BD136A63": 500}):
        assert sized(1, 500) == []
        assert sized(1, 501) == [(f"{PLACE}/max_size", True)]
        assert sized(501, 501) == [(f"{PLACE}/count", False)]


def test_an_account_with_an_older_template_is_told_and_refused(eks: Any) -> None:
    iam = eks.tenant().client("iam")
    iam.untag_role(RoleName="stockyard", TagKeys=[template_parts.TAG])
    iam.tag_role(RoleName="stockyard", Tags=[{"Key": template_versions.TAG, "Value": "3"}])
    (finding,) = findings(eks)
    assert pointers([finding]) == [("/cloud_account_id", False)]
    assert "make clusters on EKS" in finding.detail
    older = template_versions.shortage(template_versions.Deployed(template_versions.CURRENT - 1), [template_parts.EKS])
    assert older is not None
    assert not older.refuses, "what only machines of kubeadm need refuses no cluster on EKS"


def test_an_account_with_an_older_template_has_no_groups_with_a_launch_template(eks: Any) -> None:
    iam, older = eks.tenant().client("iam"), str(template_versions.LAUNCH_TEMPLATES - 1)
    iam.tag_role(RoleName="stockyard", Tags=[{"Key": template_versions.TAG, "Value": older}])
    assert [finding.warning for finding in findings(eks)] == [True], "groups without one can be made"
    with at(START):
        faults = [finding for finding in findings(eks, {**H100, "fabric": "efa"}) if not finding.warning]
    assert [finding.pointer for finding in faults] == [PLACE]
    assert f"version {older}" in faults[0].detail


@pytest.mark.parametrize(
    ("parts", "storage", "has_block", "parameters"),
    [
        ("common kubeadm", False, False, "Eks=yes"),
        ("common kubeadm", True, True, "Eks=yes Efs=yes CapacityBlocks=yes"),
        ("common eks", True, False, "Efs=yes"),
        ("common eks", False, False, ""),
        ("common eks efs", True, True, "CapacityBlocks=yes"),
        ("common eks efs capacity-blocks", True, True, ""),
    ],
)
def test_a_part_of_the_template_that_the_cluster_needs_is_asked_for(
    eks: Any, parts: str, storage: bool, has_block: bool, parameters: str
) -> None:
    iam = eks.tenant().client("iam")
    iam.tag_role(RoleName="stockyard", Tags=[{"Key": template_parts.TAG, "Value": parts}])
    denials = {} if "capacity-blocks" in parts else {"ec2:DescribeCapacityReservations": 1}
    with at(START), planned_refusals({}, denials, lambda _: True):
        groups = [{**H100, "capacity_reservation_id": block()}] if has_block else []
        own = [f for f in findings(eks, *groups, shared_storage=storage) if f.pointer == "/cloud_account_id"]
    assert [finding.warning for finding in own] == [False] * bool(parameters)
    assert all(f" {parameters}." in finding.detail for finding in own)


def test_another_region_than_the_accounts_is_a_warning_and_none_is_refused(eks: Any) -> None:
    (finding,) = findings(eks, region_name="eu-west-1")
    assert pointers([finding]) == [("/settings/region_name", True)]
    assert pointers(findings(eks, region_name="us-nowhere-9"))[-1] == ("/settings/region_name", False)


def test_an_upgrade_is_told_what_eks_has_seen_and_which_nodes_are_too_old(eks: Any, run: Callable[[str], None]) -> None:
    eks.cluster = replace(eks.cluster, kubernetes_version="1.34")
    run("node_groups")
    assert list(eks.provider.upgrade_findings(eks.work("upgrade"))) == [], "nothing changes"
    eks.cluster = replace(eks.cluster, kubernetes_version="1.35")
    name = "Deprecated APIs removed in Kubernetes v1.35"
    for status, is_warning in (("ERROR", False), ("WARNING", True)):
        with planned_insights([{"name": name, "status": status}]):
            (finding,) = eks.provider.upgrade_findings(eks.work("upgrade"))
        assert pointers([finding]) == [("/kubernetes_version", is_warning)]
        assert name in finding.detail
    with planned_insights([{"name": name, "status": "PASSING"}]):
        assert list(eks.provider.upgrade_findings(eks.work("upgrade"))) == []
    cluster = eks_backends[ACME]["us-east-1"].clusters[names.cluster_name(eks.cluster)]
    cluster.groups["system"].document["version"] = "1.31"
    (old,) = eks.provider.upgrade_findings(eks.work("upgrade"))
    assert "nodes of system have Kubernetes 1.31" in old.detail
