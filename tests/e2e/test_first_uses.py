"""The first things on EKS in an AWS account that never had any, by HTTP on the local cloud, which asks what AWS asks in
the caller's name. An account whose role lacks something hears what it is, and a resume goes on once the role has it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from local.aws import tenant_role
from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.permissions.linked import EKS, FILES, LINKED, NODE_GROUPS, SCALING
from tests.harness.asks import served_asks

if TYPE_CHECKING:
    from local.testing.serving import Served

ACCOUNT, ROLE = "444444444444", "stockyard-first"
VERSIONS = "ec2:DescribeLaunchTemplateVersions"
EFA = {
    "name": "fast",
    "role": "gpu",
    "instance_type": "p5.48xlarge",
    "accelerator_type": "nvidia-h100",
    "fabric": "efa",
    "count": 0,
    "zones": [f"{REGION}a"],
}


class NewAccount:
    """An AWS account in which nobody has done anything, and our role there, whose permissions can be changed."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.iam = served.aws("iam", ACCOUNT)
        role = {"role_arn": f"arn:aws:iam::{ACCOUNT}:role/{ROLE}"}
        answer = served.call("POST", "/v1/cloud-accounts", {"provider": "aws", "name": "first", "attributes": role})
        assert answer.status == 201, answer.text
        self.id, self._external_id = answer.body["id"], answer.body["external_id"]
        self.template = served.call("GET", f"/v1/cloud-accounts/{self.id}/template").body

    def deploy(self, version: int) -> None:
        """Deploy the template in that version, and verify the account."""
        trust = {
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"AWS": f"arn:aws:iam::{OWN_ACCOUNT}:root"},
            "Condition": {"StringEquals": {"sts:ExternalId": self._external_id}},
        }
        document = {"Version": "2012-10-17", "Statement": [trust]}
        tenant_role.deploy(self.iam, tenant_role.of_version(self.template, version), ACCOUNT, document)
        self.tag(version)

    def tag(self, version: int) -> None:
        """Let the role say that it has that version of the template."""
        self.iam.tag_role(RoleName=ROLE, Tags=[{"Key": "stockyard:template", "Value": str(version)}])
        assert self._served.call("POST", f"/v1/cloud-accounts/{self.id}/verify").body["verification"] == "verified"

    def permit(self, version: int, *lacking: str) -> None:
        """Give the role's policies what a version of the template has, but for some actions."""
        policies = self.iam.list_attached_role_policies(RoleName=ROLE)["AttachedPolicies"]
        arns = {policy["PolicyName"].removeprefix("tenant-"): policy["PolicyArn"] for policy in policies}
        resources = tenant_role.resources(tenant_role.of_version(self.template, version))
        for name, arn in arns.items():
            document = resources[name]["PolicyDocument"]
            for statement in document["Statement"]:
                statement["Action"] = [action for action in statement["Action"] if action not in lacking] or ["none:No"]
            self.iam.create_policy_version(PolicyArn=arn, PolicyDocument=json.dumps(document), SetAsDefault=True)

    def linked(self) -> set[str]:
        """The roles of services that there are."""
        return {role["RoleName"] for role in self.iam.list_roles(PathPrefix="/aws-service-role/")["Roles"]}


@pytest.fixture(scope="module")
def account(served: Served) -> NewAccount:
    return NewAccount(served)


def body(account: NewAccount, *groups: dict[str, Any]) -> dict[str, Any]:
    settings = {"region_name": REGION, "node_groups": list(groups)}
    usual = {"name": "first", "description": "d", "cluster_type": "k8s", "driver": "eks"}
    return {**usual, "cloud_account_id": account.id, "settings": settings}


def test_group_with_efa_is_refused_by_the_template_before(served: Served, account: NewAccount) -> None:
    account.deploy(6)
    answer = served.call("POST", "/v1/clusters", body(account, EFA))
    assert answer.status == 422, answer.text
    assert VERSIONS in answer.text
    assert "version 6" in answer.text


def test_first_cluster_goes_on_as_its_role_gets_what_aws_asks(served: Served, account: NewAccount) -> None:
    """A role whose tag promises more than its policies keep: each lack is told as AWS tells it."""
    account.tag(7)
    answer = served.call("POST", "/v1/clusters", body(account, EFA))
    assert answer.status == 202, answer.text
    path, operation = f"/v1/clusters/{answer.body['id']}", served.operation(answer.body["operation_id"])
    assert account.linked() == {LINKED[EKS]}

    def fails(*texts: str) -> None:
        assert operation["status"] == "failed", operation
        assert operation["error"]["phase"] == "node_groups"
        for text in texts:
            assert text in operation["error"]["cause"]

    def resumed() -> dict[str, Any]:
        again = served.call("POST", f"{path}/resume")
        assert again.status == 202, again.text
        return served.operation(again.body["id"])

    fails("iam:GetRole", LINKED[NODE_GROUPS])
    account.permit(7, "iam:CreateServiceLinkedRole")
    operation = resumed()
    fails("Failed to create service linked role", LINKED[NODE_GROUPS], "iam:CreateServiceLinkedRole")
    account.permit(7, VERSIONS)
    operation = resumed()
    fails(VERSIONS)
    account.permit(7)
    operation = resumed()
    assert operation["status"] == "succeeded", operation
    assert account.linked() == {LINKED[EKS], LINKED[FILES], LINKED[NODE_GROUPS], LINKED[SCALING]}
    allowed = {ask.action for ask, is_refused in served_asks(served.home, ROLE) if not is_refused}
    assert {VERSIONS, "iam:ListAttachedRolePolicies", "iam:PassRole", "ec2:RunInstances"} <= allowed
    deletion = served.call("DELETE", path)
    assert served.operation(deletion.body["id"])["status"] == "succeeded"
