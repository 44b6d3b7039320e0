"""Stage configuration: what is accepted, and that every mistake names its key."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from stacks.config import CHECKS, CloudFront, Network, StageConfig, load
from stacks.errors import ConfigError

ISSUER = "https://id.example.com/realms/stockyard"


def test_stage_config_requires_issuer_only() -> None:
    config = load("dev", {"dev": {"issuer": ISSUER}})
    assert config == StageConfig(stage="dev", issuer=ISSUER)
    assert (config.name_prefix, config.tenant_role_pattern, config.allow_own_account) == ("vantage", "*", False)


def test_stage_config_is_frozen() -> None:
    config = load("dev", {"dev": {"issuer": ISSUER}})
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.stage = "prod"


def test_stage_config_has_exactly_one_check_per_setting() -> None:
    assert set(CHECKS) == {field.name for field in dataclasses.fields(StageConfig)} - {"stage"}


def test_stage_config_overrides_win_and_are_text() -> None:
    stages = {"dev": {"issuer": ISSUER, "rate_limit": 5}}
    config = load("dev", stages, {"rate_limit": "7", "report_only": "true", "log_retention_days": "90"})
    assert (config.rate_limit, config.report_only, config.log_retention_days) == (7, True, 90)


def test_stage_config_reads_network() -> None:
    network = {"subnet_ids": ["subnet-0a1b"], "security_group_ids": ["sg-0a1b"]}
    assert load("dev", {"dev": {"issuer": ISSUER, "network": network}}).network == Network(
        ("subnet-0a1b",), ("sg-0a1b",)
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("issuer", "http://id.example.com/realms/stockyard"),
        ("issuer", ISSUER + "/"),
        ("audience", ""),
        ("account", "12345"),
        ("region", "Virginia"),
        ("name_prefix", "vantages"),
        ("name_prefix", "1abc"),
        ("kubernetes_version", "1.34.2"),
        ("kubernetes_version", "1.29"),
        ("vdeployer_url_template", "https://example.com/vdeployer"),
        ("vdeployer_url_template", "http://{client_id}.example.com/vdeployer"),
        ("event_accounts", ["123"]),
        ("event_accounts", ["222222222222"] * 101),
        ("event_accounts", "222222222222"),
        ("event_organization", "acme"),
        ("tenant_role_pattern", ""),
        ("allow_own_account", "yes"),
        ("log_level", "LOUD"),
        ("log_retention_days", 8),
        ("rate_limit", 0),
        ("rate_limit", True),
        ("burst_limit", 5001),
        ("visibility_seconds", -1),
        ("sweep_grace_seconds", "soon"),
        ("report_only", None),
        ("alarm_topic_arn", "alarms"),
        ("domain", "https://api.example.com"),
        ("domain", "api.example.com"),
        ("certificate_arn", "certificate"),
        ("network", {"subnet_ids": ["subnet-0a1b"]}),
        ("network", {"subnet_ids": [], "security_group_ids": ["sg-0a1b"]}),
        ("nat_gateways", 1),
        ("packages_url", ""),
        ("packages_url", "http://mirror.example.com"),
        ("manifests_url", "https://mirror.example.com/"),
        ("archive_url", "https://mirror.example.com/a b"),
        ("image_mirror", "https://mirror.example.com"),
        ("cudo_url", "http://rest.compute.cudo.org"),
        ("cudo_dns_suffix", "https://clusters.example.com"),
        ("egress_addresses", "192.0.2.7/32"),
        ("egress_addresses", "192.0.2.7, 192.0.2.8"),
        ("agent_image", "python; true"),
        ("tofu_url", "http://mirror.example.com/tofu"),
        ("tofu_digest", "0" * 63),
    ],
)
def test_stage_config_error_names_key(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"^stages\.dev\.{key}[:.]"):
        load("dev", {"dev": {"issuer": ISSUER, key: value}})


def test_sources_of_machines_may_be_mirrors() -> None:
    mirrors = {
        "packages_url": "https://mirror.example.com/kubernetes",
        "archive_url": "https://mirror.example.com/ubuntu",
        "image_mirror": "mirror.example.com:5000/all",
        "cudo_dns_suffix": "clusters.example.com",
        "egress_addresses": "192.0.2.7,192.0.2.8",
        "manifests_url": "https://mirror.example.com/raw",
        "agent_image": f"mirror.example.com/python@sha256:{'0' * 64}",
        "tofu_url": "https://mirror.example.com/tofu",
        "tofu_digest": "0" * 64,
    }
    config = load("dev", {"dev": {"issuer": ISSUER, **mirrors}})
    assert {name: getattr(config, name) for name in mirrors} == mirrors


def test_the_bus_admits_an_organization_or_accounts_for_requests_alone() -> None:
    from stacks.constructs.triggers import admission  # the CDK starts node: whoever only collects need not wait for it

    assert admission(load("dev", {"dev": {"issuer": ISSUER}}), "aws", "BUS") is None
    organization = load("dev", {"dev": {"issuer": ISSUER, "event_organization": "o-0123456789"}})
    statement = admission(organization, "aws", "BUS")
    assert statement is not None
    assert (statement["Principal"], statement["Action"], statement["Resource"]) == ("*", "events:PutEvents", "BUS")
    conditions = {"events:source": "stockyard.request", "aws:PrincipalOrgID": "o-0123456789"}
    assert statement["Condition"] == {"StringEquals": conditions}
    most = load("dev", {"dev": {"issuer": ISSUER, "event_accounts": [f"{number:012}" for number in range(100)]}})
    listed = admission(most, "aws", f"arn:aws:events:ap-southeast-2:{'1' * 12}:event-bus/stockyard-abcdefghijkl")
    assert listed is not None
    assert listed["Principal"]["AWS"][0] == "arn:aws:iam::000000000000:root"
    assert len(json.dumps({"Version": "2012-10-17", "Statement": [listed]})) < 10_240, "a bus's policy"


def test_an_organization_and_accounts_exclude_each_other() -> None:
    both = {"issuer": ISSUER, "event_organization": "o-0123456789", "event_accounts": ["222222222222"]}
    with pytest.raises(ConfigError, match=r"^stages\.dev\.event_accounts: either"):
        load("dev", {"dev": both})


FRONT: dict[str, Any] = {
    "domain": "api.example.com",
    "region": "eu-west-1",
    "cloudfront": {
        "certificate_arn": "arn:aws:acm:us-east-1:111111111111:certificate/0a1b",
        "origin_key_hashes": ["0" * 64],
    },
}


def test_stage_config_reads_cloudfront() -> None:
    config = load("dev", {"dev": {"issuer": ISSUER, **FRONT}})
    assert config.cloudfront == CloudFront(FRONT["cloudfront"]["certificate_arn"], ("0" * 64,))
    assert (config.regional_domain, config.origin_key_hashes) == ("", ("0" * 64,))
    assert load("dev", {"dev": {"issuer": ISSUER}}).cloudfront is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cloudfront": "yes"}, "cloudfront: must be an object"),
        ({"cloudfront": {}}, "cloudfront.certificate_arn: missing"),
        ({"certificate_arn": "arn:aws:acm:eu-west-1:111111111111:certificate/0a1b"}, "cloudfront.certificate_arn: "),
        ({"origin_key_hashes": []}, "cloudfront.origin_key_hashes: missing"),
        ({"origin_key_hashes": ["0" * 64] * 3}, "cloudfront.origin_key_hashes: must be a list of 1 to 2"),
        ({"origin_key_hashes": ["the key itself"]}, "cloudfront.origin_key_hashes: 'the key itself' is not a SHA-256"),
        ({"address_limit": 99}, "cloudfront.address_limit: 99 is not a whole number"),
        ({"alarm_topic_arn": "arn:aws:sns:eu-west-1:111111111111:alarms"}, "cloudfront.alarm_topic_arn: "),
        ({"accept_direct": "perhaps"}, "cloudfront.accept_direct: "),
        ({"waf": True}, "cloudfront.waf: unknown key"),
        ({"domain": ""}, "domain: missing; cloudfront needs it"),
        ({"region": ""}, "region: missing; cloudfront needs it"),
        ({"accept_direct": True}, "domain: domain and certificate_arn go together"),
    ],
)
def test_stage_config_error_names_the_key_of_cloudfront(changes: dict[str, Any], message: str) -> None:
    whole = {key: value for key, value in changes.items() if key in FRONT}
    nested = {"cloudfront": {**FRONT["cloudfront"], **{k: v for k, v in changes.items() if k not in FRONT}}}
    with pytest.raises(ConfigError, match=rf"^stages\.dev\.{re.escape(message)}"):
        load("dev", {"dev": {"issuer": ISSUER, **FRONT, **nested, **whole}})


def test_production_with_cloudfront_needs_a_topic_there_and_no_regional_certificate() -> None:
    topic = "arn:aws:sns:{}:111111111111:alarms"
    stage = {"issuer": ISSUER, **FRONT, "alarm_topic_arn": topic.format("eu-west-1")}
    with pytest.raises(ConfigError, match=r"^stages\.prod\.cloudfront\.alarm_topic_arn: missing"):
        load("prod", {"prod": stage})
    own = {**FRONT["cloudfront"], "alarm_topic_arn": topic.format("us-east-1")}
    assert load("prod", {"prod": {**stage, "cloudfront": own}}).edge_topic_arn == own["alarm_topic_arn"]
    near = {**stage, "alarm_topic_arn": topic.format("us-east-1")}
    assert load("prod", {"prod": near}).edge_topic_arn == topic.format("us-east-1")


def test_stage_config_error_names_missing_issuer() -> None:
    with pytest.raises(ConfigError, match=r"^stages\.dev\.issuer: missing"):
        load("dev", {"dev": {}})


def test_unknown_stage_error_lists_known_stages() -> None:
    with pytest.raises(ConfigError, match=r"^stage: 'test' is not one of dev, prod"):
        load("test", {"prod": {}, "dev": {}})


@pytest.mark.parametrize("stage", ["a-b", "Dev", "averylongstage", "1st"])
def test_stage_name_refuses_hyphen(stage: str) -> None:
    with pytest.raises(ConfigError, match=r"^stage: "):
        load(stage, {stage: {"issuer": ISSUER}})


@pytest.mark.parametrize("stages", [None, {}, "dev"])
def test_missing_stages_object_is_refused(stages: object) -> None:
    with pytest.raises(ConfigError, match=r"^stages: "):
        load("dev", stages)


def test_stages_of_cdk_json_are_valid() -> None:
    stages = json.loads((Path(__file__).resolve().parents[2] / "cdk.json").read_text())["context"]["stages"]
    assert sorted(stages) == ["dev", "prod"]
    assert load("dev", stages).stage == "dev"
    with pytest.raises(ConfigError, match=r"^stages\.prod\.issuer: missing"):
        load("prod", stages)  # a placeholder would be deployed one day
    needed = {
        "domain": "api.example.com",
        "certificate_arn": "arn:aws:acm:us-east-1:111111111111:certificate/0a1b",
        "alarm_topic_arn": "arn:aws:sns:us-east-1:111111111111:alarms",
    }
    for name in needed:
        with pytest.raises(ConfigError, match=rf"^stages\.prod\.{name}: missing"):
            load("prod", stages, {"issuer": ISSUER, **{key: value for key, value in needed.items() if key != name}})
    prod = load("prod", stages, {"issuer": ISSUER, **needed})
    assert prod.log_retention_days > load("dev", stages).log_retention_days
