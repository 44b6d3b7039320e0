"""Log groups with the stage's retention."""

from __future__ import annotations

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.config import StageConfig


def log_group(scope: Construct, id: str, name: str, config: StageConfig) -> logs.LogGroup:
    """A log group that is deleted with the stack and has the stage's retention."""
    group = logs.LogGroup(scope, id, log_group_name=name, removal_policy=RemovalPolicy.DESTROY)
    resource = group.node.default_child
    if isinstance(resource, logs.CfnLogGroup):
        # The high-level property takes members of an enumeration only; the configuration has days.
        resource.retention_in_days = config.log_retention_days
    return group


def plain_arn(group: logs.LogGroup) -> str:
    """The ARN of the group without the ``:*`` that CloudFormation ends it with; deliveries take no other."""
    return Stack.of(group).format_arn(
        service="logs",
        resource="log-group",
        resource_name=group.log_group_name,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
