"""The account of a tenant is made from our template, in the current version or an earlier one."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.aws import tenant_role
from local.template import TemplateError
from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.aws.policies import tenant_template
from stockyard.providers.clouds.aws.policies.template_versions import ADDITIONS, CURRENT, NARROW
from tests.harness import tenant_stack
from tests.harness.worlds.inprocess import credentials
from tests.harness.worlds.stage import Stage

ACCOUNT = "222222222222"
TRUST = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": "*"}]}


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    role = {"role_arn": f"arn:aws:iam::{ACCOUNT}:role/stockyard"}
    account = CloudAccount("1", "aws", "a", "", role, "ext", "verified", "", "t", "t")
    return tenant_template.render(account, "inst-1", Stage())


def actions(template: dict[str, Any]) -> set[str]:
    return {action for statement in tenant_stack.every_statement(template) for action in statement["Action"]}


def statement_ids(template: dict[str, Any]) -> set[str]:
    return {statement["Sid"] for statement in tenant_stack.every_statement(template)}


def test_earlier_version_lacks_what_came_later(template: dict[str, Any]) -> None:
    assert tenant_role.of_version(template, CURRENT) == template
    assert statement_ids(template) >= {addition.statement for addition in ADDITIONS if addition.statement}
    for version in range(1, CURRENT):
        additions = [addition for addition in ADDITIONS if addition.version > version]
        later = {action for addition in additions if not addition.statement for action in addition.actions}
        earlier = tenant_role.of_version(template, version)
        assert actions(earlier) == actions(template) - later
        assert not statement_ids(earlier) & {addition.statement for addition in additions}
        assert earlier["Parameters"]["EarlierEks"]["Default"] == ("yes" if version < NARROW else "no")
        tags = {pair["Key"]: pair["Value"] for pair in earlier["Resources"]["Role"]["Properties"]["Tags"][:1]}
        assert tags == {"stockyard:template": str(version)}
    former = tenant_stack.every_statement(tenant_role.of_version(template, 6))
    looks = [statement for statement in former if statement["Sid"] == "LookAtLinkedRole"]
    assert all("/aws-service-role/" in json.dumps(arn) for arn in looks[0]["Resource"])


def test_role_has_the_policies_of_the_template(template: dict[str, Any]) -> None:
    with mock_aws(), credentials(ACCOUNT):
        iam = boto3.client("iam")
        tenant_role.deploy(iam, template, ACCOUNT, TRUST, Eks="no")
        attached = iam.list_attached_role_policies(RoleName="stockyard")["AttachedPolicies"]
        names = {policy["PolicyName"] for policy in attached}
        assert "tenant-MachinePermissions" in names
        assert "tenant-EksPermissions" not in names
        assert iam.get_role(RoleName="stockyard")["Role"]["AssumeRolePolicyDocument"] == TRUST
        with pytest.raises(TemplateError, match="AWS::S3::Bucket"):
            tenant_role.deploy(iam, {"Resources": {"A": {"Type": "AWS::S3::Bucket"}}}, ACCOUNT, TRUST)
