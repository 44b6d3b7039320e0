"""The network in which the nodes of a cluster run, and what an environment refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.errors import NodeCouldNotBeProvisioned, NotYetVisible, VendorRefused
from stockyard.providers.nodes.ec2.node_class import NodeClass, of_facts


def test_nodes_stand_in_the_private_subnets_of_their_cluster(hand: Any) -> None:
    outcome = hand.prepare()
    ledger = hand.yard.ledger
    node_class = of_facts(outcome.facts)
    assert node_class.by_zone == {
        "us-east-1a": (ledger.find("subnet", "private-a").vendor_id,),
        "us-east-1b": (ledger.find("subnet", "private-b").vendor_id,),
    }
    # moto numbers them so; AWS does too in some accounts only.
    assert node_class.zone_ids == {"us-east-1a": "use1-az6", "us-east-1b": "use1-az1"}
    assert node_class.security_groups == (ledger.find("security_group", "node").vendor_id,)
    assert node_class.instance_profile == f"vantage-{hand.yard.cluster.client_id}-instance-profile"
    assert node_class.images["amd64"].startswith("ami-")
    assert "us-east-1a" in outcome.message
    assert hand.prepare().facts == outcome.facts
    assert [line.state for line in hand.ledger_of_environment.lines()] == ["made"]


@pytest.mark.parametrize("block", [{"cloudAccount": 2}, {"region": "eu-west-1"}])
def test_another_network_than_the_clusters_needs_an_overlay(hand: Any, build: Any, block: dict[str, Any]) -> None:
    hand.provider = build.provider(**block)
    for step in (lambda: hand.source.prepare(hand.environment_work()), hand.launch):
        with pytest.raises(NodeCouldNotBeProvisioned, match="overlay"):
            step()
    assert hand.templates() == []
    assert hand.ledger_of_environment.lines() == []


def test_the_documents_own_subnets_win(hand: Any, build: Any) -> None:
    image = hand.calls.describe_images()["Images"][0]
    subnet = hand.yard.ledger.find("subnet", "public-b").vendor_id
    hand.provider = build.provider(
        subnets=[subnet], instanceProfile="theirs", image=image["ImageId"], securityGroups=["sg-01234567"]
    )
    node_class = of_facts(hand.prepare().facts)
    assert dict(node_class.zones) == {subnet: "us-east-1b"}
    assert (node_class.instance_profile, node_class.security_groups) == ("theirs", ("sg-01234567",))
    assert list(node_class.images.values()) == [image["ImageId"]]
    assert node_class.root_device == image["RootDeviceName"]


def test_subnets_of_another_vpc_need_security_groups_of_it(hand: Any, build: Any) -> None:
    vpc = hand.calls.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = hand.calls.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"]
    hand.provider = build.provider(subnets=[subnet])
    with pytest.raises(VendorRefused) as caught:
        hand.prepare()
    assert subnet in str(caught.value)
    hand.provider = build.provider(subnets=[subnet], securityGroups=["sg-01234567"])
    assert subnet in hand.prepare().facts["subnets"]


@pytest.mark.parametrize("block", [{"subnets": ["subnet-01234567"]}, {"image": "ami-01234567"}])
def test_what_is_not_there_is_named(hand: Any, build: Any, block: dict[str, Any]) -> None:
    hand.provider = build.provider(**block)
    with pytest.raises(VendorRefused) as caught:
        hand.prepare()
    assert "01234567" in str(caught.value)
    assert caught.value.hint


def test_a_cluster_in_one_given_subnet_has_its_nodes_there(hand: Any) -> None:
    subnet = hand.yard.ledger.find("subnet", "private-b").vendor_id
    hand.yard.with_settings(subnet_id=subnet)
    assert list(of_facts(hand.prepare().facts).zones) == [subnet]
    public = hand.yard.ledger.find("subnet", "public-a").vendor_id
    hand.yard.with_settings(subnet_id=public)
    with pytest.raises(VendorRefused, match="no private subnet"):
        hand.prepare()


def test_nodes_do_not_come_to_a_zone_that_the_cluster_leaves(hand: Any) -> None:
    """Subnets of the zone are there until the balancer has left them."""
    assert set(of_facts(hand.prepare().facts).zones.values()) == {"us-east-1a", "us-east-1b"}
    hand.yard.with_settings(zones=["us-east-1a"])
    assert set(of_facts(hand.prepare().facts).zones.values()) == {"us-east-1a"}


def test_a_group_that_is_not_shown_is_waited_for(hand: Any) -> None:
    hand.yard.cluster = replace(hand.yard.cluster, id="clu_01KDVJXQ80000000000000000B")
    with pytest.raises(NotYetVisible):
        hand.prepare()


def test_a_node_class_is_the_same_after_a_trip_through_the_outputs() -> None:
    node_class = NodeClass(
        {"subnet-2": "b", "subnet-1": "a", "subnet-3": "a"}, ("sg-1", "sg-2"), "p", {"amd64": "ami-1"}, "/dev/xvda", 7
    )
    assert of_facts(node_class.facts()) == node_class
    node_class = replace(node_class, zone_ids={"a": "use1-az1", "b": "use1-az4"})
    assert of_facts(node_class.facts()) == node_class
    assert node_class.by_zone == {"a": ("subnet-1", "subnet-3"), "b": ("subnet-2",)}
    assert all(isinstance(text, str) for text in node_class.facts().values())
