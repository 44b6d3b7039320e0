"""Launch templates: one for each pool, replaced when outdated, removed with the environment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.errors import VendorRefused


def test_template_of_pool_is_created_once_and_named_after_it(hand: Any) -> None:
    hand.claim = replace(hand.claim, labels={"stockyard.dev/pool": "workers"})
    hand.prepare()
    hand.launch()
    first = hand.templates()
    assert [template["LaunchTemplateName"] for template in first] == [f"vantage-{hand.yard.cluster.client_id}-workers"]
    hand.terminate()
    hand.again()
    hand.launch()
    assert hand.templates() == first


def test_outdated_template_is_replaced(hand: Any, build: Any) -> None:
    hand.prepare()
    hand.launch()
    (before,) = hand.templates()
    group = hand.calls.create_security_group(
        GroupName="own", Description="d", VpcId=hand.yard.ledger.find("vpc", "main").vendor_id
    )["GroupId"]
    hand.provider = replace(build.provider(securityGroups=[group]), generation=2)
    hand.terminate()
    hand.again()
    hand.launch()
    (after,) = hand.templates()
    assert after["LaunchTemplateName"] == before["LaunchTemplateName"]
    assert after["LaunchTemplateId"] != before["LaunchTemplateId"]
    assert [security_group["GroupId"] for security_group in hand.instances()[0]["SecurityGroups"]] == [group]


def test_other_tags_of_the_cluster_make_another_template(hand: Any) -> None:
    """Interfaces of nodes are tagged by the template, so that one with earlier tags would go on giving those."""
    hand.yard.cluster = replace(hand.yard.cluster, tags={"team": "a"})
    hand.prepare()
    hand.launch()
    (before,) = hand.templates()
    hand.terminate()
    hand.yard.cluster = replace(hand.yard.cluster, tags={"team": "b"})
    hand.again()
    hand.launch()
    (after,) = hand.templates()
    assert after["LaunchTemplateId"] != before["LaunchTemplateId"]
    (interface,) = hand.instances()[0]["NetworkInterfaces"]
    described = hand.calls.describe_network_interfaces(NetworkInterfaceIds=[interface["NetworkInterfaceId"]])
    assert {"Key": "team", "Value": "b"} in described["NetworkInterfaces"][0]["TagSet"]


def test_two_providers_of_cluster_have_own_templates_for_one_pool(hand: Any) -> None:
    hand.claim = replace(hand.claim, labels={"stockyard.dev/pool": "workers"})
    hand.prepare()
    hand.launch()
    hand.terminate()
    hand.again()
    hand.environment = replace(hand.environment, id="nev_01KDVJXQ80000000000000000B")
    hand.launch()
    stem = f"vantage-{hand.yard.cluster.client_id}-workers"
    assert [template["LaunchTemplateName"] for template in hand.templates()] == [stem, f"{stem}-aws"]


def test_foreign_templates_of_same_name_are_kept(hand: Any) -> None:
    stem = f"vantage-{hand.yard.cluster.client_id}-aws"
    for name in (stem, f"{stem}-aws"):
        hand.calls.create_launch_template(LaunchTemplateName=name, LaunchTemplateData={"InstanceType": "t3.small"})
    hand.prepare()
    with pytest.raises(VendorRefused) as caught:
        hand.launch()
    assert stem in str(caught.value)
    assert len(hand.templates()) == 2


def test_removal_of_environment_deletes_its_templates_only(hand: Any) -> None:
    hand.prepare()
    hand.launch()
    hand.terminate()
    hand.claim = replace(hand.claim, labels={"stockyard.dev/pool": "gpu"}, id="ncl_01KDVJXQ80000000000000000B")
    hand.ledger = type(hand.ledger)(hand.claim, "launch", hand.yard.now)
    hand.launch()
    hand.terminate()
    hand.calls.create_launch_template(LaunchTemplateName="theirs", LaunchTemplateData={"InstanceType": "t3.small"})
    assert len(hand.templates()) == 3
    assert len(hand.ledger_of_environment.lines()) == 1, "without a line nobody would clear it"
    hand.clear()
    assert [template["LaunchTemplateName"] for template in hand.templates()] == ["theirs"]
    assert hand.ledger_of_environment.lines() == []
    assert hand.clear().done
