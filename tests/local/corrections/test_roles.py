"""A role is assumed only when it exists and its trust policy allows it, as AWS does and moto does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.roles import AccessDenied, lasting_principals, service_session, trusted_roles, trusts
from tests.harness.worlds.inprocess import credentials

TENANT = "222222222222"
ROLE = f"arn:aws:iam::{TENANT}:role/stockyard-tenant"


def policy(principal: Any, condition: dict[str, Any] | None = None) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal}
    return {"Version": "2012-10-17", "Statement": [{**statement, **({"Condition": condition} if condition else {})}]}


@pytest.fixture
def sts() -> Iterator[Any]:
    with mock_aws():
        with credentials(TENANT):
            iam = boto3.client("iam")
            demanded = {"StringEquals": {"sts:ExternalId": "secret-1"}}
            document = policy({"AWS": f"arn:aws:iam::{OWN_ACCOUNT}:root"}, demanded)
            iam.create_role(RoleName="stockyard-tenant", AssumeRolePolicyDocument=json.dumps(document))
            node = policy({"Service": "ec2.amazonaws.com"})
            iam.create_role(RoleName="node", AssumeRolePolicyDocument=json.dumps(node))
        with credentials(OWN_ACCOUNT), trusted_roles():
            yield boto3.client("sts")


def refused(sts: Any, **parameters: Any) -> bool:
    with pytest.raises(ClientError) as caught:
        sts.assume_role(RoleSessionName="session", **parameters)
    answer = caught.value.response
    return (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == ("AccessDenied", 403)


def test_the_right_external_id_gives_a_session_in_the_tenants_account(sts: Any) -> None:
    keys = sts.assume_role(RoleArn=ROLE, RoleSessionName="op-1", ExternalId="secret-1")["Credentials"]
    session = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], REGION)
    identity = session.client("sts").get_caller_identity()
    assert identity["Account"] == TENANT
    assert identity["Arn"] == f"arn:aws:sts::{TENANT}:assumed-role/stockyard-tenant/op-1"


def test_a_missing_or_wrong_external_id_is_refused(sts: Any) -> None:
    assert refused(sts, RoleArn=ROLE)
    assert refused(sts, RoleArn=ROLE, ExternalId="secret-2")


def test_a_role_that_is_missing_or_trusts_others_is_refused(sts: Any) -> None:
    assert refused(sts, RoleArn=f"arn:aws:iam::{TENANT}:role/none", ExternalId="secret-1")
    assert refused(sts, RoleArn=f"arn:aws:iam::{TENANT}:role/node")


def test_another_account_is_refused(sts: Any) -> None:
    with credentials("333333333333"):
        assert refused(boto3.client("sts"), RoleArn=ROLE, ExternalId="secret-1")


def test_an_instance_gets_a_session_named_after_it(sts: Any) -> None:
    keys = service_session(f"arn:aws:iam::{TENANT}:role/node", "ec2.amazonaws.com", "i-1", REGION)
    session = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["Token"], REGION)
    assert session.client("sts").get_caller_identity()["Arn"].endswith(":assumed-role/node/i-1")
    with pytest.raises(AccessDenied):
        service_session(ROLE, "ec2.amazonaws.com", "i-1", REGION)


def test_moto_still_gives_keys_of_roles_that_do_not_exist() -> None:
    """Remove the correction when this test fails."""
    with mock_aws(), credentials(OWN_ACCOUNT):
        boto3.client("sts").assume_role(RoleArn=f"arn:aws:iam::{TENANT}:role/none", RoleSessionName="session")


@pytest.mark.parametrize(
    ("condition", "allowed"),
    [
        ({"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::111111111111:role/Stockyard-dev-*"}}, True),
        ({"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::111111111111:role/Other-*"}}, False),
        ({"StringLike": {"aws:PrincipalArn": ["a", "*Clusters*"]}}, True),
        ({"Null": {"sts:ExternalId": "true"}}, True),
        ({"StringEqualsIfExists": {"sts:ExternalId": "x"}}, True),
    ],
)
def test_conditions_are_evaluated(condition: dict[str, Any], allowed: bool) -> None:
    arn = "arn:aws:iam::111111111111:role/Stockyard-dev-ClustersRole"
    caller = "arn:aws:sts::111111111111:assumed-role/Stockyard-dev-ClustersRole/x"
    document = policy({"AWS": "111111111111"}, condition)
    assert trusts(document, caller, {"aws:PrincipalArn": arn, "sts:ExternalId": None}) is allowed


def test_an_unknown_condition_is_an_error() -> None:
    document = policy({"AWS": "*"}, {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}})
    with pytest.raises(NotImplementedError, match="IpAddress"):
        trusts(document, "arn:aws:iam::1:root", {"aws:SourceIp": "10.0.0.1"})


def test_a_role_that_is_made_again_under_its_name_is_trusted_by_nobody() -> None:
    with mock_aws(), credentials(TENANT), lasting_principals():
        iam = boto3.client("iam")
        service = json.dumps(policy({"Service": "ec2.amazonaws.com"}))
        former = iam.create_role(RoleName="caller", AssumeRolePolicyDocument=service)["Role"]
        for name in ("people", "others"):
            trusted = former["Arn"] if name == "people" else f"arn:aws:iam::{TENANT}:role/somebody"
            iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(policy({"AWS": trusted})))
        iam.delete_role(RoleName="caller")
        again = iam.create_role(RoleName="caller", AssumeRolePolicyDocument=service)["Role"]
        assert again["Arn"] == former["Arn"]
        document: Any = iam.get_role(RoleName="people")["Role"]["AssumeRolePolicyDocument"]
        assert document["Statement"][0]["Principal"] == {"AWS": former["RoleId"]}, "as IAM shows who is gone"
        assert not trusts(document, again["Arn"], {"aws:PrincipalArn": again["Arn"]})
        other: Any = iam.get_role(RoleName="others")["Role"]["AssumeRolePolicyDocument"]
        assert other["Statement"][0]["Principal"] == {"AWS": f"arn:aws:iam::{TENANT}:role/somebody"}
