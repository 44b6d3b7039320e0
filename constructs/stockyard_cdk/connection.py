"""Connection of a stack to Stockyard: the one provider behind all of its custom resources."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from aws_cdk import Acknowledgment, ArnFormat, Aws, CfnElement, Duration, RemovalPolicy, Stack, Token, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import custom_resources as cr
from constructs import Construct, IConstruct

HANDLER = "stockyard_stack_resources"
LIMIT = Duration.minutes(55)
"""How long one custom resource is waited for: CloudFormation itself gives up after an hour."""
INTERVAL = Duration.seconds(20)


class Stockyard(Construct):
    """A Stockyard that resources of this stack are made in.

    ``url`` is that of its API, ``issuer`` the realm that its tokens come from. ``client`` is a secret with the JSON
    ``{"client_id": ..., "client_secret": ...}`` of a client of that realm with a service account, whose roles are what
    the stack may do; ``operator`` makes clusters, pools and profiles, ``admin`` also accounts and providers.

    Without ``client`` there is no secret: AWS signs a token for the role of the handler, ``role``, which the realm
    takes as the proof of a client. ``role_name`` gives that role a name that is known before.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        url: str,
        issuer: str,
        client: secretsmanager.ISecret | None = None,
        role_name: str | None = None,
        log_retention: logs.RetentionDays = logs.RetentionDays.THREE_MONTHS,
    ) -> None:
        super().__init__(scope, id)
        self.client = client
        self._environment = {
            "STOCKYARD_URL": url,
            "STOCKYARD_ISSUER": issuer,
            **({} if client is None else {"STOCKYARD_CLIENT_SECRET": client.secret_arn}),
            "STOCKYARD_LIMIT_SECONDS": str(LIMIT.to_seconds()),
        }
        self._retention = log_retention
        self.role = self._role("HandlerRole", "Handler of Stockyard's custom resources", role_name)
        self._stacks: set[str] = set()
        self.let_in(Stack.of(self))
        if client is None:
            self._let_sign(issuer)
        else:
            client.grant_read(self.role)
        on_event, is_complete = self._functions()
        # one role for both would need the waiter, which needs the functions, which need their role
        begins = self._role("BeginRole", "Begin of Stockyard's custom resources")
        polls = self._role("PollRole", "Polls of Stockyard's custom resources")
        self._provider = cr.Provider(
            self,
            "Provider",
            on_event_handler=on_event,
            is_complete_handler=is_complete,
            query_interval=INTERVAL,
            total_timeout=LIMIT,
            log_group=self._log_group("FrameworkLogs", begins, polls),
            framework_on_event_role=begins,
            framework_complete_and_timeout_role=polls,
        )
        framework = [self._provider.node.find_child(f"framework-{name}") for name in ("isComplete", "onTimeout")]
        self._acknowledge([begins, polls], [on_event, is_complete])
        self._acknowledge([self._provider], framework)
        for function in (on_event, is_complete):
            _acknowledge(function, "AwsSolutions-L1", "The handler is tested with this runtime")
        for rule in ("AwsSolutions-SF1", "AwsSolutions-SF2"):
            _acknowledge(self._provider, rule, "The waiter only polls; the logs of its functions say when and what")

    @property
    def service_token(self) -> str:
        """Service token of the custom resources."""
        return self._provider.service_token

    def grant_read(self, secret: secretsmanager.ISecret) -> None:
        """Let the handler read a secret that a field of a resource is filled in with."""
        secret.grant_read(self.role)

    def _functions(self) -> tuple[lambda_.Function, lambda_.Function]:
        """Functions of the handler, with its sources and nothing else."""
        spec = find_spec(HANDLER)
        if spec is None or spec.origin is None:
            raise RuntimeError(f"{HANDLER} is not installed beside stockyard_cdk")
        with TemporaryDirectory() as folder:
            package = Path(folder) / HANDLER
            shutil.copytree(Path(spec.origin).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
            code, group = lambda_.Code.from_asset(folder), self._log_group("HandlerLogs", self.role)
            on_event, is_complete = (
                lambda_.Function(
                    self,
                    name,
                    runtime=lambda_.Runtime.PYTHON_3_13,
                    architecture=lambda_.Architecture.ARM_64,
                    handler=f"{HANDLER}.{entry}",
                    code=code,
                    timeout=Duration.seconds(seconds),
                    memory_size=256,
                    environment=self._environment,
                    log_group=group,
                    role=self.role,
                    description=f"Stockyard's custom resources: {entry}",
                )
                for name, entry, seconds in (("OnEvent", "on_event", 30), ("IsComplete", "is_complete", 180))
            )
        return on_event, is_complete

    def _role(self, id: str, description: str, name: str | None = None) -> iam.Role:
        """A role of functions, without any right."""
        functions = iam.ServicePrincipal("lambda.amazonaws.com")
        return iam.Role(self, id, assumed_by=functions, description=description, role_name=name)

    def _let_sign(self, issuer: str) -> None:
        """Let AWS sign tokens for the handler's role that are for the realm alone."""
        audience = {"ForAllValues:StringEquals": {"sts:IdentityTokenAudience": [issuer.rstrip("/")]}}
        sign = iam.PolicyStatement(actions=["sts:GetWebIdentityToken"], resources=["*"], conditions=audience)
        self.role.add_to_policy(sign)
        reason = "A token of one's own has no ARN; its audience is fixed"
        _acknowledge(self.role, "AwsSolutions-IAM5[Resource::*]", reason)

    def _log_group(self, id: str, *writers: iam.Role) -> logs.LogGroup:
        group = logs.LogGroup(self, id, retention=self._retention, removal_policy=RemovalPolicy.DESTROY)
        for writer in writers:
            group.grant_write(writer)
        return group

    def let_in(self, stack: Stack) -> None:
        """Let the handler see which requests of a stack CloudFormation still waits for. ``ValueError`` for a nested
        stack that is not this one's: its name is not known before it is made."""
        is_own = stack is Stack.of(self)
        if not is_own and Token.is_unresolved(stack.stack_name):
            raise ValueError(f"{stack.node.path} is a nested stack; give it a Stockyard of its own")
        name = Aws.STACK_NAME if is_own else stack.stack_name
        if name in self._stacks:
            return
        self._stacks.add(name)
        arn_parts = {"service": "cloudformation", "resource": "stack", "resource_name": f"{name}/*"}
        arn = Stack.of(self).format_arn(**arn_parts, arn_format=ArnFormat.SLASH_RESOURCE_NAME)
        look = iam.PolicyStatement(actions=["cloudformation:DescribeStackResource"], resources=[arn])
        self.role.add_to_policy(look)
        title = "<AWS::StackName>" if is_own else name
        resource = f"arn:<AWS::Partition>:cloudformation:<AWS::Region>:<AWS::AccountId>:stack/{title}/*"
        rule = f"AwsSolutions-IAM5[Resource::{resource}]"
        _acknowledge(self.role, rule, "The ARN of a stack ends with a random part")

    def _acknowledge(self, constructs: Sequence[IConstruct], functions: Sequence[IConstruct]) -> None:
        """Say why policies below ``constructs`` let any version of ``functions`` be invoked."""
        names = [Stack.of(self).get_logical_id(cast(CfnElement, function.node.default_child)) for function in functions]
        for construct in constructs:
            for name in names:
                rule = f"AwsSolutions-IAM5[Resource::<{name}.Arn>:*]"
                _acknowledge(construct, rule, "The framework invokes whichever version is live")


def _acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Say why a finding of cdk-nag is as it is."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))
