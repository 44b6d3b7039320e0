"""Access to the API changes while the cluster stands: rules of ours come and go, those of others stay."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.records import Resource
from stockyard.errors import VendorTimeout
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clusters.ec2.network.rules import RULES
from stockyard.providers.clusters.ec2.network.security import BALANCER, CONTROL_PLANE

OFFICE, HOME = "198.51.100.0/24", "203.0.113.7/32"


def line_of(yard: Any, key: str) -> Resource:
    line = yard.ledger.find("security_group", key)
    assert isinstance(line, Resource)
    return line


def admitted(yard: Any, key: str, port: int) -> set[str]:
    """The CIDRs that a group lets in at a port, but for the VPC and its gateway."""
    ec2 = yard.tenant().client("ec2")
    (group,) = ec2.describe_security_groups(GroupIds=[line_of(yard, key).vendor_id])["SecurityGroups"]
    cidrs = {
        peer["CidrIp"] for rule in group["IpPermissions"] if rule.get("FromPort") == port for peer in rule["IpRanges"]
    }
    return {cidr for cidr in cidrs if not cidr.startswith("10.0.") and not cidr.endswith("/32")} | (cidrs & {HOME})


def stand(yard: Any) -> None:
    yard.with_settings(api_cidrs=[OFFICE], ssh_cidrs=[OFFICE])
    yard.ensure("network")
    yard.ensure("security")


def test_rules_follow_the_settings(yard: Any) -> None:
    stand(yard)
    assert admitted(yard, BALANCER, 6443) == {OFFICE}
    assert admitted(yard, CONTROL_PLANE, 22) == {OFFICE}
    yard.with_settings(api_cidrs=[HOME], ssh_cidrs=[])
    yard.ensure("security")
    assert admitted(yard, BALANCER, 6443) == {HOME}
    assert admitted(yard, CONTROL_PLANE, 22) == set()


def test_what_somebody_else_has_let_in_stays(yard: Any) -> None:
    stand(yard)
    ec2, group = yard.tenant().client("ec2"), line_of(yard, BALANCER).vendor_id
    other = {"IpProtocol": "tcp", "FromPort": 6443, "ToPort": 6443, "IpRanges": [{"CidrIp": "192.0.2.0/24"}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[other])
    yard.with_settings(api_cidrs=[HOME])
    yard.ensure("security")
    assert admitted(yard, BALANCER, 6443) == {HOME, "192.0.2.0/24"}


def test_a_group_of_an_earlier_release_loses_what_the_settings_no_longer_say(yard: Any) -> None:
    stand(yard)
    line = line_of(yard, BALANCER)
    del line.detail[RULES]
    yard.with_settings(api_cidrs=[HOME])
    yard.ensure("security")
    assert admitted(yard, BALANCER, 6443) == {HOME}
    assert RULES in line_of(yard, BALANCER).detail


@pytest.mark.parametrize("operation", ["authorize_security_group_ingress", "revoke_security_group_ingress"])
@pytest.mark.parametrize("happened", [True, False])
def test_a_change_of_rules_goes_on_after_a_lost_answer(
    yard: Any, monkeypatch: pytest.MonkeyPatch, operation: str, happened: bool
) -> None:
    stand(yard)
    yard.with_settings(api_cidrs=[HOME])
    real, faults = Calls.call, [VendorTimeout("no answer in time")]

    def call(self: Calls, service: str, name: str, **parameters: Any) -> Any:
        if name != operation or not faults:
            return real(self, service, name, **parameters)
        if happened:
            real(self, service, name, **parameters)
        raise faults.pop()

    monkeypatch.setattr(Calls, "call", call)
    with pytest.raises(VendorTimeout):
        yard.ensure("security")
    yard.ensure("security")
    assert admitted(yard, BALANCER, 6443) == {HOME}


def test_rules_that_stay_need_no_call_that_writes(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stand(yard)
    real, written = Calls.call, list[str]()

    def call(self: Calls, service: str, name: str, **parameters: Any) -> Any:
        if not name.startswith("describe"):
            written.append(name)
        return real(self, service, name, **parameters)

    monkeypatch.setattr(Calls, "call", call)
    yard.ensure("security")
    assert written == []
