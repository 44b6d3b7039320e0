"""The web ACL of AWS WAF in front of the API, and its log."""

from __future__ import annotations

import json
from collections.abc import Mapping

from aws_cdk import aws_wafv2 as waf
from constructs import Construct

from stacks.config import StageConfig
from stacks.constructs.log_groups import log_group, plain_arn
from stacks.names import Names

WINDOW_SECONDS = 60
"""Over which requests of an address are counted."""

REPUTATION, BAD_INPUTS, COMMON = (
    "AWSManagedRulesAmazonIpReputationList",
    "AWSManagedRulesKnownBadInputsRuleSet",
    "AWSManagedRulesCommonRuleSet",
)
# No list of hosting providers' addresses (AnonymousIpList): machines of clusters call from such addresses.
COUNTED: Mapping[str, Mapping[str, str]] = {
    REPUTATION: {},
    BAD_INPUTS: {},
    COMMON: {
        "SizeRestrictions_BODY": "Manifests and observations are larger than its 8 KiB; functions have own limits",
        "CrossSiteScripting_BODY": "Manifests hold scripts and templates, and no page shows them",
        "EC2MetaDataSSRF_BODY": "Manifests name 169.254.169.254 as an address that no proxy or policy may cover",
        "GenericLFI_BODY": "Manifests and the last lines of a first boot hold relative paths",
        "GenericRFI_BODY": "Kubeconfigs and endpoints of clusters are URLs of IP addresses",
    },
}
"""Managed rule group -> its rules that only count, because they block what the API is there for, and why."""

TOO_MANY = "too-many"
_PROBLEM = {
    "type": "urn:stockyard:problem:Throttled",
    "title": "Too many requests",
    "status": 429,
    "detail": "This address sends more requests a minute than the stage allows.",
    "error_type": "Throttled",
    "retryable": True,
    "errors": [],
}


class WebAcl(Construct):
    """Managed rule groups and a limit for each address. ``arn`` and ``name`` are the web ACL's."""

    def __init__(self, scope: Construct, id: str, *, config: StageConfig, address_limit: int) -> None:
        super().__init__(scope, id)
        names = Names(config.stage)
        self.name = names.prefix
        rules = [
            _managed(REPUTATION, 0),
            _address_rule(address_limit, 1),
            _managed(BAD_INPUTS, 2),
            _managed(COMMON, 3),
        ]
        acl = waf.CfnWebACL(
            self,
            "WebAcl",
            name=self.name,
            description=f"Stockyard {config.stage}",
            scope="CLOUDFRONT",
            default_action=waf.CfnWebACL.DefaultActionProperty(allow=waf.CfnWebACL.AllowActionProperty()),
            rules=rules,
            custom_response_bodies={
                TOO_MANY: waf.CfnWebACL.CustomResponseBodyProperty(
                    content_type="APPLICATION_JSON", content=json.dumps(_PROBLEM)
                )
            },
            visibility_config=_visible(self.name),
        )
        self.arn = acl.attr_arn
        self._log(config, names)

    def _log(self, config: StageConfig, names: Names) -> None:
        """Log requests that were blocked or counted; what was let through is in the access log. Tokens stay out of
        it."""
        group = log_group(self, "Logs", names.web_acl_log_group, config)
        actions = ("BLOCK", "COUNT", "EXCLUDED_AS_COUNT")
        waf.CfnLoggingConfiguration(
            self,
            "Logging",
            resource_arn=self.arn,
            log_destination_configs=[plain_arn(group)],
            redacted_fields=[
                waf.CfnLoggingConfiguration.FieldToMatchProperty(single_header={"Name": header})
                for header in ("authorization", "cookie")
            ],
            logging_filter={
                "DefaultBehavior": "DROP",
                "Filters": [
                    {
                        "Behavior": "KEEP",
                        "Requirement": "MEETS_ANY",
                        "Conditions": [{"ActionCondition": {"Action": action}} for action in actions],
                    }
                ],
            },
        )


def _managed(group: str, priority: int) -> waf.CfnWebACL.RuleProperty:
    """A rule group of AWS, of the version that AWS recommends at the time."""
    count = waf.CfnWebACL.RuleActionProperty(count=waf.CfnWebACL.CountActionProperty())
    return waf.CfnWebACL.RuleProperty(
        name=group,
        priority=priority,
        override_action=waf.CfnWebACL.OverrideActionProperty(none={}),
        statement=waf.CfnWebACL.StatementProperty(
            managed_rule_group_statement=waf.CfnWebACL.ManagedRuleGroupStatementProperty(
                vendor_name="AWS",
                name=group,
                rule_action_overrides=[
                    waf.CfnWebACL.RuleActionOverrideProperty(name=rule, action_to_use=count) for rule in COUNTED[group]
                ]
                or None,
            )
        ),
        visibility_config=_visible(group),
    )


def _address_rule(limit: int, priority: int) -> waf.CfnWebACL.RuleProperty:
    """A limit for each address that CloudFront sees itself: no header says what it is."""
    return waf.CfnWebACL.RuleProperty(
        name="Address",
        priority=priority,
        action=waf.CfnWebACL.RuleActionProperty(
            block=waf.CfnWebACL.BlockActionProperty(
                custom_response=waf.CfnWebACL.CustomResponseProperty(
                    response_code=429,
                    custom_response_body_key=TOO_MANY,
                    response_headers=[
                        waf.CfnWebACL.CustomHTTPHeaderProperty(name="Retry-After", value=str(WINDOW_SECONDS))
                    ],
                )
            )
        ),
        statement=waf.CfnWebACL.StatementProperty(
            rate_based_statement=waf.CfnWebACL.RateBasedStatementProperty(
                aggregate_key_type="IP", limit=limit, evaluation_window_sec=WINDOW_SECONDS
            )
        ),
        visibility_config=_visible("Address"),
    )


def _visible(metric: str) -> waf.CfnWebACL.VisibilityConfigProperty:
    """Metrics, and no sampled requests: a sample shows every header, the token too."""
    return waf.CfnWebACL.VisibilityConfigProperty(
        cloud_watch_metrics_enabled=True, metric_name=metric, sampled_requests_enabled=False
    )
