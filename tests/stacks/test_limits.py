"""Limits of AWS are looked at when a stage is synthesized, so that neither its deployment fails nor people who wait."""

from __future__ import annotations

from typing import Any

import pytest

import app
from stacks import issuer
from stacks.config import NEEDED, StageConfig, load
from stacks.constructs import triggers
from stacks.environment import MOST_BYTES, check_size, size_of, variables
from stacks.errors import ConfigError
from stacks.functions import most_waits
from stacks.node import use_bundled_node

ISSUER = "https://id.example.com/realms/stockyard"


def config(**values: Any) -> StageConfig:
    return load("dev", {"dev": {"issuer": ISSUER, **values}})


def test_at_most_a_fifth_of_the_functions_of_an_account_wait_for_news() -> None:
    """Ten followers must not stop a new account, which runs ten functions at a time."""
    assert [most_waits(200, quota) for quota in (0, 10, 100, 1_000, 10_000)] == [2, 2, 20, 200, 200]
    waits = {quota: variables(config(concurrency_quota=quota), "records", "https://x") for quota in (0, 1_000)}
    names = ("STOCKYARD_WAITS", "STOCKYARD_TENANT_WAITS")
    assert [[waits[quota][name] for name in names] for quota in (0, 1_000)] == [["2", "2"], ["200", "20"]]
    read = config(account_concurrency=100)
    assert variables(read, "records", "https://x")["STOCKYARD_WAITS"] == "20"
    assert read.concurrency_quota == 0, "what is read is not kept for anybody"


def test_an_environment_that_aws_does_not_take_is_refused() -> None:
    environment = variables(config(), "records", "https://${Token[TOKEN.1]}.example.com")
    assert size_of(environment) < MOST_BYTES * 0.85, "there is room for settings that are long"
    assert size_of({"A": "${Token[TOKEN.123]}"}) == 65
    check_size("dev", "records", {"A": "x" * (MOST_BYTES - 1)})
    with pytest.raises(ConfigError, match=r"stages.dev: the environment of the function records has 4097 bytes.*BIG"):
        check_size("dev", "records", {"BIG": "x" * (MOST_BYTES - 2)})


def test_a_sixth_filter_of_the_tables_stream_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = object.__new__(triggers.Triggers)
    with pytest.raises(ConfigError, match="scheduler: 6 filters of the table's stream, and AWS takes 5"):
        reader._read(None, "scheduler", [{}] * 6, batch=1, age=None)


@pytest.mark.parametrize(("stage", "level"), [("dev", "ALL"), ("prod", "ERROR")])
def test_workflows_of_production_log_what_fails(stage: str, level: str) -> None:
    use_bundled_node()
    from aws_cdk import App, Stack, assertions
    from aws_cdk import aws_lambda as lambda_

    from stacks.constructs.workflows import Workflows
    from stacks.names import RUNNERS

    needed = {"domain": "api.example.com", "certificate_arn": "arn:aws:acm:us-east-1:111111111111:certificate/x"}
    topic = {"alarm_topic_arn": "arn:aws:sns:us-east-1:111111111111:alarms"} if stage in NEEDED else {}
    named = load(stage, {stage: {"issuer": ISSUER, **needed, **topic}})
    stack = Stack(App(analytics_reporting=False), "Probe")
    functions = {
        name: lambda_.Function.from_function_arn(stack, name, f"arn:aws:lambda:us-east-1:111111111111:function:{name}")
        for name in set(RUNNERS.values())
    }
    Workflows(stack, "Workflows", config=named, functions=functions)
    machines = assertions.Template.from_stack(stack).find_resources("AWS::StepFunctions::StateMachine")
    assert {machine["Properties"]["LoggingConfiguration"]["Level"] for machine in machines.values()} == {level}


@pytest.mark.parametrize("region", ["us-gov-west-1", "cn-north-1", "us-iso-east-1"])
def test_a_stage_of_another_partition_is_refused(
    region: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match="commercial regions alone"):
        config(region=region)
    monkeypatch.setenv("CDK_DEFAULT_REGION", region)
    monkeypatch.setattr(app, "load", lambda *_: config())
    monkeypatch.setattr(issuer, "check", lambda _: None)
    assert app.main() == 2
    assert f"region: {region} is refused" in capsys.readouterr().err
