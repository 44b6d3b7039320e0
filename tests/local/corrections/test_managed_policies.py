"""AWS's own policies may be attached to a role, and taken from it."""

from __future__ import annotations

import boto3
import pytest
from moto import mock_aws

from local.aws.corrections.managed_policies import attachable_policies

POLICY = "arn:aws:iam::aws:policy/service-role/AmazonEFSCSIDriverPolicy"


def test_policy_of_aws_is_attached_and_detached() -> None:
    with mock_aws():
        iam = boto3.client("iam", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
        iam.create_role(RoleName="files", AssumeRolePolicyDocument="{}")
        with pytest.raises(iam.exceptions.NoSuchEntityException):
            iam.attach_role_policy(RoleName="files", PolicyArn=POLICY)
        with attachable_policies():
            for _ in range(2):
                iam.attach_role_policy(RoleName="files", PolicyArn=POLICY)
            attached = iam.list_attached_role_policies(RoleName="files")["AttachedPolicies"]
            assert [policy["PolicyArn"] for policy in attached] == [POLICY]
            iam.detach_role_policy(RoleName="files", PolicyArn=POLICY)
            assert iam.list_attached_role_policies(RoleName="files")["AttachedPolicies"] == []


def test_policy_that_aws_does_not_have_is_not_found() -> None:
    with mock_aws(), attachable_policies():
        iam = boto3.client("iam", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
        iam.create_role(RoleName="files", AssumeRolePolicyDocument="{}")
        for name in ("NoPolicyOfAws", "AmazonEFSCSIDriverPolicy"):
            with pytest.raises(iam.exceptions.NoSuchEntityException):
                iam.attach_role_policy(RoleName="files", PolicyArn=f"arn:aws:iam::aws:policy/{name}")
