"""The distribution of CloudFront: nothing of the API is kept, only the host's name is changed, and the access log."""

from __future__ import annotations

from aws_cdk import Duration, SecretValue
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.config import CloudFront, StageConfig
from stacks.constructs.console import Console
from stacks.constructs.log_groups import log_group, plain_arn
from stacks.constructs.roles import acknowledge
from stacks.functions import HTTP_SECONDS
from stacks.names import Names
from stockyard.settings import ORIGIN_KEY_HEADER

ERROR_STATUSES = (400, 403, 404, 405, 414, 416, 500, 501, 502, 503, 504)
"""Answers that CloudFront would keep for ten seconds, whatever the cache policy and ``Cache-Control`` say. Its key is
the path alone, so the next caller, of another tenant perhaps, would be answered what was meant for somebody else."""
READ_SECONDS = HTTP_SECONDS + 6
"""Longer than the gateway waits for a function, so that its answer is what the caller gets."""

# No query, no cookie, no header but the caller's program: a token or a secret cannot get into the access log.
ACCESS_LOG = (
    *("date", "time", "c-ip", "cs-method", "cs-uri-stem", "sc-status", "cs(User-Agent)", "cs-protocol-version"),
    *("ssl-protocol", "cs-bytes", "sc-bytes", "time-taken", "x-edge-location", "x-edge-request-id"),
    *("x-edge-result-type", "x-edge-detailed-result-type"),
)


class Distribution(Construct):
    """CloudFront for the stage's domain. ``id`` and ``host`` are its own; ``origin_host`` is the API's own name."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        config: StageConfig,
        cloudfront_config: CloudFront,
        origin_host: str,
        web_acl_arn: str,
    ) -> None:
        super().__init__(scope, id)
        names = Names(config.stage)
        key = SecretValue.secrets_manager(names.origin_key)
        origin = origins.HttpOrigin(
            origin_host,
            # It replaces a field of that name that a caller sends.
            custom_headers={ORIGIN_KEY_HEADER: key.unsafe_unwrap()},
            protocol_policy=cloudfront.OriginProtocolPolicy.HTTPS_ONLY,
            origin_ssl_protocols=[cloudfront.OriginSslPolicy.TLS_V1_2],
            read_timeout=Duration.seconds(READ_SECONDS),
        )
        console = Console(self, "Console", config=config)
        distribution = cloudfront.Distribution(
            self,
            "Distribution",
            # CloudFormation reads the secret when a property of the distribution changes: with the hash this one does.
            comment=f"Stockyard {config.stage}, origin key {cloudfront_config.origin_key_hashes[0][:8]}",
            domain_names=[config.domain],
            certificate=acm.Certificate.from_certificate_arn(self, "Certificate", cloudfront_config.certificate_arn),
            minimum_protocol_version=cloudfront.SecurityPolicyProtocol.TLS_V1_2_2021,
            http_version=cloudfront.HttpVersion.HTTP2_AND_3,
            # One host has 2^64 addresses of IPv6 to choose from, so that a limit for each of them would be none.
            enable_ipv6=False,
            web_acl_id=web_acl_arn,
            default_behavior=cloudfront.BehaviorOptions(
                origin=origin,
                allowed_methods=cloudfront.AllowedMethods.ALLOW_ALL,
                cache_policy=cloudfront.CachePolicy.CACHING_DISABLED,
                origin_request_policy=cloudfront.OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
                # A redirect would come too late: the token was sent in the clear by then.
                viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.HTTPS_ONLY,
                compress=False,
            ),
            additional_behaviors={"/console": console.behavior, "/console/*": console.behavior},
            error_responses=[
                cloudfront.ErrorResponse(http_status=status, ttl=Duration.seconds(0)) for status in ERROR_STATUSES
            ],
        )
        acknowledge(distribution, "AwsSolutions-CFR1", "Tenants and their machines may be in any country")
        acknowledge(distribution, "AwsSolutions-CFR3", "The access log goes to CloudWatch Logs, by a delivery")
        self.id, self.host = distribution.distribution_id, distribution.distribution_domain_name
        console.deploy(distribution)
        self._log(config, names, distribution.distribution_arn)

    def _log(self, config: StageConfig, names: Names, distribution_arn: str) -> None:
        group = log_group(self, "AccessLogs", names.edge_log_group, config)
        source = logs.CfnDeliverySource(
            self, "LogSource", name=names.prefix, resource_arn=distribution_arn, log_type="ACCESS_LOGS"
        )
        destination = logs.CfnDeliveryDestination(
            self,
            "LogDestination",
            name=names.prefix,
            destination_resource_arn=plain_arn(group),
            output_format="json",
        )
        delivery = logs.CfnDelivery(
            self,
            "LogDelivery",
            delivery_source_name=source.name,
            delivery_destination_arn=destination.attr_arn,
            record_fields=list(ACCESS_LOG),
        )
        delivery.add_resource_dependency(source)
