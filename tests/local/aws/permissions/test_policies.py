"""Policies are evaluated as IAM evaluates them."""

from __future__ import annotations

from typing import Any

from local.aws.permissions.policies import Ask, allowed_by, denied_by
from local.aws.permissions.sessions import Document

VPC = "arn:aws:ec2:us-east-1:222222222222:vpc/vpc-1"
ASK = Ask("ec2:DeleteVpc", VPC, {"aws:ResourceTag/owner": "a", "aws:TagKeys": ("x", "y")})


def statement(effect: str = "Allow", **fields: Any) -> dict[str, Any]:
    """A statement that allows the check, with other fields; one that is None is left out."""
    usual = {"Effect": effect, "Action": "ec2:DeleteVpc", "Resource": "*", **fields}
    return {name: value for name, value in usual.items() if value is not None}


def test_statement_applies_by_action_resource_and_condition() -> None:
    owned = {"StringEquals": {"aws:ResourceTag/owner": ["a", "b"]}}
    cases: list[tuple[dict[str, Any], bool]] = [
        (statement(), True),
        (statement(Action=["ec2:createvpc", "EC2:deletevpc"]), True),
        (statement(Action="ec2:Delete*"), True),
        (statement(Action="ec2:Create*"), False),
        (statement(Action=None, NotAction="ec2:Create*"), True),
        (statement(Action=None, NotAction=["ec2:Delete*"]), False),
        (statement(Resource="arn:aws:ec2:*:222222222222:vpc/vpc-?"), True),
        (statement(Resource="arn:aws:ec2:*:222222222222:vpc/vpc-[1]"), False),
        (statement(Resource="arn:aws:ec2:*:333333333333:vpc/*"), False),
        (statement(Resource=None, NotResource=VPC), False),
        (statement(Condition=owned), True),
        (statement(Condition={"StringEquals": {"aws:ResourceTag/owner": "b"}}), False),
        (statement(Condition={**owned, "Null": {"aws:RequestTag/owner": False}}), False),
        (statement(Condition={**owned, "Null": {"aws:RequestTag/owner": True}}), True),
        (statement(Condition={"ForAllValues:StringEquals": {"aws:TagKeys": ["x", "y", "z"]}}), True),
        (statement(Condition={"ForAllValues:StringEquals": {"aws:TagKeys": ["x"]}}), False),
        (statement(Condition={"ForAnyValue:StringEquals": {"aws:TagKeys": ["x"]}}), True),
        (statement(Condition={"ForAnyValue:StringEquals": {"aws:TagKeys": ["z"]}}), False),
    ]
    for document, applies in cases:
        assert bool(allowed_by([document], ASK)) is applies, document
        assert Document([document]).allows(ASK) is applies, document


def test_denial_counts_more_than_what_allows() -> None:
    both = [statement(), statement("Deny", Condition={"StringEquals": {"aws:ResourceTag/owner": "a"}})]
    assert (allowed_by(both, ASK), denied_by(both, ASK)) == ([], True)
    assert not Document(both).allows(ASK)
    assert Document(both).denies(ASK)
    assert not denied_by(both[:1], ASK)
