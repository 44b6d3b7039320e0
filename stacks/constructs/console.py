"""The console behind the distribution: a private bucket, its files, and their headers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from aws_cdk import CfnElement, Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as deployment
from constructs import Construct

from stacks.config import EDGE_REGION, StageConfig
from stacks.constructs.roles import acknowledge

FOLDER = Path(__file__).resolve().parents[2] / "console"
CLIENT_ID = "stockyard-console"
"""The public client of the realm that people log in with."""
SERVING = "serving.json"
"""Headers of every answer, which the local cloud reads too; ``{issuer}`` is the origin of the realm."""
STATIC_SECONDS = 3600

PAGES = """
function handler(event) {
  var request = event.request;
  if (request.uri === '/console') {
    return {statusCode: 302, statusDescription: 'Found', headers: {location: {value: '/console/'}}};
  }
  if (request.uri.indexOf('/console/assets/') !== 0 && request.uri !== '/console/config.json') {
    request.uri = '/console/index.html';
  }
  return request;
}
"""
"""An address that is no file is a page of the console, which its one document shows."""


class Console(Construct):
    """The bucket and the ``behavior`` that serves it below ``/console``. ``deploy`` puts the files there."""

    def __init__(self, scope: Construct, id: str, *, config: StageConfig) -> None:
        super().__init__(scope, id)
        self._config = config
        self._bucket = s3.Bucket(
            self,
            "Files",
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            # Nothing is lost with it: every deployment puts the files there.
            removal_policy=RemovalPolicy.DESTROY,
        )
        acknowledge(self._bucket, "AwsSolutions-S1", "It holds public files; who reads them stands in CloudFront's log")
        pages = cloudfront.Function(
            self,
            "Pages",
            code=cloudfront.FunctionCode.from_inline(PAGES),
            runtime=cloudfront.FunctionRuntime.JS_2_0,
        )
        self.behavior = cloudfront.BehaviorOptions(
            origin=origins.S3BucketOrigin.with_origin_access_control(self._bucket),
            allowed_methods=cloudfront.AllowedMethods.ALLOW_GET_HEAD,
            # Without cookies, queries and headers in the key: these files are the same for everybody.
            cache_policy=cloudfront.CachePolicy.CACHING_OPTIMIZED,
            viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
            response_headers_policy=self._headers(),
            function_associations=[
                cloudfront.FunctionAssociation(function=pages, event_type=cloudfront.FunctionEventType.VIEWER_REQUEST)
            ],
            compress=True,
        )

    def _headers(self) -> cloudfront.ResponseHeadersPolicy:
        origin = "://".join(urlsplit(self._config.issuer)[:2])
        named = json.loads((FOLDER / SERVING).read_text(encoding="utf-8"))
        texts = {name: text.replace("{issuer}", origin) for name, text in named.items()}
        return cloudfront.ResponseHeadersPolicy(
            self,
            "Headers",
            security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
                content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(
                    content_security_policy=texts.pop("Content-Security-Policy"), override=True
                ),
                content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
                frame_options=cloudfront.ResponseHeadersFrameOptions(
                    frame_option=cloudfront.HeadersFrameOption.DENY, override=True
                ),
                referrer_policy=cloudfront.ResponseHeadersReferrerPolicy(
                    referrer_policy=cloudfront.HeadersReferrerPolicy.NO_REFERRER, override=True
                ),
                strict_transport_security=cloudfront.ResponseHeadersStrictTransportSecurity(
                    access_control_max_age=Duration.seconds(
                        int(texts["Strict-Transport-Security"].removeprefix("max-age="))
                    ),
                    override=True,
                ),
            ),
            custom_headers_behavior=cloudfront.ResponseCustomHeadersBehavior(
                custom_headers=[
                    cloudfront.ResponseCustomHeader(header=name, value=texts[name], override=True)
                    for name in ("Cross-Origin-Opener-Policy",)
                ]
            ),
        )

    def deploy(self, distribution: cloudfront.IDistribution) -> None:
        """Put the files into the bucket, and let the distribution forget those of before."""
        settings = {"issuer": self._config.issuer, "client_id": CLIENT_ID}
        upload = deployment.BucketDeployment(
            self,
            "Deployment",
            sources=[
                deployment.Source.asset(str(FOLDER), exclude=[SERVING]),
                deployment.Source.json_data("config.json", settings),
            ],
            destination_bucket=self._bucket,
            destination_key_prefix="console",
            distribution=distribution,
            distribution_paths=["/console/*"],
            # A browser asks each time, and is told that nothing has changed: no page runs with files of two versions.
            cache_control=[deployment.CacheControl.from_string("no-cache")],
        )
        self._acknowledge(upload)

    def _acknowledge(self, upload: deployment.BucketDeployment) -> None:
        """The function that copies the files is CDK's own, and so are its rights."""
        function = upload.handler_role.node.scope
        stack = Stack.of(self)
        if not isinstance(function, Construct) or self._bucket.node.default_child is None:
            raise TypeError("the deployment of a bucket has another shape than this construct expects")
        reason = "CDK's own function copies the files, while a stack is deployed, and runs at no other time"
        bucket = stack.get_logical_id(cast(CfnElement, self._bucket.node.default_child))
        account = self._config.account or "<AWS::AccountId>"
        # CDK's command line names the partition of a stack whose region is known, and a plain synthesis does not
        assets = [
            f"arn:{partition}:s3:::cdk-hnb659fds-assets-{account}-{EDGE_REGION}/*"
            for partition in ("aws", "<AWS::Partition>")
        ]
        for action in ("GetObject*", "GetBucket*", "List*", "DeleteObject*", "Abort*"):
            acknowledge(function, f"AwsSolutions-IAM5[Action::s3:{action}]", reason)
        for resource in (*assets, f"<{bucket}.Arn>/*", "*"):
            acknowledge(function, f"AwsSolutions-IAM5[Resource::{resource}]", reason)
        managed = "arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
        acknowledge(function, f"AwsSolutions-IAM4[Policy::{managed}]", reason)
        acknowledge(function, "AwsSolutions-L1", reason)
