"""Roles from the typed statements of ``permissions``. The reason of every wildcard is acknowledged for cdk-nag."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Acknowledgment, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.environment import render
from stacks.statements import Statement


def role(
    scope: Construct, id: str, *, service: str, description: str, statements: Sequence[Statement], stream: str = ""
) -> iam.IRole:
    """A role that ``service`` may take, with these statements and no others. ``stream`` is the ARN of the table's.

    What is built with it cannot add to it, so the statements are the whole truth.
    """
    policy = iam.PolicyDocument(statements=[_statement(statement, stream) for statement in statements])
    role = iam.Role(
        scope,
        id,
        assumed_by=iam.ServicePrincipal(service),
        description=description,
        inline_policies={"Permissions": policy},
    )
    for statement in statements:
        for resource in statement.resources:
            if "*" in resource or "?" in resource:
                acknowledge(role, f"AwsSolutions-IAM5[Resource::{_as_found(resource)}]", statement.reason)
    return role.without_policy_updates()


def acknowledge(scope: Construct, rule: str, reason: str) -> None:
    """Acknowledge one cdk-nag finding of one construct with a reason."""
    Validations.of(scope).acknowledge(Acknowledgment(id=rule, reason=reason))


def _statement(statement: Statement, stream: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=statement.sid,
        effect=iam.Effect.ALLOW if statement.effect == "Allow" else iam.Effect.DENY,
        actions=list(statement.actions),
        resources=[render(resource, stream) for resource in statement.resources],
        conditions={key: dict(value) for key, value in statement.conditions.items()},
    )


def _as_found(resource: str) -> str:
    """The resource as cdk-nag spells it: the template's parameters in angle brackets, also where a stage names its
    account and region, since ``render`` writes parameters."""
    return resource.format(partition="<AWS::Partition>", region="<AWS::Region>", account="<AWS::AccountId>")
