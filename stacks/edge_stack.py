"""CloudFront and its web ACL, in us-east-1: only there are certificates, web ACLs, logs and metrics of CloudFront."""

from __future__ import annotations

from aws_cdk import CfnOutput, Duration, Environment, Fn, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from stacks.config import EDGE_REGION, CloudFront, StageConfig
from stacks.constructs.distribution import Distribution
from stacks.constructs.web_acl import WebAcl
from stacks.names import ORIGIN_OUTPUT, Names

BLOCKED = 1000
"""Blocked requests in five minutes that an alarm tells of."""
ERROR_PERCENT = 5


class EdgeStack(Stack):
    """In front of the API of the service stack, which comes first. It can be created again without loss."""

    def __init__(self, scope: Construct, config: StageConfig, cloudfront: CloudFront) -> None:
        names = Names(config.stage)
        super().__init__(
            scope,
            names.edge_stack,
            description=f"Stockyard {config.stage}: CloudFront in front of the API",
            env=Environment(account=config.account or None, region=EDGE_REGION),
        )
        acl = WebAcl(self, "WebAcl", config=config, address_limit=cloudfront.address_limit)
        # Read at the deployment: a reference of the strong kind would be two custom resources with functions.
        origin_host = Fn.get_stack_output(names.service_stack, ORIGIN_OUTPUT, config.region)
        distribution = Distribution(
            self,
            "Distribution",
            config=config,
            cloudfront_config=cloudfront,
            origin_host=origin_host,
            web_acl_arn=acl.arn,
        )
        self._topic = sns.Topic.from_topic_arn(self, "Topic", config.edge_topic_arn) if config.edge_topic_arn else None
        self._alarm(
            "Blocked",
            names.alarm("requests-blocked"),
            cloudwatch.Metric(
                namespace="AWS/WAFV2",
                metric_name="BlockedRequests",
                dimensions_map={"WebACL": acl.name, "Rule": "ALL"},
                statistic="Sum",
                period=Duration.minutes(5),
            ),
            BLOCKED,
            f"The web ACL blocked more than {BLOCKED} requests within five minutes",
        )
        self._alarm(
            "Errors",
            names.alarm("distribution-errors"),
            cloudwatch.Metric(
                namespace="AWS/CloudFront",
                metric_name="5xxErrorRate",
                dimensions_map={"DistributionId": distribution.id, "Region": "Global"},
                statistic="Average",
                period=Duration.minutes(5),
            ),
            ERROR_PERCENT,
            f"CloudFront answered more than {ERROR_PERCENT} % of the requests with 5xx",
        )
        CfnOutput(self, "DistributionHost", value=distribution.host)

    def _alarm(self, id: str, name: str, metric: cloudwatch.IMetric, threshold: int, description: str) -> None:
        alarm = cloudwatch.Alarm(
            self,
            id,
            alarm_name=name,
            alarm_description=description,
            metric=metric,
            threshold=threshold,
            evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        if self._topic is not None:
            alarm.add_alarm_action(actions.SnsAction(self._topic))
