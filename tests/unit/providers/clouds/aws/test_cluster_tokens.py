"""Tokens of EKS clusters: what is signed, with which moment, and for how long."""

from __future__ import annotations

import base64
import logging
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from botocore.exceptions import ClientError

from local.aws import signatures
from stockyard.errors import CredentialsRevoked, VendorThrottled
from stockyard.providers.clouds.aws import cluster_tokens
from stockyard.providers.clouds.aws.calls import Calls

NOW = datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC)
KEYS = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "secret/key+", "SessionToken": "to/ken+of=session=="}


def decoded(token: str) -> Any:
    assert token.startswith("k8s-aws-v1.")
    encoded = token.removeprefix("k8s-aws-v1.")
    assert "=" not in encoded
    return urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())


def test_a_token_is_a_presigned_request_that_names_the_cluster():
    url = decoded(cluster_tokens.presign(KEYS, "demo-eks-1a2b3", "eu-west-1", NOW))
    assert (url.scheme, url.netloc, url.path) == ("https", "sts.eu-west-1.amazonaws.com", "/")
    query = dict(parse_qsl(url.query))
    assert query.pop("X-Amz-Signature")
    assert query == {
        "Action": "GetCallerIdentity",
        "Version": "2011-06-15",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": "ASIAEXAMPLE/20260301/eu-west-1/sts/aws4_request",
        "X-Amz-Date": "20260301T123005Z",
        "X-Amz-Expires": "60",
        "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
        "X-Amz-Security-Token": KEYS["SessionToken"],
    }


@pytest.mark.parametrize(
    ("cluster", "secret", "holds"),
    [("demo", KEYS["SecretAccessKey"], True), ("other", KEYS["SecretAccessKey"], False), ("demo", "other", False)],
)
def test_the_signature_is_of_this_cluster_and_this_key(cluster: str, secret: str, holds: bool):
    url = decoded(cluster_tokens.presign(KEYS, "demo", "eu-west-1", NOW))
    headers = {"x-k8s-aws-id": cluster}
    assert signatures.holds(url.netloc, url.path, url.query, headers, secret) is holds


def test_keys_of_a_user_have_no_session():
    url = decoded(cluster_tokens.presign({"AccessKeyId": "A", "SecretAccessKey": "B"}, "demo", "eu-west-1", NOW))
    assert "X-Amz-Security-Token" not in url.query


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-east-1", "sts.us-east-1.amazonaws.com"),
        ("cn-north-1", "sts.cn-north-1.amazonaws.com.cn"),
        ("us-gov-west-1", "sts.us-gov-west-1.amazonaws.com"),
    ],
)
def test_the_host_is_that_of_the_region(region: str, host: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert decoded(cluster_tokens.presign(KEYS, "demo", region, NOW)).netloc == host


def test_a_token_ends_with_its_date_or_its_session():
    ends = NOW + timedelta(minutes=14)
    assert cluster_tokens.expires_at(KEYS, NOW) == ends
    assert cluster_tokens.expires_at({**KEYS, "Expiration": NOW + timedelta(hours=1)}, NOW) == ends
    early = {**KEYS, "Expiration": NOW + timedelta(minutes=10)}
    assert cluster_tokens.expires_at(early, NOW) == NOW + timedelta(minutes=9)


def test_no_log_has_what_is_signed(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    url = decoded(cluster_tokens.presign(KEYS, "demo", "eu-west-1", NOW))
    query = dict(parse_qsl(url.query))
    for text in (KEYS["SecretAccessKey"], KEYS["SessionToken"], query["X-Amz-Signature"], "ASIAEXAMPLE"):
        assert text not in caplog.text


class _Sts:
    """STS as a client of a session has it."""

    def __init__(self, code: str = "") -> None:
        self.code, self.calls = code, []  # type: tuple[str, list[dict[str, Any]]]

    def get(self, *_: Any) -> _Sts:
        return self

    def assume_role(self, **parameters: Any) -> dict[str, Any]:
        self.calls.append(parameters)
        if self.code:
            raise ClientError({"Error": {"Code": self.code, "Message": "no"}}, "AssumeRole")
        return {"Credentials": {**KEYS, "Expiration": NOW + timedelta(seconds=900)}}


def test_a_role_is_assumed_for_a_quarter_of_an_hour():
    sts = _Sts()
    keys = cluster_tokens.role_keys(Calls(sts, "eu-west-1"), "arn:aws:iam::1:role/r", "ann smith@example.test")
    assert keys["AccessKeyId"] == "ASIAEXAMPLE"
    assert sts.calls == [
        {"RoleArn": "arn:aws:iam::1:role/r", "RoleSessionName": "ann-smith@example.test", "DurationSeconds": 900}
    ]


@pytest.mark.parametrize("name", ["", "a", "ä" * 80, "é/ü", "x" * 200])
def test_any_name_makes_a_name_of_a_session(name: str):
    sts = _Sts()
    cluster_tokens.role_keys(Calls(sts, "eu-west-1"), "arn", name)
    session = sts.calls[0]["RoleSessionName"]
    assert 2 <= len(session) <= 64
    assert session.isascii()
    assert all(c.isalnum() or c in "+=,.@-_" for c in session)


@pytest.mark.parametrize(
    ("code", "leaf"),
    [("AccessDenied", CredentialsRevoked), ("NoSuchEntity", CredentialsRevoked), ("Throttling", VendorThrottled)],
)
def test_a_role_that_cannot_be_assumed(code: str, leaf: type[Exception]):
    with pytest.raises(leaf):
        cluster_tokens.role_keys(Calls(_Sts(code), "eu-west-1"), "arn:aws:iam::1:role/r", "ann")
