"""Each error code and failed call of AWS becomes one of the product's vendor errors."""

from __future__ import annotations

from typing import Any

import pytest
from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from stockyard import errors
from stockyard.providers.clouds.aws.errors import classify, translate, translated

ROWS = [
    ("RequestLimitExceeded", "", 503, errors.VendorThrottled),
    ("Throttling", "", 400, errors.VendorThrottled),
    ("ThrottlingException", "", 400, errors.VendorThrottled),
    ("InsufficientInstanceCapacity", "", 500, errors.InsufficientCapacity),
    ("VcpuLimitExceeded", "", 400, errors.VendorQuotaExceeded),
    ("VpcLimitExceeded", "", 400, errors.VendorQuotaExceeded),
    ("AddressLimitExceeded", "", 400, errors.VendorQuotaExceeded),
    ("TooManyLoadBalancers", "", 400, errors.VendorQuotaExceeded),
    ("UnauthorizedOperation", "", 403, errors.PermissionDenied),
    ("AccessDenied", "", 403, errors.PermissionDenied),
    ("AccessDeniedException", "", 400, errors.PermissionDenied),
    ("AuthFailure", "", 401, errors.CredentialsRevoked),
    ("InvalidClientTokenId", "", 403, errors.CredentialsRevoked),
    ("ExpiredToken", "", 403, errors.CredentialsRevoked),
    ("InvalidVpcID.NotFound", "", 400, errors.VendorNotFound),
    ("InvalidKeyPair.NotFound", "", 400, errors.VendorNotFound),
    ("NatGatewayNotFound", "", 400, errors.VendorNotFound),
    ("NoSuchEntity", "", 404, errors.VendorNotFound),
    ("LoadBalancerNotFound", "", 400, errors.VendorNotFound),
    ("ParameterNotFound", "", 400, errors.VendorNotFound),
    ("DependencyViolation", "", 400, errors.VendorConflict),
    ("DeleteConflict", "", 409, errors.VendorConflict),
    ("ResourceInUse", "", 400, errors.VendorConflict),
    ("VolumeInUse", "", 400, errors.VendorConflict),
    ("IncorrectState", "", 400, errors.VendorConflict),
    ("ConcurrentModification", "", 409, errors.VendorConflict),
    ("InvalidParameterValue", "Value (x) for parameter iamInstanceProfile.name is invalid. "
     "Invalid IAM Instance Profile name", 400, errors.NotYetVisible),
    ("InvalidParameterValue", "the CIDR is bad", 400, errors.VendorRefused),
    ("InvalidAMIID.Malformed", "", 400, errors.VendorRefused),
    ("EntityAlreadyExists", "", 409, errors.VendorRefused),
    ("IdempotentParameterMismatch", "", 400, errors.NotYetVisible),
    ("Unsupported", "", 400, errors.VendorRefused),
    ("InvalidCapacityReservationId.Malformed", "", 400, errors.VendorNotFound),
    ("ValidationError", "Instance Id not found - No managed instance found for instance ID i-1", 400,
     errors.VendorNotFound),
    ("ValidationError", "Currently, desiredSize equals minSize (1). Terminating instance without replacement will "
     "violate group's min size constraint.", 400, errors.VendorConflict),
    ("ValidationError", "something else", 400, errors.VendorRefused),
    ("InternalError", "", 500, errors.VendorUnavailable),
    ("Strange", "", 502, errors.VendorUnavailable),
    ("Strange", "", 429, errors.VendorThrottled),
    ("Strange", "", 400, errors.VendorRefused),
]  # fmt: skip


@pytest.mark.parametrize(("code", "message", "status", "expected"), ROWS)
def test_error_code_has_one_meaning(code: str, message: str, status: int, expected: type[Exception]) -> None:
    answer: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error = translate(boto.ClientError(answer, "RunInstances"), "ec2 run_instances")
    assert type(error) is expected
    assert error.code == code
    assert error.hint
    assert error.detail.startswith("ec2 run_instances: ")


def test_who_is_denied_by_an_organization_is_not_sent_to_the_template() -> None:
    for code in ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException"):
        for kind in ("service", "resource"):
            text = f"not authorized to perform: a:B with an explicit deny in a {kind} control policy"
            error, hint = classify(code, text, 403)
            assert error is errors.PermissionDenied
            assert "organization" in hint


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (boto.ConnectTimeoutError(endpoint_url="https://x"), errors.VendorTimeout),
        (boto.ReadTimeoutError(endpoint_url="https://x"), errors.VendorTimeout),
        (boto.EndpointConnectionError(endpoint_url="https://x"), errors.VendorUnavailable),
        (boto.ConnectionClosedError(endpoint_url="https://x"), errors.VendorUnavailable),
        (ResponseParserError("not well-formed"), errors.VendorUnavailable),
        (boto.NoCredentialsError(), errors.CredentialsRevoked),
        (boto.ParamValidationError(report="bad"), errors.VendorRefused),
    ],
)
def test_failed_call_without_answer_has_one_meaning(raised: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected), translated("sts assume_role"):
        raise raised
