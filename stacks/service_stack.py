"""All resources of a stage except the table."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from stacks.config import StageConfig
from stacks.constructs.functions import Functions
from stacks.constructs.http_api import HttpApi
from stacks.constructs.monitoring import Monitoring
from stacks.constructs.roles import acknowledge
from stacks.constructs.triggers import Triggers
from stacks.constructs.workflows import Workflows
from stacks.environment import environment_of
from stacks.names import API_URL_OUTPUT, BUS_OUTPUT, ORIGIN_OUTPUT, Names


class ServiceStack(Stack):
    """API, functions, workflows, schedules, bus and alarms. All of it can be created again without loss."""

    def __init__(self, scope: Construct, config: StageConfig, *, stream_arn: str, bundled: bool) -> None:
        names = Names(config.stage)
        super().__init__(
            scope, names.service_stack, description=f"Stockyard {config.stage}: the service", env=environment_of(config)
        )
        page_key = secretsmanager.Secret(
            self,
            "PageKey",
            secret_name=names.page_key,
            description="Signs page tokens; a new value only makes the open ones invalid",
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
        )
        acknowledge(page_key, "AwsSolutions-SMG4", "It signs tokens of one hour, and protects no data when it is old")
        http = HttpApi(self, "Http", config=config)
        functions = Functions(
            self, "Functions", config=config, api_url=http.url, stream_arn=stream_arn, bundled=bundled
        )
        http.route(functions.by_name)
        workflows = Workflows(self, "Workflows", config=config, functions=functions.by_name)
        triggers = Triggers(
            self,
            "Triggers",
            config=config,
            stream_arn=stream_arn,
            functions=functions.by_name,
            failures=functions.failures,
        )
        Monitoring(
            self,
            "Monitoring",
            config=config,
            api=http.api,
            functions=functions.by_name,
            failures=functions.failures,
            workflows=workflows.by_name,
        )
        CfnOutput(self, API_URL_OUTPUT, value=http.url)
        if config.cloudfront is not None:
            CfnOutput(self, ORIGIN_OUTPUT, value=http.origin_host)
        CfnOutput(self, BUS_OUTPUT, value=triggers.bus.event_bus_name)
