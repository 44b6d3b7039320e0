"""botocore's errors in our words, for the AWS services of Stockyard's own account. Secrets are never in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from stockyard.errors import (
    PermissionDenied,
    VendorConflict,
    VendorError,
    VendorNotFound,
    VendorQuotaExceeded,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
    VendorUnavailable,
)

_CODES: tuple[tuple[type[VendorError], str], ...] = (
    (
        VendorThrottled,
        r"Throttling(Exception)?|(Throttled|KmsThrottling|TooManyRequests|ProvisionedThroughputExceeded)Exception|"
        r"RequestLimitExceeded|ExecutionLimitExceeded",
    ),
    (VendorUnavailable, r"Internal(Failure|Error|Exception|ServiceError)|ServiceUnavailable"),
    (VendorTimeout, r"RequestTimeout(Exception)?"),
    (
        PermissionDenied,
        r"AccessDenied(Exception)?|(KmsAccessDenied|ExpiredToken|UnrecognizedClient)Exception|InvalidClientTokenId",
    ),
    (VendorConflict, r"(ConcurrentModification|ResourceExists)Exception"),
    (VendorNotFound, r"ResourceNotFoundException|(Execution|StateMachine)DoesNotExist"),
    (VendorQuotaExceeded, r"LimitExceededException"),
)


def by_code(code: str, message: str, status: int = 0) -> VendorError:
    """Our error for a service's code, else by its HTTP status; what is neither known nor 5xx is ``VendorRefused``."""
    fallback = VendorUnavailable if status >= 500 else VendorThrottled if status == 429 else VendorRefused
    kind = next((kind for kind, codes in _CODES if re.fullmatch(codes, code)), fallback)
    return kind(message, code=code)


def translate(error: ClientError | BotoCoreError | ResponseParserError) -> VendorError:
    """One botocore error in our words. Connection trouble is retryable; time-outs may have had an effect."""
    if isinstance(error, ClientError):
        answer = error.response
        code = answer.get("Error", {}).get("Code", "")
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        message = answer.get("Error", {}).get("Message", "")
        return by_code(code, f"{error.operation_name}: {message or code}", status)
    if isinstance(error, ReadTimeoutError | ConnectTimeoutError):
        return VendorTimeout("no answer in time", code=type(error).__name__)
    # Everything else botocore raises on its own is about connections, credentials or endpoints.
    return VendorUnavailable("the call could not be made", code=type(error).__name__)


@contextmanager
def translated() -> Iterator[None]:
    """Raise the ``VendorError`` for whatever botocore error comes out of the block."""
    try:
        yield
    # an answer that is not AWS's, as proxies send it, is none of botocore's own errors
    except (ClientError, BotoCoreError, ResponseParserError) as error:
        raise translate(error) from error
