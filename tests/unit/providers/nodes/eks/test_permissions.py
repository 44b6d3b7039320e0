"""The tenant's template grants each call of the node source, and changes nothing that is not ours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local.aws.corrections.eks.scaling_groups import scaling_backends
from local.aws.permissions.policies import Ask, allowed_by
from stockyard.providers.clouds.aws.policies import tenant_template
from tests.harness import tenant_stack
from tests.harness.asks import recorded_asks
from tests.harness.worlds.stage import Stage

REGION, ACCOUNT = "us-east-1", "222222222222"
OUR_TAG, OF_GROUP = "aws:ResourceTag/stockyard:installation", "aws:ResourceTag/eks:cluster-name"
OF_GROUPS = ("ChangeOurGroups", "KeepMachinesOfClaims", "MarkGroups", "MarkMachines", "ReadEksImages", "ReadGroups")
ELSEWHERE = {
    "KeepMachinesOfClaims autoscaling:ResumeProcesses": "the cluster's driver",
    "KeepMachinesOfClaims autoscaling:SuspendProcesses": "the cluster's driver",
    "MarkGroups autoscaling:CreateOrUpdateTags": "the cluster's driver",
    "ReadEksImages ssm:GetParameter": "machines of EC2 outside of groups",
    "ReadGroups ec2:DescribeLaunchTemplateVersions": "EKS itself, for the cluster's driver",
}
"""Granted action that this life has no use for -> who has."""
IN_REQUEST = "aws:RequestTag/stockyard:installation"


def _resolved(value: Any) -> Any:
    if isinstance(value, dict):
        if "Fn::If" in value:  # an account without earlier clusters
            return _resolved(value["Fn::If"][2])
        return _resolved(value["Fn::Sub"]) if "Fn::Sub" in value else {k: _resolved(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_resolved(item) for item in value]
    return value.replace("${AWS::Partition}", "aws") if isinstance(value, str) else value


@pytest.fixture
def asks(yard: Any) -> list[Ask]:
    """Permission checks of AWS in the lives of a machine, and of one whose group is gone."""
    yard.groups.group("workers", "m6i.xlarge")
    for group in scaling_backends[ACCOUNT][REGION].groups.values():
        group.tags["stockyard:installation"] = "inst"  # as its cluster's driver marks it
    with recorded_asks(ACCOUNT) as recorded:
        yard.source.prepare(yard.environment_work())
        claims = [yard.claim(letter) for letter in "AB"]
        for claim in claims:
            yard.launch(claim)
        yard.source.power(yard.work(claims[0]), "Reboot")
        yard.end(claims[0])
        scaling_backends[ACCOUNT][REGION].groups.clear()
        yard.end(claims[1])
    return list(recorded.values())


def statements(yard: Any) -> list[dict[str, Any]]:
    account = yard.work(yard.claim("Z")).account
    template = tenant_template.render(account, "inst", Stage())
    return [dict(_resolved(statement)) for statement in tenant_stack.statements(template)]


def test_template_grants_each_call(yard: Any, asks: list[Ask]) -> None:
    granted = statements(yard)
    assert [str(ask) for ask in asks if not allowed_by(granted, ask)] == []
    actions = {ask.action for ask in asks}
    assert {
        "autoscaling:SetDesiredCapacity",
        "autoscaling:TerminateInstanceInAutoScalingGroup",
        "ec2:CreateTags",
        "ec2:RebootInstances",
        "ec2:TerminateInstances",
    } <= actions


def test_each_grant_for_groups_is_used(yard: Any, asks: list[Ask]) -> None:
    granted = [statement for statement in statements(yard) if statement["Sid"] in OF_GROUPS]
    names = {f"{statement['Sid']} {action}" for statement in granted for action in statement["Action"]}
    used = {f"{statement['Sid']} {ask.action}" for ask in asks for statement in allowed_by(granted, ask)}
    assert names - used == ELSEWHERE.keys()


def test_nothing_of_others_is_changed(yard: Any, asks: list[Ask]) -> None:
    granted = statements(yard)
    changing = [ask for ask in asks if ask.context]
    assert len(changing) >= 5
    for ask in changing:
        # a machine is marked while it has no tag of ours; what has one is known by it
        for key in (OUR_TAG,) if OUR_TAG in ask.context else (IN_REQUEST, OF_GROUP):
            other = {name: text for name, text in ask.context.items() if name != key}
            assert not allowed_by(granted, replace(ask, context=other)), f"{ask} without {key}"
