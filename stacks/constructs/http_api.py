"""The HTTP API: JWT authorizer, explicit routes, ``$default``, throttling, access logs."""

from __future__ import annotations

import json
from collections.abc import Mapping

from aws_cdk import Aws, CfnOutput
from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.config import StageConfig
from stacks.constructs.log_groups import log_group
from stacks.constructs.roles import acknowledge
from stacks.names import Names
from stacks.routes import DEFAULT_ROUTE, GatewayRoute, routes

MACHINES = "machines"
"""The function of what machines call."""

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
            # With a name of its own the API answers to no other; the one that nobody is told is CloudFront's.
            disable_execute_api_endpoint=bool(config.domain) and config.cloudfront is None,
        )
        self.url = f"https://{config.domain}" if config.domain else self.api.api_endpoint
        self.origin_host = f"{self.api.api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}"
        """Where CloudFront finds the API, if it is in front of it."""
        self._config = config
        self._stage = apigw.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            detailed_metrics_enabled=False,
            throttle=apigw.ThrottleSettings(rate_limit=config.rate_limit, burst_limit=config.burst_limit),
            domain_mapping=self._domain(config) if config.regional_domain else None,
        )
        logs = log_group(self, "AccessLogs", names.api_log_group, config)
        resource = self._stage.node.default_child
        if isinstance(resource, apigw.CfnStage):
            resource.access_log_settings = apigw.CfnStage.AccessLogSettingsProperty(
                destination_arn=logs.log_group_arn, format=json.dumps(ACCESS_LOG)
            )
        self._authorizer = authorizers.HttpJwtAuthorizer(
            "Jwt", config.issuer, authorizer_name="realm", jwt_audience=[config.audience]
        )

    def _domain(self, config: StageConfig) -> apigw.DomainMappingOptions:
        """The name; its address, for the record in DNS, is an output of the stack."""
        certificate = acm.Certificate.from_certificate_arn(self, "Certificate", config.certificate_arn)
        name = apigw.DomainName(self, "Domain", domain_name=config.domain, certificate=certificate)
        CfnOutput(self, "DomainTarget", value=name.regional_domain_name)
        return apigw.DomainMappingOptions(domain_name=name)

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
        limits: dict[str, dict[str, int]] = {}
        for route in routes():
            resource = self._route(route, behind[route.function])
            if limit := self._limit(route):
                limits[route.key] = dict(zip(("ThrottlingRateLimit", "ThrottlingBurstLimit"), limit, strict=True))
                # A stage refuses settings of a route that is not there yet.
                self._stage.node.add_dependency(resource)
        stage = self._stage.node.default_child
        if isinstance(stage, apigw.CfnStage):
            stage.route_settings = limits

    def _limit(self, route: GatewayRoute) -> tuple[int, int] | None:
        """The route's own rate and burst, so that neither strangers nor machines use up what people have."""
        if route.open_because:
            return self._config.open_rate_limit, self._config.open_burst_limit
        if route.function == MACHINES:
            return self._config.machine_rate_limit, self._config.machine_burst_limit
        return None

    def _route(self, route: GatewayRoute, integration: apigw.HttpRouteIntegration) -> apigw.HttpRoute:
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
        return resource


def _key(key: str) -> apigw.HttpRouteKey:
    method, path = key.split(" ")
    return apigw.HttpRouteKey.with_(path, apigw.HttpMethod[method])
