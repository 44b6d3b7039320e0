"""Assumed roles: cached per account and external id, renewed in time, never shared between tenants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import boto3
import pytest
from botocore.exceptions import ClientError

from stockyard.errors import CredentialsRevoked, InvalidInput, VendorThrottled
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.cloud import AwsCloud
from stockyard.providers.clouds.aws.sessions import ONCE, RETRYING, SLOW, Sessions
from tests.harness.worlds.stage import Stage


class _Sts:
    """STS of a role that trusts one external id; ``None`` trusts everybody."""

    region_name = "us-east-1"

    def __init__(self, trusted: str | None, code: str = "AccessDenied") -> None:
        self.trusted, self.code = trusted, code
        self.calls: list[dict[str, Any]] = []

    def client(self, *_: Any, **__: Any) -> _Sts:
        return self

    def assume_role(self, **parameters: Any) -> dict[str, Any]:
        self.calls.append(parameters)
        if self.trusted is not None and parameters.get("ExternalId") != self.trusted:
            message = "User: arn:aws:sts::111111111111:assumed-role/Stockyard-X/x is not authorized"
            raise ClientError({"Error": {"Code": self.code, "Message": message}}, "AssumeRole")
        return {"Credentials": {"AccessKeyId": "A", "SecretAccessKey": "B", "SessionToken": "C"}}


def _sessions(sts: _Sts, clock: Any = lambda: 0.0) -> Sessions:
    return Sessions(lambda: sts, clock)


def test_session_is_cached_until_shortly_before_expiry(yard: Any) -> None:
    sts, now = _Sts("ext-1"), [0.0]
    sessions = _sessions(sts, lambda: now[0])
    first = sessions.of(yard.account, "op_1")
    assert sessions.of(yard.account, "op_1") is first
    now[0] = 3001.0
    assert sessions.of(yard.account, "op_1") is not first
    assert [call["RoleSessionName"] for call in sts.calls] == ["op_1", "op_1"]


def test_cached_session_is_not_used_for_other_external_id(yard: Any) -> None:
    sts = _Sts("ext-1")
    sessions = _sessions(sts)
    sessions.of(yard.account, "op_1")
    with pytest.raises(CredentialsRevoked):
        sessions.of(replace(yard.account, external_id="guessed"), "op_1")


def test_throttling_is_not_a_revoked_role(yard: Any) -> None:
    with pytest.raises(VendorThrottled):
        _sessions(_Sts("other", "Throttling")).of(yard.account, "op_1")


def test_only_repeatable_calls_are_retried() -> None:
    retrying, once = vars(RETRYING), vars(ONCE)
    assert retrying["_user_provided_options"]["retries"] == {"mode": "standard", "total_max_attempts": 3}
    assert once["_user_provided_options"]["retries"] == {"mode": "standard", "total_max_attempts": 1}
    assert retrying["_user_provided_options"]["connect_timeout"] == 5
    assert retrying["_user_provided_options"]["read_timeout"] == 20


@pytest.mark.parametrize(
    ("trusted", "complaint"),
    [("ext-1", None), (None, "without the external id"), ("other", "cannot be assumed")],
)
def test_verification_requires_role_that_checks_external_id(
    yard: Any, trusted: str | None, complaint: str | None
) -> None:
    sts = _Sts(trusted)
    verification = AwsCloud(Stage(), lambda: sts).verify(yard.account, "acme")
    assert (verification.works, (complaint or "only with the external id") in verification.message) == (
        complaint is None,
        True,
    )


def test_verification_tells_nothing_of_our_own_account(yard: Any) -> None:
    sts = _Sts("other", "AccessDenied")
    message = AwsCloud(Stage(), lambda: sts).verify(yard.account, "acme").message
    assert "(AccessDenied)" in message
    assert "111111111111" not in message
    assert "Stockyard-X" not in message


def test_regions_are_those_of_aws(yard: Any) -> None:
    cloud = AwsCloud(Stage(), boto3.Session)
    for region in ("us-east-1", "eu-central-2", "cn-north-1", "us-gov-west-1"):
        cloud.check_attributes({**yard.account.attributes, "region": region})
    with pytest.raises(InvalidInput, match="no region aa-aaa-1"):
        cloud.check_attributes({**yard.account.attributes, "region": "aa-aaa-1"})


def test_verification_names_missing_role(yard: Any) -> None:
    yard.account.attributes.clear()
    assert "no role_arn" in AwsCloud(Stage(), boto3.Session).verify(yard.account, "acme").message


def test_calls_for_machines_wait_longer_than_others(yard: Any) -> None:
    chosen_configs: list[object] = []

    class Recorder:
        def get(self, _service: str, _region: str, config: object = RETRYING) -> Any:
            chosen_configs.append(config)
            return MagicMock()

    calls = Calls(Recorder(), "us-east-1")
    for operation in ("create_fleet", "run_instances", "create_vpc", "describe_vpcs"):
        calls.call("ec2", operation)
    assert chosen_configs == [SLOW, SLOW, ONCE, RETRYING]
