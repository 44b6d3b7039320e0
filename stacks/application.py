"""Puts a stage's stacks into an app and checks them with cdk-nag."""

from __future__ import annotations

from aws_cdk import App, Tags
from cdk_nag import AwsSolutionsChecks

from layers.vendor.bundle import PYTHON, compiler
from stacks.config import NEEDED, StageConfig
from stacks.data_stack import DataStack
from stacks.edge_stack import EdgeStack
from stacks.errors import ConfigError, NagError
from stacks.service_stack import ServiceStack


def build(app: App, config: StageConfig, *, bundled: bool) -> None:
    """Add the stacks of one stage. Raises ``NagError`` when a finding has no reason, ``ConfigError`` for a
    stage of production whose layers nothing here can compile."""
    if bundled and config.stage in NEEDED and compiler() is None:
        install = f"uv python install {PYTHON}"
        raise ConfigError(
            f"stage {config.stage}: Python {PYTHON}, which the functions run on, is needed to compile what they load; "
            f"without it each cold start does. Install it: {install}"
        )
    Tags.of(app).add("stockyard:stage", config.stage)
    data = DataStack(app, config)
    service = ServiceStack(app, config, stream_arn=data.stream_arn, bundled=bundled)
    if config.cloudfront is not None:
        EdgeStack(app, config, config.cloudfront).add_stack_dependency(
            service, "It asks for the name of the API, which is an output of that stack"
        )
    problems = findings(app)
    if problems:
        raise NagError("cdk-nag (AwsSolutions):\n" + "\n".join(problems))


def findings(app: App) -> list[str]:
    """The findings of AwsSolutions that no construct acknowledges, as ``rule at construct: text``."""
    report = AwsSolutionsChecks(app).validate_scope(app)
    return [
        f"{violation.rule_name} at {resource.construct_path or resource.resource_logical_id}: {violation.description}"
        for violation in report.violations
        for resource in violation.violating_resources
    ]
