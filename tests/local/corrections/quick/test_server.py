"""One connection serves many requests to any service, with and without bodies."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
from moto.sts.responses import TokenResponse

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.quick.server import quick_server
from tests.harness.worlds.inprocess import credentials

SIGNED = "AWS4-HMAC-SHA256 Credential=AK/20260102/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=x"
FORM = {"Authorization": SIGNED.format("sts"), "Content-Type": "application/x-www-form-urlencoded"}
CALLER_IDENTITY_REQUEST = b"Action=GetCallerIdentity&Version=2011-06-15"


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    with ExitStack() as stack:
        stack.enter_context(quick_server())
        stack.enter_context(credentials(OWN_ACCOUNT))
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        stack.callback(server.stop)
        yield server.get_host_and_port()


def test_a_connection_is_kept_open(address: tuple[str, int]) -> None:
    connection = http.client.HTTPConnection(*address)
    connection.connect()
    socket = connection.sock
    for _ in range(3):
        connection.request("POST", "/", CALLER_IDENTITY_REQUEST, FORM)
        answer = connection.getresponse()
        assert b"GetCallerIdentityResult" in answer.read()
        assert connection.sock is socket
    connection.close()


def test_a_failed_request_leaves_the_connection_usable(
    address: tuple[str, int], capfd: pytest.CaptureFixture[str]
) -> None:
    connection = http.client.HTTPConnection(*address)
    with patch.object(TokenResponse, "get_caller_identity", side_effect=RuntimeError("no")):
        connection.request("POST", "/", CALLER_IDENTITY_REQUEST, FORM)
        answer = connection.getresponse()
        answer.read()
    assert answer.status == 500
    connection.request("POST", "/", CALLER_IDENTITY_REQUEST, FORM)
    answer = connection.getresponse()
    assert (answer.status, b"Account" in answer.read()) == (200, True)
    connection.close()


def test_requests_with_bodies_heads_and_without_bodies_are_answered(address: tuple[str, int]) -> None:
    url = "http://{}:{}".format(*address)
    objects: Any = boto3.client("s3", region_name=REGION, endpoint_url=url)
    objects.create_bucket(Bucket="things")
    objects.put_object(Bucket="things", Key="a", Body=b"x" * 100_000)
    assert objects.head_object(Bucket="things", Key="a")["ContentLength"] == 100_000
    assert objects.get_object(Bucket="things", Key="a")["Body"].read() == b"x" * 100_000
    assert objects.delete_object(Bucket="things", Key="a")["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert objects.list_objects_v2(Bucket="things")["KeyCount"] == 0
    objects.close()
