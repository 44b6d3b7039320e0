"""A cluster in a network that another account shares: what it needs of the template, and what stays the owner's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.aws import tenant_role
from local.aws.corrections.compute.shared_networks import share
from local.aws.permissions.policies import Ask, allowed_by
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.policies import template_versions, tenant_template
from tests.harness.asks import recorded_asks
from tests.harness.policies import refused
from tests.harness.worlds.stage import Stage
from tests.unit.providers.clusters.ec2.test_placement import existing_network
from tests.unit.providers.conftest import ACME

OWNER = "333333333333"


def statements(yard: Any, version: int = template_versions.CURRENT) -> list[dict[str, Any]]:
    """Statements of our role in an account with that version of the template."""
    template = json.loads(json.dumps(tenant_template.render(yard.account, "inst-1", Stage())))
    deployed = tenant_role.resources(tenant_role.of_version(template, version))
    policies = [deployed[name]["PolicyDocument"] for name in deployed["Role"]["ManagedPolicyArns"]]
    return [statement for policy in policies for statement in policy["Statement"]]


def shared(yard: Any) -> dict[str, str]:
    network = existing_network(yard)
    share(ACME, "us-east-1", OWNER, network.values())
    yard.with_settings(vpc_id=network["vpc"], subnet_id=network["private"])
    return network


def test_a_cluster_lives_in_a_shared_network_by_the_template(yard: Any) -> None:
    network = shared(yard)
    with recorded_asks(ACME) as asks:
        assert list(yard.provider.inspect(yard.work("account"))) == []
        yard.create()
        yard.later(120)
        yard.delete()
    foreign = {ask.action for ask in asks.values() if f":{OWNER}:" in ask.resource}
    assert foreign == {"ec2:CreateSecurityGroup", "ec2:GetSecurityGroupsForVpc", "ec2:RunInstances"}
    assert refused({"tenant": asks}, {"tenant": statements(yard)}) == []
    before = statements(yard, template_versions.SHARED_NETWORKS - 1)
    missed = [text for text in refused({"tenant": asks}, {"tenant": before}) if f":{OWNER}:" in text]
    assert len(missed) == len([ask for ask in asks.values() if f":{OWNER}:" in ask.resource])
    # Fleets of nodes, and reservations that are shared.
    for kind in ("subnet", "security-group"):
        assert allowed_by(statements(yard), Ask("ec2:CreateFleet", f"arn:aws:ec2:us-east-1:{OWNER}:{kind}/x-1"))
    block = f"arn:aws:ec2:us-east-1:{OWNER}:capacity-reservation/cr-1"
    assert allowed_by(statements(yard), Ask("ec2:RunInstances", block))
    # Nothing of the owner's is changed, even where somebody gave it our tag.
    mark = {"aws:ResourceTag/stockyard:installation": "inst-1", "aws:RequestTag/stockyard:installation": "inst-1"}
    for action, thing in (("DeleteSubnet", network["private"]), ("DeleteVpc", network["vpc"]), ("CreateTags", "vpc-1")):
        kind = thing.partition("-")[0]
        arn = f"arn:aws:ec2:us-east-1:{OWNER}:{kind}/{thing}"
        assert not allowed_by(statements(yard), Ask(f"ec2:{action}", arn, {**mark, "aws:TagKeys": ("team",)})), action


def test_an_account_with_an_earlier_template_is_told_what_it_needs(yard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shared(yard)
    old = template_versions.Deployed(template_versions.SHARED_NETWORKS - 1)
    monkeypatch.setattr(template_versions, "deployed", lambda *_: old)
    (fault,) = [f for f in yard.provider.inspect(yard.work("account")) if f.pointer == "/settings/vpc_id"]
    assert not fault.warning
    assert f"is of account {OWNER}" in fault.detail
    assert f"version {old.version}; networks of another account need {old.version + 1}." in fault.detail


def test_routes_that_the_owner_does_not_show_are_no_reason_to_refuse(
    yard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = shared(yard)
    described = yard.tenant().client("ec2").describe_subnets(SubnetIds=[network["dark"], network["public"]])
    assert {subnet["OwnerId"] for subnet in described["Subnets"]} == {OWNER}
    original = Calls.pages

    def pages(calls: Any, service: str, operation: str, key: str, **parameters: Any) -> Any:
        return () if operation == "describe_route_tables" else original(calls, service, operation, key, **parameters)

    monkeypatch.setattr(Calls, "pages", pages)
    findings = list(yard.provider.inspect(yard.work("account")))
    assert {finding.warning for finding in findings} == {True}
    assert "does not show its routes" in findings[0].detail
    yard.create()
