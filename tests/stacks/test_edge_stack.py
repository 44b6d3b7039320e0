"""CloudFront and its web ACL in front of the API, read off the templates."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cost, rates
from stacks.config import StageConfig, load
from stacks.node import use_bundled_node
from stacks.routes import routes
from stockyard.settings import ORIGIN_KEY_HEADER

ROOT = Path(__file__).resolve().parents[2]
HASHES = ["a" * 64, "b" * 64]
STAGE = {
    "issuer": "https://id.example.com/realms/stockyard",
    "domain": "api.example.com",
    "region": "eu-west-1",
    "account": "111111111111",
    "certificate_arn": "arn:aws:acm:eu-west-1:111111111111:certificate/0a1b",
    "alarm_topic_arn": "arn:aws:sns:eu-west-1:111111111111:alarms",
    "cloudfront": {
        "certificate_arn": "arn:aws:acm:us-east-1:111111111111:certificate/2c3d",
        "origin_key_hashes": HASHES,
        "address_limit": 500,
        "alarm_topic_arn": "arn:aws:sns:us-east-1:111111111111:alarms",
    },
}


def configuration(**cloudfront: Any) -> StageConfig:
    return load("dev", {"dev": {**STAGE, "cloudfront": {**STAGE["cloudfront"], **cloudfront}}})


@pytest.fixture(scope="module")
def edge() -> dict[str, Any]:
    """The template of the edge stack. Every finding of cdk-nag in it has a reason."""
    use_bundled_node()
    from aws_cdk import App, assertions

    from stacks.application import findings
    from stacks.edge_stack import EdgeStack

    app, config = App(analytics_reporting=False), configuration()
    assert config.cloudfront is not None
    stack = EdgeStack(app, config, config.cloudfront)
    assert stack.region == "us-east-1"
    assert findings(app) == []
    template: dict[str, Any] = assertions.Template.from_stack(stack).to_json()
    return template


def of_type(template: dict[str, Any], type_: str) -> list[dict[str, Any]]:
    return [resource["Properties"] for resource in template["Resources"].values() if resource["Type"] == type_]


def http_api(config: StageConfig) -> dict[str, Any]:
    """The template of the API alone, without its routes."""
    use_bundled_node()
    from aws_cdk import App, Stack, assertions

    from stacks.constructs.http_api import HttpApi

    stack = Stack(App(analytics_reporting=False), "Probe")
    assert HttpApi(stack, "Http", config=config).url == "https://api.example.com"
    template: dict[str, Any] = assertions.Template.from_stack(stack).to_json()
    return template


def distribution(edge: dict[str, Any]) -> dict[str, Any]:
    (properties,) = of_type(edge, "AWS::CloudFront::Distribution")
    settings: dict[str, Any] = properties["DistributionConfig"]
    return settings


def test_nothing_of_one_caller_is_kept_for_the_next(edge: dict[str, Any]) -> None:
    settings = distribution(edge)
    behavior = settings["DefaultCacheBehavior"]
    assert {each["PathPattern"] for each in settings["CacheBehaviors"]} == {"/console", "/console/*"}
    assert behavior["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad", "AWS's CachingDisabled"
    assert behavior["OriginRequestPolicyId"] == "b689b0a8-53d0-40ab-baf2-68738e2966ac", "AllViewerExceptHostHeader"
    cached = {each["ErrorCode"]: each["ErrorCachingMinTTL"] for each in settings["CustomErrorResponses"]}
    # Errors have a cache of their own, of ten seconds, that no cache policy turns off: all of its statuses.
    assert cached == dict.fromkeys((400, 403, 404, 405, 414, 416, 500, 501, 502, 503, 504), 0)


def test_distribution_takes_every_method_of_the_api_by_https_alone(edge: dict[str, Any]) -> None:
    settings = distribution(edge)
    behavior = settings["DefaultCacheBehavior"]
    methods = {route.key.split(" ")[0] for route in routes()} - {"$default"}
    assert methods < set(behavior["AllowedMethods"])
    assert behavior["ViewerProtocolPolicy"] == "https-only"
    assert settings["ViewerCertificate"]["MinimumProtocolVersion"] == "TLSv1.2_2021"
    assert settings["ViewerCertificate"]["AcmCertificateArn"].endswith("certificate/2c3d")
    assert (settings["HttpVersion"], settings["IPV6Enabled"]) == ("http2and3", False)
    assert settings["Aliases"] == ["api.example.com"]


def test_origin_is_the_api_of_the_stage_and_gets_the_key(edge: dict[str, Any]) -> None:
    origin, _ = distribution(edge)["Origins"]
    reference = {"StackName": "Stockyard-dev", "OutputName": "OriginHost", "Region": "eu-west-1"}
    assert origin["DomainName"] == {"Fn::GetStackOutput": reference}
    assert origin["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"
    assert origin["CustomOriginConfig"]["OriginReadTimeout"] > 30, "the gateway's own time"
    (field,) = origin["OriginCustomHeaders"]
    assert field["HeaderName"] == ORIGIN_KEY_HEADER
    assert field["HeaderValue"].startswith("{{resolve:secretsmanager:stockyard/dev/origin-key:SecretString")
    assert HASHES[0][:8] in distribution(edge)["Comment"], "what makes CloudFormation read a changed secret"


def test_console_is_a_private_bucket_whose_files_alone_are_kept(edge: dict[str, Any]) -> None:
    _, origin = distribution(edge)["Origins"]
    assert origin["OriginAccessControlId"]
    (bucket,) = of_type(edge, "AWS::S3::Bucket")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    (policy,) = of_type(edge, "AWS::S3::BucketPolicy")
    statements = policy["PolicyDocument"]["Statement"]
    readers = [each for each in statements if each["Effect"] == "Allow" and each["Action"] == "s3:GetObject"]
    assert [each["Principal"] for each in readers] == [{"Service": "cloudfront.amazonaws.com"}]
    assert "AWS:SourceArn" in readers[0]["Condition"]["StringEquals"]
    for behavior in distribution(edge)["CacheBehaviors"]:
        assert set(behavior["AllowedMethods"]) == {"GET", "HEAD"}
        assert behavior["CachePolicyId"] == "658327ea-f89d-4fab-a63d-7e88639e58f6", "AWS's CachingOptimized"
        assert "OriginRequestPolicyId" not in behavior, "no token and no cookie goes to the bucket"
        assert behavior["Compress"] is True
    (function,) = of_type(edge, "AWS::CloudFront::Function")
    assert "/console/index.html" in function["FunctionCode"]


def test_console_has_the_headers_of_the_local_cloud(edge: dict[str, Any]) -> None:
    (policy,) = of_type(edge, "AWS::CloudFront::ResponseHeadersPolicy")
    security = policy["ResponseHeadersPolicyConfig"]["SecurityHeadersConfig"]
    named = json.loads((ROOT / "console" / "serving.json").read_text(encoding="utf-8"))
    text = security["ContentSecurityPolicy"]["ContentSecurityPolicy"]
    assert text == named["Content-Security-Policy"].replace("{issuer}", "https://id.example.com")
    assert "unsafe" not in text
    assert security["FrameOptions"]["FrameOption"] == named["X-Frame-Options"]
    assert security["ReferrerPolicy"]["ReferrerPolicy"] == named["Referrer-Policy"]
    age = security["StrictTransportSecurity"]["AccessControlMaxAgeSec"]
    assert f"max-age={age}" == named["Strict-Transport-Security"]
    (custom,) = policy["ResponseHeadersPolicyConfig"]["CustomHeadersConfig"]["Items"]
    assert named[custom["Header"]] == custom["Value"]
    assert len(named) == 6, "each is in the policy; nosniff has no value there"


def test_web_acl_limits_addresses_that_it_sees_itself(edge: dict[str, Any]) -> None:
    from stacks.constructs.web_acl import COUNTED

    (acl,) = of_type(edge, "AWS::WAFv2::WebACL")
    assert (acl["Scope"], acl["DefaultAction"]) == ("CLOUDFRONT", {"Allow": {}})
    rules = {rule["Name"]: rule for rule in acl["Rules"]}
    assert sorted(rule["Priority"] for rule in acl["Rules"]) == list(range(len(rules)))
    rate = rules.pop("Address")
    assert rate["Statement"]["RateBasedStatement"] == {
        "AggregateKeyType": "IP",  # not FORWARDED_IP, which a caller may write
        "EvaluationWindowSec": 60,
        "Limit": 500,
    }
    answer = rate["Action"]["Block"]["CustomResponse"]
    assert answer["ResponseCode"] == 429
    problem = json.loads(acl["CustomResponseBodies"][answer["CustomResponseBodyKey"]]["Content"])
    assert (problem["status"], problem["error_type"], problem["retryable"]) == (429, "Throttled", True)
    assert set(rules) == set(COUNTED)
    assert all(rule["OverrideAction"] == {"None": {}} for rule in rules.values()), "each blocks but for its exceptions"


def test_rules_on_bodies_of_the_common_group_only_count(edge: dict[str, Any]) -> None:
    from stacks.constructs.web_acl import COUNTED

    (acl,) = of_type(edge, "AWS::WAFv2::WebACL")
    overrides = {
        override["Name"]: override["ActionToUse"]
        for rule in acl["Rules"]
        for override in rule["Statement"].get("ManagedRuleGroupStatement", {}).get("RuleActionOverrides", [])
    }
    bodies = {"SizeRestrictions", "CrossSiteScripting", "EC2MetaDataSSRF", "GenericLFI", "GenericRFI"}
    assert overrides == {f"{name}_BODY": {"Count": {}} for name in bodies}
    assert all(reason for reasons in COUNTED.values() for reason in reasons.values())


def test_no_log_holds_a_token(edge: dict[str, Any]) -> None:
    (logging,) = of_type(edge, "AWS::WAFv2::LoggingConfiguration")
    assert {field["SingleHeader"]["Name"] for field in logging["RedactedFields"]} == {"authorization", "cookie"}
    assert logging["LoggingFilter"]["DefaultBehavior"] == "DROP"
    (acl,) = of_type(edge, "AWS::WAFv2::WebACL")
    visibility = [acl["VisibilityConfig"], *(rule["VisibilityConfig"] for rule in acl["Rules"])]
    assert not any(each["SampledRequestsEnabled"] for each in visibility)
    (delivery,) = of_type(edge, "AWS::Logs::Delivery")
    fields = set(delivery["RecordFields"])
    assert {"c-ip", "sc-status", "x-edge-request-id"} < fields
    assert not fields & {"cs-uri-query", "cs(Cookie)", "cs(Referer)", "x-forwarded-for"}
    groups = of_type(edge, "AWS::Logs::LogGroup")
    assert {group["LogGroupName"] for group in groups} == {
        "aws-waf-logs-stockyard-dev",
        "/aws/vendedlogs/cloudfront/stockyard-dev",
    }
    assert all("RetentionInDays" in group for group in groups)


def test_alarms_stand_where_the_metrics_are_and_in_the_operators_table(edge: dict[str, Any]) -> None:
    alarms = {alarm["AlarmName"]: alarm for alarm in of_type(edge, "AWS::CloudWatch::Alarm")}
    assert set(alarms) == {"stockyard-dev-requests-blocked", "stockyard-dev-distribution-errors"}
    table = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    for name, alarm in alarms.items():
        assert f"`{name.removeprefix('stockyard-dev-')}`" in table
        assert alarm["AlarmActions"] == ["arn:aws:sns:us-east-1:111111111111:alarms"]
    (acl,) = of_type(edge, "AWS::WAFv2::WebACL")
    watched = {each["Name"]: each["Value"] for each in alarms["stockyard-dev-requests-blocked"]["Dimensions"]}
    assert watched == {"WebACL": acl["VisibilityConfig"]["MetricName"], "Rule": "ALL"}


def test_the_name_is_the_distributions_alone_and_functions_demand_its_key() -> None:
    from stacks.environment import variables

    config = configuration()
    template = http_api(config)
    assert of_type(template, "AWS::ApiGatewayV2::DomainName") == []
    (api,) = of_type(template, "AWS::ApiGatewayV2::Api")
    assert api["DisableExecuteApiEndpoint"] is False, "CloudFront's way to it"
    environment = variables(config, "records", "https://api.example.com")
    assert environment["STOCKYARD_ORIGIN_KEY_HASHES"] == ",".join(HASHES)


def test_while_the_name_moves_both_ways_lead_to_the_api() -> None:
    from stacks.environment import variables

    config = configuration(accept_direct=True)
    (domain,) = of_type(http_api(config), "AWS::ApiGatewayV2::DomainName")
    assert domain["DomainName"] == "api.example.com"
    assert "STOCKYARD_ORIGIN_KEY_HASHES" not in variables(config, "records", "https://api.example.com")


def test_without_the_option_no_template_tells_of_it(assembly: Any) -> None:
    assert not (assembly.folder / "Stockyard-dev-Edge.template.json").exists()
    assert "OriginHost" not in assembly.service["Outputs"]
    for _, function in assembly.of_type("AWS::Lambda::Function").items():
        assert "STOCKYARD_ORIGIN_KEY_HASHES" not in function["Properties"]["Environment"]["Variables"]
    (api,) = of_type(http_api(replace(configuration(), cloudfront=None)), "AWS::ApiGatewayV2::Api")
    assert api["DisableExecuteApiEndpoint"] is True


def test_cost_names_what_the_distribution_adds(edge: dict[str, Any]) -> None:
    items = cost.cloudfront(edge)
    rules = len(of_type(edge, "AWS::WAFv2::WebACL")[0]["Rules"])
    assert items["web ACL"] == rates.WAF_WEB_ACL + rules * rates.WAF_RULE
    assert items["alarms"] == pytest.approx(2 * rates.ALARM)
    assert 9 < sum(items.values()) < 12
