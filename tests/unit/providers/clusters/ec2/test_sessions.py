"""Assumed roles: cached per account and external id, renewed in time, never shared between tenants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from stockyard.errors import CredentialsRevoked, VendorThrottled
from stockyard.providers.aws.sessions import ONCE, RETRYING, Sessions
from stockyard.providers.clusters.ec2.verify import Ec2AccountVerifier


class _Sts:
    """STS of a role that trusts one external id; ``None`` trusts everybody."""

    region_name = "us-east-1"

    def __init__(self, trusted: str | None, code: str = "AccessDenied") -> None:
        self.trusted, self.code = trusted, code
        self.calls: list[dict[str, Any]] = []

    def client(self, *_: Any, **__: Any) -> _Sts:
        return self

    def assume_role(self, **asked: Any) -> dict[str, Any]:
        self.calls.append(asked)
        if self.trusted is not None and asked.get("ExternalId") != self.trusted:
            raise ClientError({"Error": {"Code": self.code, "Message": "no"}}, "AssumeRole")
        return {"Credentials": {"AccessKeyId": "A", "SecretAccessKey": "B", "SessionToken": "C"}}


def _sessions(sts: _Sts, clock: Any = lambda: 0.0) -> Sessions:
    return Sessions(lambda: sts, clock)  # type: ignore[arg-type, return-value]


def test_a_session_is_kept_until_shortly_before_it_ends(yard: Any) -> None:
    sts, now = _Sts("ext-1"), [0.0]
    sessions = _sessions(sts, lambda: now[0])
    first = sessions.of(yard.account, "op_1")
    assert sessions.of(yard.account, "op_1") is first
    now[0] = 3001.0
    assert sessions.of(yard.account, "op_1") is not first
    assert [call["RoleSessionName"] for call in sts.calls] == ["op_1", "op_1"]


def test_another_external_id_never_gets_a_kept_session(yard: Any) -> None:
    sts = _Sts("ext-1")
    sessions = _sessions(sts)
    sessions.of(yard.account, "op_1")
    with pytest.raises(CredentialsRevoked):
        sessions.of(replace(yard.account, external_id="guessed"), "op_1")


def test_throttling_is_not_taken_for_a_revoked_role(yard: Any) -> None:
    with pytest.raises(VendorThrottled):
        _sessions(_Sts("other", "Throttling")).of(yard.account, "op_1")


def test_one_layer_retries_and_calls_that_make_one_more_do_not() -> None:
    retrying, once = vars(RETRYING), vars(ONCE)
    assert retrying["_user_provided_options"]["retries"] == {"mode": "standard", "total_max_attempts": 3}
    assert once["_user_provided_options"]["retries"] == {"mode": "standard", "total_max_attempts": 1}
    assert retrying["_user_provided_options"]["connect_timeout"] == 5
    assert retrying["_user_provided_options"]["read_timeout"] == 20


@pytest.mark.parametrize(
    ("trusted", "complaint"),
    [("ext-1", None), (None, "without the external id"), ("other", "cannot be assumed")],
)
def test_verification_needs_the_role_to_work_only_with_the_external_id(
    yard: Any, trusted: str | None, complaint: str | None
) -> None:
    sts = _Sts(trusted)
    found = Ec2AccountVerifier(lambda: sts).verify(yard.account, "acme")  # type: ignore[arg-type, return-value]
    assert (found is None) if complaint is None else (complaint in str(found))


def test_verification_says_that_there_is_no_role(yard: Any) -> None:
    yard.account.attributes.clear()
    assert "no role_arn" in str(Ec2AccountVerifier(boto3.Session).verify(yard.account, "acme"))
