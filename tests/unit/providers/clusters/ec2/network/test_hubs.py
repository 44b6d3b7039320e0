"""Hubs of an overlay behind the balancer: a port for each place, who is behind it, and what the balancer lets in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local.aws.corrections.compute.compute import idempotent_calls
from stockyard.domain.clusters import overlay
from stockyard.errors import VendorTimeout
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clusters.ec2.network.rules import permission, udp_rule
from tests.unit.providers.clusters.ec2.network.test_tenant_network import Vpc

OVERLAY = {"range": overlay.DEFAULT_RANGE, "node_to_node": True}
PHASES = ("network", "security", "identity", "endpoint", "control_plane")


def _ready(yard: Any) -> Any:
    yard.with_settings(overlay=OVERLAY, cloud_controllers=False)
    with idempotent_calls():
        for phase in PHASES:
            yard.ensure(phase)
    return yard


def _behind(yard: Any) -> dict[int, list[str]]:
    """The machines behind each port of the balancer that is of a hub."""
    elb = yard.tenant().client("elbv2")
    (balancer,) = elb.describe_load_balancers()["LoadBalancers"]
    behind = {}
    for listener in elb.describe_listeners(LoadBalancerArn=balancer["LoadBalancerArn"])["Listeners"]:
        if listener["Protocol"] == "UDP":
            group = listener["DefaultActions"][0]["TargetGroupArn"]
            health = elb.describe_target_health(TargetGroupArn=group)["TargetHealthDescriptions"]
            states = {entry["Target"]["Id"]: entry["TargetHealth"]["State"] for entry in health}
            behind[listener["Port"]] = [machine for machine, state in states.items() if state != "draining"]
    return behind


def _first(yard: Any) -> str:
    return next(line.vendor_id for line in yard.ledger.lines() if line.kind == "instance")


def _other(yard: Any) -> str:
    client = yard.tenant().client("ec2")
    first = client.describe_instances()["Reservations"][0]["Instances"][0]
    copy = {"ImageId": first["ImageId"], "InstanceType": "t3.large", "SubnetId": first["SubnetId"]}
    return str(client.run_instances(**copy, MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"])


def test_each_slot_has_a_port_and_the_first_machine_the_first(yard: Any) -> None:
    _ready(yard)
    ports = {overlay.PORT + slot: list[str]() for slot in range(overlay.HUBS)}
    assert _behind(yard) == {**ports, overlay.PORT: [_first(yard)]}
    writes = yard.ledger.writes
    with idempotent_calls():
        for phase in ("endpoint", "control_plane"):
            yard.ensure(phase)
    assert (_behind(yard)[overlay.PORT], yard.ledger.writes) == ([_first(yard)], writes)


def test_a_member_takes_its_slot_from_whoever_had_it_and_leaves_it(yard: Any) -> None:
    _ready(yard)
    first, other = _first(yard), _other(yard)
    work = replace(yard.work("members"), hubs={other: 1})
    for _ in range(2):
        yard.provider.admit(work, other)
    assert _behind(yard) | {} == {**_behind(yard), overlay.PORT: [first], overlay.PORT + 1: [other]}
    yard.provider.admit(replace(work, hubs={other: 0}), other)
    assert _behind(yard)[overlay.PORT] == [other]
    for _ in range(2):
        yard.provider.withdraw(replace(work, hubs={other: 0}), other)
    assert _behind(yard)[overlay.PORT] == []
    yard.provider.admit(replace(work, hubs={}), other)
    assert _behind(yard)[overlay.PORT] == [], "who is no hub is behind no port"


def test_the_balancer_lets_in_the_ports_of_hubs_and_members_one_of_them_from_it(yard: Any) -> None:
    _ready(yard)
    rules = {}
    for group in yard.tenant().client("ec2").describe_security_groups()["SecurityGroups"]:
        udp = [rule for rule in group["IpPermissions"] if rule["IpProtocol"] == "udp"]
        if udp:
            (rule,) = udp
            peers = [item["CidrIp"] for item in rule["IpRanges"]] + [len(rule["UserIdGroupPairs"])]
            rules[group["GroupName"].rpartition("-sg")[0].partition("-")[2][-9:]] = (
                rule["FromPort"],
                rule["ToPort"],
                peers,
            )
    assert sorted(rules.values()) == [(51820, 51820, [1]), (51820, 51827, ["0.0.0.0/0", 0])]
    assert permission(udp_rule("1-2", "sg-1"))["UserIdGroupPairs"] == [{"GroupId": "sg-1"}]


def test_a_cluster_without_an_overlay_has_none_of_it(yard: Any) -> None:
    with idempotent_calls():
        for phase in PHASES:
            yard.ensure(phase)
    assert _behind(yard) == {}
    groups = yard.tenant().client("ec2").describe_security_groups()["SecurityGroups"]
    assert [r for group in groups for r in group["IpPermissions"] if r["IpProtocol"] == "udp"] == []


def test_whatever_call_is_cut_off_there_is_one_of_each_and_nothing_stays(
    yard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the call, before its answer: the groups and listeners of hubs, one after the other."""
    call, cuts = Calls.call, {"create_target_group": 0, "create_listener": 0, "register_targets": 0}

    def cut_off(calls: Calls, service: str, operation: str, **parameters: Any) -> Any:
        answer = call(calls, service, operation, **parameters)
        if operation in cuts:
            cuts[operation] += 1
            if cuts[operation] in (2, 4):
                raise VendorTimeout(f"{operation}: the answer was lost")
        return answer

    yard.with_settings(overlay=OVERLAY, cloud_controllers=False)
    monkeypatch.setattr(Calls, "call", cut_off)
    with idempotent_calls():
        for phase in PHASES:
            for _ in range(8):
                try:
                    yard.ensure(phase)
                    break
                except VendorTimeout:
                    yard.later(120)
    assert cuts["create_target_group"] == overlay.HUBS + 1
    assert {port: len(machines) for port, machines in _behind(yard).items()} == {
        overlay.PORT + slot: int(slot == 0) for slot in range(overlay.HUBS)
    }
    monkeypatch.undo()
    yard.later(120)
    yard.delete()
    assert yard.living() == []


def test_hubs_need_a_public_subnet(yard: Any) -> None:
    private = Vpc(yard).subnet("private", "b")
    yard.with_settings(subnet_id=private, overlay=OVERLAY, cloud_controllers=False)
    (finding,) = [each for each in yard.provider.inspect(yard.work("account")) if not each.warning]
    assert finding.pointer == "/settings/overlay"
    assert "could not reach the hubs" in finding.detail
