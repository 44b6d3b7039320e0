"""The concurrency of the account is read when a stage is deployed, and a deployment goes on without it."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError
from botocore.stub import Stubber

import app
from stacks import concurrency, issuer
from stacks.config import StageConfig, load

ACCOUNT, OTHER = "111111111111", "222222222222"
DEPLOYED = {"CDK_DEFAULT_ACCOUNT": ACCOUNT, "CDK_DEFAULT_REGION": "eu-west-1"}
NOWHERE = {"account": "", "region": ""}


def test_the_account_and_region_of_the_deployment_are_asked() -> None:
    regions: list[str] = []

    def read(region: str) -> tuple[str, int]:
        regions.append(region)
        return ACCOUNT, 10

    assert concurrency.of_account(NOWHERE, DEPLOYED, read) == 10
    assert concurrency.of_account({"account": ACCOUNT, "region": "us-east-1"}, DEPLOYED, read) == 10
    assert regions == ["eu-west-1", "us-east-1"]


def test_nothing_is_asked_where_nothing_is_deployed(capsys: pytest.CaptureFixture[str]) -> None:
    def refused(region: str) -> tuple[str, int]:
        raise AssertionError(region)

    assert concurrency.of_account(NOWHERE, {}, refused) == 0
    assert capsys.readouterr().err == ""


def test_a_deployment_goes_on_without_the_number_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def denied(region: str) -> tuple[str, int]:
        raise NoCredentialsError

    for read, reason in ((denied, "NoCredentialsError"), (lambda _: (OTHER, 1_000), f"of {OTHER}")):
        assert concurrency.of_account(NOWHERE, DEPLOYED, read) == 0
        errors = capsys.readouterr().err
        assert reason in errors
        assert "-c account_concurrency=" in errors


def test_lambda_and_sts_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    import boto3

    clients = {name: boto3.client(name, "eu-west-1", aws_access_key_id="a", aws_secret_access_key="b")
               for name in ("sts", "lambda")}  # fmt: skip
    answers: dict[str, tuple[str, dict[str, Any]]] = {
        "sts": ("get_caller_identity", {"Account": ACCOUNT}),
        "lambda": ("get_account_settings", {"AccountLimit": {"ConcurrentExecutions": 400}}),
    }
    stubs = [Stubber(clients[name]) for name in answers]
    for stub, (operation, answer) in zip(stubs, answers.values(), strict=True):
        stub.add_response(operation, answer)
        stub.activate()
    monkeypatch.setattr(boto3, "client", lambda name, **_: clients[name])
    assert concurrency.read_from_aws("eu-west-1") == (ACCOUNT, 400)


@pytest.mark.parametrize(
    ("settings", "built"), [({}, 400), ({"account_concurrency": 50}, 50), ({"concurrency_quota": 600}, 600)]
)
def test_the_app_builds_with_what_was_read_or_with_the_setting(
    settings: dict[str, Any], built: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = load("dev", {"dev": {"issuer": "https://id.example.com/realms/stockyard", **settings}})
    configs: list[StageConfig] = []
    monkeypatch.setattr(app, "load", lambda *_: stage)
    monkeypatch.setattr(issuer, "check", lambda _: None)
    monkeypatch.setattr(concurrency, "of_account", lambda *_: 400)
    from stacks import application

    monkeypatch.setattr(application, "build", lambda _, config, **__: configs.append(config))
    assert app.main() == 0
    assert [config.concurrency for config in configs] == [built]
