"""Part that the constructs share: one custom resource, whose document is what the API takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import jsii
from aws_cdk import (
    CfnDeletionPolicy,
    CfnResource,
    CustomResource,
    Duration,
    IStableStringProducer,
    Lazy,
    RemovalPolicy,
    Stack,
    Token,
)
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct, IDependable

from stockyard_cdk.connection import Stockyard

SERVICE_TIMEOUT = Duration.hours(1)
"""The longest that CloudFormation waits for a custom resource."""


@jsii.implements(IStableStringProducer)
class _Retains:
    """``true`` where a policy of the template keeps the resource, at the end of the synthesis; else nothing."""

    def __init__(self, construct: StockyardResource) -> None:
        self._construct = construct

    def produce(self) -> str | None:
        """See ``IStableStringProducer``."""
        options = cast(CfnResource, self._construct.resource.node.default_child).cfn_options
        policies = (options.deletion_policy, options.update_replace_policy)
        return None if all(policy in (None, CfnDeletionPolicy.DELETE) for policy in policies) else "true"


class StockyardResource(Construct):
    """A resource of Stockyard in a stack.

    ``adopt`` takes over one of the name that is there already; such a one stays when the stack lets go of it.
    ``secrets`` fill in fields that are secrets, by JSON pointer, such as ``/attributes/api_key``: the handler reads
    them when it needs them, so they are in no template.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        kind: str,
        stockyard: Stockyard,
        document: Mapping[str, Any],
        adopt: bool = False,
        secrets: Mapping[str, secretsmanager.ISecret] | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        goes_on: bool = False,
    ) -> None:
        super().__init__(scope, id)
        stack = Stack.of(self)
        self.document = stack.to_json_string(dict(document))
        properties: dict[str, Any] = {"Kind": kind, "Document": self.document}
        # What CloudFormation was never told of is removed, but where the template keeps what it lets go of.
        properties["Retains"] = Lazy.string(_Retains(self))
        if goes_on:
            properties["AtLimit"] = "Continue"
        if adopt:
            properties["Adopt"] = "true"
        if secrets:
            properties["Secrets"] = stack.to_json_string(
                {pointer: secret.secret_arn for pointer, secret in secrets.items()}
            )
            for secret in secrets.values():
                stockyard.grant_read(secret)
        stockyard.let_in(stack)
        self.stockyard = stockyard
        self.resource = CustomResource(
            self,
            "Resource",
            service_token=stockyard.service_token,
            resource_type=f"Custom::Stockyard{kind}",
            properties=properties,
            removal_policy=removal_policy,
            service_timeout=SERVICE_TIMEOUT,
        )
        self.resource.node.add_dependency(stockyard)
        self.ready_resource = self.resource
        """The custom resource that is complete when this one is ready."""

    def step(
        self,
        id: str,
        kind: str,
        document: Mapping[str, Any],
        after: Sequence[IDependable],
        *,
        goes_on: bool = False,
    ) -> CustomResource:
        """A step of the stack about this resource, behind ``after``. ``goes_on``: another step waits on where this one
        has waited for as long as CloudFormation lets it."""
        properties = {"Kind": kind, "Document": Stack.of(self).to_json_string(dict(document))}
        step = CustomResource(
            self,
            id,
            service_token=self.stockyard.service_token,
            resource_type=f"Custom::Stockyard{kind}",
            properties={**properties, **({"AtLimit": "Continue"} if goes_on else {})},
            service_timeout=SERVICE_TIMEOUT,
        )
        step.node.add_dependency(self.stockyard, *after)
        return step

    @property
    def physical_id(self) -> str:
        """Physical id: path in the API, and the mark of this resource of this stack."""
        return self.resource.ref

    def output(self, name: str) -> str:
        """An output as a text."""
        return self.resource.get_att_string(name)

    def number(self, name: str) -> int:
        """An output as a number."""
        return int(Token.as_number(self.resource.get_att(name)))
