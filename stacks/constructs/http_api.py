"""The HTTP API: JWT authorizer, explicit routes, ``$default``, throttling, access logs."""

from __future__ import annotations

import json
from collections.abc import Mapping

from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.config import StageConfig
from stacks.constructs.log_groups import log_group
from stacks.constructs.roles import acknowledge
from stacks.names import Names
from stacks.routes import DEFAULT_ROUTE, GatewayRoute, routes

# No header, no query, no body: a token or a secret cannot get into the access log.
ACCESS_LOG = {
    "request_id": "$context.requestId",
    "time": "$context.requestTimeEpoch",
    "ip": "$context.identity.sourceIp",
    "route": "$context.routeKey",
    "method": "$context.httpMethod",
    "path": "$context.path",
    "status": "$context.status",
    "latency_ms": "$context.responseLatency",
    "integration_error": "$context.integrationErrorMessage",
    "authorizer_error": "$context.authorizer.error",
}


class HttpApi(Construct):
    """The API without its routes. The functions need its ``url``, so the routes are added after the functions."""

    def __init__(self, scope: Construct, id: str, *, config: StageConfig) -> None:
        super().__init__(scope, id)
        names = Names(config.stage)
        self.api = apigw.HttpApi(
            self,
            "Api",
            api_name=names.api,
            description=f"Stockyard {config.stage}",
            create_default_stage=False,
        )
        self.url = self.api.api_endpoint
        stage = apigw.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            detailed_metrics_enabled=False,
            throttle=apigw.ThrottleSettings(rate_limit=config.rate_limit, burst_limit=config.burst_limit),
        )
        logs = log_group(self, "AccessLogs", names.api_log_group, config)
        resource = stage.node.default_child
        if isinstance(resource, apigw.CfnStage):
            resource.access_log_settings = apigw.CfnStage.AccessLogSettingsProperty(
                destination_arn=logs.log_group_arn, format=json.dumps(ACCESS_LOG)
            )
        self._authorizer = authorizers.HttpJwtAuthorizer(
            "Jwt", config.issuer, authorizer_name="realm", jwt_audience=[config.audience]
        )

    def route(self, functions: Mapping[str, lambda_.IFunction]) -> None:
        """Connect every route with its function."""
        behind = {
            name: integrations.HttpLambdaIntegration(
                f"{name}Integration",
                functions[name],
                payload_format_version=apigw.PayloadFormatVersion.VERSION_2_0,
                scope_permission_to_route=False,
            )
            for name in {route.function: None for route in routes()}
        }
        for route in routes():
            self._route(route, behind[route.function])

    def _route(self, route: GatewayRoute, integration: apigw.HttpRouteIntegration) -> None:
        resource = apigw.HttpRoute(
            self,
            f"Route {route.key.replace('/', ' ')}",
            http_api=self.api,
            route_key=apigw.HttpRouteKey.DEFAULT if route.key == DEFAULT_ROUTE else _key(route.key),
            integration=integration,
            authorizer=apigw.HttpNoneAuthorizer() if route.open_because else self._authorizer,
        )
        if route.open_because:
            acknowledge(resource, "AwsSolutions-APIG4", route.open_because)


def _key(key: str) -> apigw.HttpRouteKey:
    method, path = key.split(" ")
    return apigw.HttpRouteKey.with_(path, apigw.HttpMethod[method])
