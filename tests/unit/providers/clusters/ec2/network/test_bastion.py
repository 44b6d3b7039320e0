"""The bastion: the single way in for SSH where it is on, and nothing of it where it is off."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.errors import VendorRefused
from tests.unit.providers.clusters.ec2.network.test_tenant_network import Vpc

BASTION = {"enabled": True, "instance_type": "t3.micro", "image": None, "protocol": "ssh"}
ON = {"bastion": BASTION, "ssh_cidrs": ["198.51.100.0/24", "203.0.113.7/32"]}


def ssh_peers(yard: Any, key: str) -> set[str]:
    """Ranges and groups that a group lets in to port 22."""
    group = yard.ledger.find("security_group", key).vendor_id
    (described,) = yard.tenant().client("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"]
    rules = [rule for rule in described["IpPermissions"] if rule.get("FromPort") == 22]
    ranges = {item["CidrIp"] for rule in rules for item in rule["IpRanges"]}
    return ranges | {pair["GroupId"] for rule in rules for pair in rule["UserIdGroupPairs"]}


def machine(yard: Any) -> dict[str, Any]:
    line = yard.ledger.find("instance", "bastion")
    answer = yard.tenant().client("ec2").describe_instances(InstanceIds=[line.vendor_id])
    instance: dict[str, Any] = answer["Reservations"][0]["Instances"][0]
    return instance


def test_ssh_reaches_machines_through_the_bastion_alone(yard: Any) -> None:
    facts = yard.with_settings(**ON).create()
    described, group = machine(yard), yard.ledger.find("security_group", "bastion").vendor_id
    assert facts["bastion"] == described["PublicIpAddress"]
    assert described["SubnetId"] == yard.ledger.find("subnet", "public-a").vendor_id
    assert (described["KeyName"], described["InstanceType"]) == ("my-key", "t3.micro")
    assert described["MetadataOptions"]["HttpTokens"] == "required"
    assert "IamInstanceProfile" not in described, "who is on it has no right in the account"
    (interface,) = described["NetworkInterfaces"]
    assert [item["GroupId"] for item in interface["Groups"]] == [group]
    assert ssh_peers(yard, "bastion") == set(ON["ssh_cidrs"])
    assert ssh_peers(yard, "control-plane") == {group}
    assert ssh_peers(yard, "node") == {group}
    yard.later(120)
    yard.delete()
    assert yard.living() == []


def test_nothing_is_made_where_it_is_off(yard: Any) -> None:
    facts = yard.with_settings(bastion={**BASTION, "enabled": False}, ssh_cidrs=["198.51.100.0/24"]).create()
    assert facts["bastion"] == ""
    assert yard.ledger.find("instance", "bastion") is None
    assert yard.ledger.find("security_group", "bastion") is None
    assert ssh_peers(yard, "control-plane") == {"198.51.100.0/24"}


def test_it_is_switched_on_and_off_on_a_cluster_that_stands(yard: Any) -> None:
    yard.with_settings(ssh_cidrs=ON["ssh_cidrs"]).create()
    living = sorted(yard.living())
    yard.with_settings(**ON)
    for phase in ("security", "bastion"):
        yard.ensure(phase)
    group = yard.ledger.find("security_group", "bastion").vendor_id
    assert ssh_peers(yard, "control-plane") == ssh_peers(yard, "node") == {group}
    yard.later(120)
    yard.with_settings(bastion=None)
    for phase in ("security", "bastion"):
        facts = yard.ensure(phase).facts
    assert facts == {"bastion": ""}
    assert sorted(yard.living()) == living
    assert ssh_peers(yard, "control-plane") == set(ON["ssh_cidrs"])
    assert ssh_peers(yard, "node") == set()
    yard.with_settings(**ON)
    for phase in ("security", "bastion"):
        yard.ensure(phase)
    yard.later(120)
    yard.delete()
    assert yard.living() == [], "its group is younger than those that named it"


def test_what_is_let_in_follows_the_settings(yard: Any) -> None:
    yard.with_settings(**ON).create()
    yard.with_settings(ssh_cidrs=["192.0.2.0/24"])
    yard.ensure("bastion")
    assert ssh_peers(yard, "bastion") == {"192.0.2.0/24"}


def test_another_type_is_another_machine(yard: Any) -> None:
    yard.with_settings(**ON).create()
    first = machine(yard)["InstanceId"]
    yard.later(120)
    yard.with_settings(bastion={**BASTION, "instance_type": "t3.small"})
    yard.ensure("bastion")
    assert machine(yard)["InstanceType"] == "t3.small"
    assert machine(yard)["InstanceId"] != first


def test_a_machine_that_somebody_ended_is_replaced(yard: Any) -> None:
    yard.with_settings(**ON).create()
    first = machine(yard)["InstanceId"]
    yard.tenant().client("ec2").terminate_instances(InstanceIds=[first])
    yard.later(120)
    facts = yard.ensure("bastion").facts
    assert machine(yard)["InstanceId"] != first
    assert facts["bastion"] == machine(yard)["PublicIpAddress"]


def test_a_stopped_machine_is_told(yard: Any) -> None:
    yard.with_settings(**ON).create()
    yard.tenant().client("ec2").stop_instances(InstanceIds=[machine(yard)["InstanceId"]])
    with pytest.raises(VendorRefused, match="is stopped"):
        yard.ensure("bastion")


def test_it_needs_a_public_subnet(yard: Any) -> None:
    vpc = Vpc(yard)
    private = vpc.subnet("private", "b")
    yard.with_settings(subnet_id=private, **ON)
    (finding,) = [f for f in yard.provider.inspect(yard.work("account")) if not f.warning]
    assert finding.pointer == "/settings/bastion"
    for phase in ("network", "security"):
        yard.ensure(phase)
    with pytest.raises(VendorRefused, match="no public subnet for a bastion"):
        yard.ensure("bastion")


def test_its_image_and_type_are_looked_at(yard: Any) -> None:
    images = yard.tenant().client("ec2").describe_images()["Images"]
    windows = next(image["ImageId"] for image in images if image.get("Platform") == "windows")
    yard.with_settings(bastion={**BASTION, "image": windows, "instance_type": "z9.none"}, ssh_cidrs=["192.0.2.0/24"])
    faults = {f.pointer: f.detail for f in yard.provider.inspect(yard.work("account")) if not f.warning}
    assert set(faults) == {"/settings/bastion/image", "/settings/bastion/instance_type"}
    assert "RDP (port 3389) is for Windows images" in faults["/settings/bastion/image"]


def test_a_bastion_whose_key_pair_is_gone_is_not_made_and_nothing_waits_for_it(yard: Any) -> None:
    yard.create()
    yard.with_settings(**ON)
    yard.tenant().client("ec2").delete_key_pair(KeyName="my-key")
    outcome = yard.ensure("bastion")
    assert (outcome.done, outcome.facts) == (True, {"bastion": ""})
