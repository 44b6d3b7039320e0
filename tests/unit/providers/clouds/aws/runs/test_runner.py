"""Builds of CodeBuild: what is asked for, what their logs show, and what refusals mean. See the contract of runners."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from stockyard.errors import NotYetVisible, PermissionDenied, VendorThrottled, VendorUnavailable
from stockyard.providers.clouds import aws
from stockyard.providers.clouds.aws.runs import names
from stockyard.providers.clouds.aws.runs.runner import session_policy
from stockyard.providers.descriptors import ProviderTools
from tests.harness.runs.accounts import account, runner_account
from tests.harness.runs.worlds import MOST_SECONDS, PREFIX, CodeBuildWorld, start, zipped
from tests.harness.worlds.memory import MemorySecrets

HERE = runner_account("acme")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CodeBuildWorld]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("CANARY", "canary-of-the-parent")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    built = CodeBuildWorld(tmp_path)
    built.with_machines(HERE)
    yield built
    built.close()


def test_program_reaches_the_build_byte_for_byte_and_its_token_no_log(world: CodeBuildWorld):
    build = world.runner.start(HERE, start())
    world.until(HERE, build, "ended")
    lines = world.runner.log(HERE, build)
    assert f"program {hashlib.sha256(zipped()).hexdigest()}" in lines
    assert "token (hidden)" in lines
    assert "canary" not in str(lines)
    (environment,) = [line.split()[1:] for line in lines if line.startswith("environment ")]
    expected = {"ACT", "HOME", "LANG", "PATH", "STOCKYARD_RUN_TOKEN", "STOCKYARD_TOFU", "TMPDIR"}
    expected |= {"AWS_DEFAULT_REGION", "AWS_REGION", "CODEBUILD_BUILD_ID"}
    # the shell and Python set these
    assert set(environment) - {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"} == expected


def test_secrets_of_the_account_reach_the_program_and_no_log(world: CodeBuildWorld):
    store = world.client(HERE, "secretsmanager")
    store.create_secret(Name="stockyard-runs/dns", SecretString='{"user": "u", "password": "canary-password"}')
    named = replace(start(), secret_variables={"SECRET": "stockyard-runs/dns:password"})
    build = world.runner.start(HERE, named)
    world.until(HERE, build, "ended")
    assert "secret ***" in world.runner.log(HERE, build)
    assert not [line for line in world.runner.log(HERE, build) if "canary" in line or line.startswith("[Container]")]
    other = world.runner.start(HERE, replace(start("run_2"), secret_variables={"SECRET": "stockyard-runs/none"}))
    assert "can't find the specified secret" in str(world.until(HERE, other, "ended").reason)


def test_lines_are_there_while_the_program_runs(world: CodeBuildWorld):
    build = world.runner.start(HERE, start(act="wait"))
    world.until(HERE, build, "running")
    end = time.monotonic() + MOST_SECONDS
    while "begun" not in world.runner.log(HERE, build):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert world.runner.state(HERE, build).phase == "running"


def test_build_has_its_limits_and_a_session_for_its_project_alone(world: CodeBuildWorld):
    policies: list[str] = []
    original = world.sessions.of

    def of(account: Any, name: str, tenant: str = "", policy: str = "") -> Any:
        policies.append(policy)
        return original(account, name, tenant, policy)

    with patch.object(world.sessions, "of", of):
        build = world.runner.start(HERE, start())
        world.runner.state(HERE, build)
        world.runner.log(HERE, build)
        world.runner.stop(HERE, build)
    (document,) = world.client(HERE).batch_get_builds(ids=[build])["builds"]
    assert (document["timeoutInMinutes"], document["queuedTimeoutInMinutes"]) == (5, 60)
    assert set(policies) == {session_policy(HERE, PREFIX)}
    project = names.project_name(HERE.account, PREFIX)
    statements = json.loads(policies[0])["Statement"]
    assert [statement["Resource"] for statement in statements] == [
        f"arn:aws:codebuild:eu-central-1:123456789012:project/{project}",
        f"arn:aws:logs:eu-central-1:123456789012:log-group:/stockyard/{project}:log-stream:*",
    ]
    assert len(policies[0]) < 2048


def test_each_registration_of_an_account_has_a_project_of_its_own():
    first, second = account("1"), account("2")
    object.__setattr__(second, "external_id", "external-2")
    assert names.project_name(first, PREFIX) != names.project_name(second, PREFIX)
    assert len(names.role_name(first, "stockyard-" + "x" * 20, "ap-southeast-1")) <= 64


@pytest.mark.parametrize(
    ("code", "text", "error", "words"),
    [
        ("AccountLimitExceededException", "Cannot have more than 0 builds in queue", VendorThrottled, "quota"),
        ("AccessDeniedException", "User is not authorized", PermissionDenied, "project stockyard-test-runs-"),
        ("ResourceNotFoundException", "Project cannot be found: arn:x", PermissionDenied, "no project"),
        ("ThrottlingException", "Rate exceeded", VendorThrottled, "Rate"),
        ("InvalidInputException", "Idempotency parameter mismatch", NotYetVisible, "mismatch"),
        ("InternalFailure", "fault", VendorUnavailable, "fault"),
    ],
)
def test_refusals_of_a_start_are_explained(world: CodeBuildWorld, code: str, text: str, error: Any, words: str):
    original: Any = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(client: Any, operation: str, parameters: Any) -> Any:
        if operation == "StartBuild":
            raise ClientError({"Error": {"Code": code, "Message": text}}, operation)
        return original(client, operation, parameters)

    with patch.object(BaseClient, "_make_api_call", call), pytest.raises(error, match=words) as raised:
        world.runner.start(HERE, start())
    if error is PermissionDenied:
        assert "stockyard account template 1 --runs" in raised.value.hint
        assert "eu-central-1" in raised.value.hint


def test_log_that_may_not_be_read_leaves_what_codebuild_says(world: CodeBuildWorld):
    build = world.runner.start(HERE, start(act="fail"))
    assert world.until(HERE, build, "ended").reason == "The build failed: exit status 3"
    original: Any = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(client: Any, operation: str, parameters: Any) -> Any:
        if operation == "GetLogEvents":
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, operation)
        return original(client, operation, parameters)

    with patch.object(BaseClient, "_make_api_call", call):
        assert world.runner.log(HERE, build) == ["The build failed: exit status 3"]


def test_a_runner_is_made_from_the_settings_of_the_installation():
    settings = SimpleNamespace(name_prefix=PREFIX, tofu_url="https://mirror.example/tofu", tofu_digest="")
    assert type(aws.runner(ProviderTools(settings, MemorySecrets))).__name__ == "CodeBuildRunner"
