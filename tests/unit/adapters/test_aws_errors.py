"""The table of AWS codes and our errors."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError

from stockyard.adapters.aws_errors import by_code, translate, translated
from stockyard.errors import (
    PermissionDenied,
    VendorConflict,
    VendorError,
    VendorNotFound,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
    VendorUnavailable,
)


def _refusal(code: str, status: int = 400) -> ClientError:
    answer = {"Error": {"Code": code, "Message": "words"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "PutEvents")


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("ThrottlingException", 400, VendorThrottled),
        ("AccessDeniedException", 400, PermissionDenied),
        ("ResourceNotFoundException", 400, VendorNotFound),
        ("ConcurrentModificationException", 400, VendorConflict),
        ("InternalFailure", 500, VendorUnavailable),
        ("NeverHeardOf", 400, VendorRefused),
        ("NeverHeardOf", 503, VendorUnavailable),
        ("NeverHeardOf", 429, VendorThrottled),
    ],
)
def test_codes(code: str, status: int, expected: type[VendorError]):
    error = translate(_refusal(code, status))
    assert type(error) is expected
    assert (error.code, error.detail) == (code, "PutEvents: words")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ReadTimeoutError(endpoint_url="https://x"), VendorTimeout),
        (ConnectTimeoutError(endpoint_url="https://x"), VendorTimeout),
        (EndpointConnectionError(endpoint_url="https://x"), VendorUnavailable),
        (NoCredentialsError(), VendorUnavailable),
        (ResponseParserError("not well-formed"), VendorUnavailable),
    ],
)
def test_calls_that_got_no_answer(error: BotoCoreError | ResponseParserError, expected: type[VendorError]):
    with pytest.raises(VendorError) as caught, translated():
        raise error
    assert type(caught.value) is expected


def test_other_errors_pass_through():
    with pytest.raises(KeyError), translated():
        raise KeyError("mine")


def test_an_entry_without_a_status_is_refused():
    assert type(by_code("MalformedDetail", "no")) is VendorRefused
