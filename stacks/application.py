"""Puts a stage's two stacks into an app and checks them with cdk-nag."""

from __future__ import annotations

from aws_cdk import App, Tags
from cdk_nag import AwsSolutionsChecks

from layers.vendor.bundle import PYTHON, compiler
from stacks.config import NEEDED, StageConfig
from stacks.data_stack import DataStack
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
    ServiceStack(app, config, stream_arn=data.stream_arn, bundled=bundled)
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
