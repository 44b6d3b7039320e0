"""The Lambda functions, each with a role and a log group; asynchronous ones also with a failure queue."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.config import StageConfig
from stacks.constructs.layers import ARCHITECTURE, RUNTIME, Layers, function_code
from stacks.constructs.log_groups import log_group
from stacks.constructs.roles import acknowledge, role
from stacks.environment import variables
from stacks.functions import FUNCTIONS, FunctionSpec, reserved
from stacks.names import Names
from stacks.permissions import Permissions


class Functions(Construct):
    """All functions by name in ``by_name``, the failure queues in ``failures``."""

    def __init__(
        self, scope: Construct, id: str, *, config: StageConfig, api_url: str, stream_arn: str, bundled: bool
    ) -> None:
        super().__init__(scope, id)
        self._config = config
        self._names = Names(config.stage)
        self._permissions = Permissions(config)
        self._api_url = api_url
        self._stream_arn = stream_arn
        self._layers = Layers(self, "Layers", bundled=bundled)
        self.failures: dict[str, sqs.Queue] = {
            spec.name: self._queue(spec.name) for spec in FUNCTIONS if spec.asynchronous
        }
        self.by_name: dict[str, lambda_.Function] = {spec.name: self._function(spec) for spec in FUNCTIONS}

    def _queue(self, name: str) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            f"{_pascal(name)}Failures",
            queue_name=self._names.failures(name),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )
        acknowledge(queue, "AwsSolutions-SQS3", "It is itself the dead-letter queue of a function")
        return queue

    def _function(self, spec: FunctionSpec) -> lambda_.Function:
        name = _pascal(spec.name)
        group = log_group(self, f"{name}Logs", self._names.function_log_group(spec.name), self._config)
        queue = self.failures.get(spec.name)
        function = lambda_.Function(
            self,
            name,
            function_name=self._names.function(spec.name),
            description=spec.description,
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            handler=f"functions.{spec.name}.handler.lambda_handler",
            code=function_code(spec.name),
            layers=self._layers.both,
            role=role(
                self,
                f"{name}Role",
                service="lambda.amazonaws.com",
                description=f"Stockyard {self._config.stage}: {spec.name}",
                statements=self._permissions.of_function(spec.name),
                stream=self._stream_arn,
            ),
            memory_size=spec.memory,
            timeout=Duration.seconds(spec.timeout),
            reserved_concurrent_executions=reserved(spec.name, self._config.concurrency_quota),
            environment=variables(self._config, spec.name, self._api_url),
            log_group=group,
            # A schedule would pay for a trace a minute that nobody reads; a trace that someone began is continued.
            tracing=lambda_.Tracing.ACTIVE if spec.traced else lambda_.Tracing.PASS_THROUGH,
            on_failure=destinations.SqsDestination(queue) if queue is not None else None,
            retry_attempts=2 if queue is not None else None,
            max_event_age=Duration.hours(1) if queue is not None else None,
        )
        acknowledge(
            function, "AwsSolutions-L1", "The pinned layer and the tests are for Python 3.13, which AWS supports"
        )
        network = self._config.network if spec.private else None
        # The high-level construct wants to know the VPC's zones, which only a look-up in the account could tell.
        resource = function.node.default_child
        if network is not None and isinstance(resource, lambda_.CfnFunction):
            resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
                subnet_ids=list(network.subnet_ids), security_group_ids=list(network.security_group_ids)
            )
        return function


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
