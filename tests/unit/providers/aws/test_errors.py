"""The table of vendor errors."""

from __future__ import annotations

from typing import Any

import pytest
from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from stockyard import errors as ours
from stockyard.providers.aws.errors import translate, translated

ROWS = [
    ("RequestLimitExceeded", "", 503, ours.VendorThrottled),
    ("Throttling", "", 400, ours.VendorThrottled),
    ("ThrottlingException", "", 400, ours.VendorThrottled),
    ("InsufficientInstanceCapacity", "", 500, ours.InsufficientCapacity),
    ("VcpuLimitExceeded", "", 400, ours.VendorQuotaExceeded),
    ("VpcLimitExceeded", "", 400, ours.VendorQuotaExceeded),
    ("AddressLimitExceeded", "", 400, ours.VendorQuotaExceeded),
    ("TooManyLoadBalancers", "", 400, ours.VendorQuotaExceeded),
    ("UnauthorizedOperation", "", 403, ours.PermissionDenied),
    ("AccessDenied", "", 403, ours.PermissionDenied),
    ("AccessDeniedException", "", 400, ours.PermissionDenied),
    ("AuthFailure", "", 401, ours.CredentialsRevoked),
    ("InvalidClientTokenId", "", 403, ours.CredentialsRevoked),
    ("ExpiredToken", "", 403, ours.CredentialsRevoked),
    ("InvalidVpcID.NotFound", "", 400, ours.VendorNotFound),
    ("InvalidKeyPair.NotFound", "", 400, ours.VendorNotFound),
    ("NatGatewayNotFound", "", 400, ours.VendorNotFound),
    ("NoSuchEntity", "", 404, ours.VendorNotFound),
    ("LoadBalancerNotFound", "", 400, ours.VendorNotFound),
    ("ParameterNotFound", "", 400, ours.VendorNotFound),
    ("DependencyViolation", "", 400, ours.VendorConflict),
    ("DeleteConflict", "", 409, ours.VendorConflict),
    ("ResourceInUse", "", 400, ours.VendorConflict),
    ("VolumeInUse", "", 400, ours.VendorConflict),
    ("IncorrectState", "", 400, ours.VendorConflict),
    ("ConcurrentModification", "", 409, ours.VendorConflict),
    ("InvalidParameterValue", "Value (x) for parameter iamInstanceProfile.name is invalid. "
     "Invalid IAM Instance Profile name", 400, ours.NotYetVisible),
    ("InvalidParameterValue", "the CIDR is bad", 400, ours.VendorRefused),
    ("InvalidAMIID.Malformed", "", 400, ours.VendorRefused),
    ("EntityAlreadyExists", "", 409, ours.VendorRefused),
    ("IdempotentParameterMismatch", "", 400, ours.NotYetVisible),
    ("Unsupported", "", 400, ours.VendorRefused),
    ("InternalError", "", 500, ours.VendorUnavailable),
    ("Strange", "", 502, ours.VendorUnavailable),
    ("Strange", "", 429, ours.VendorThrottled),
    ("Strange", "", 400, ours.VendorRefused),
]  # fmt: skip


@pytest.mark.parametrize(("code", "message", "status", "expected"), ROWS)
def test_each_answer_has_one_meaning(code: str, message: str, status: int, expected: type[Exception]) -> None:
    answer: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    found = translate(boto.ClientError(answer, "RunInstances"), "ec2 run_instances")
    assert type(found) is expected
    assert found.code == code
    assert found.hint
    assert found.detail.startswith("ec2 run_instances: ")


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (boto.ConnectTimeoutError(endpoint_url="https://x"), ours.VendorTimeout),
        (boto.ReadTimeoutError(endpoint_url="https://x"), ours.VendorTimeout),
        (boto.EndpointConnectionError(endpoint_url="https://x"), ours.VendorUnavailable),
        (boto.ConnectionClosedError(endpoint_url="https://x"), ours.VendorUnavailable),
        (ResponseParserError("not well-formed"), ours.VendorUnavailable),
        (boto.NoCredentialsError(), ours.CredentialsRevoked),
        (boto.ParamValidationError(report="bad"), ours.VendorRefused),
    ],
)
def test_what_never_became_an_answer_has_a_meaning_too(raised: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected), translated("sts assume_role"):
        raise raised
