"""The client of the table, and what DynamoDB's errors mean to the product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import BotoCoreError, ClientError

from stockyard import errors
from stockyard.adapters import own_account
from stockyard.adapters.dynamodb.answers import AnswerParsers

if TYPE_CHECKING:
    from botocore.session import Session
    from mypy_boto3_dynamodb import DynamoDBClient

_UNAVAILABLE = frozenset(
    {
        "InternalServerError",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_BUSY = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})


def client(region: str | None = None, session: Session | None = None) -> DynamoDBClient:
    """The DynamoDB client the store expects: short time-outs, botocore's standard retries. ``session`` as in
    ``own_account.client``."""
    # DynamoDB checks parameters anyway; a check here takes more than half of a transaction's time in this process.
    settings = {"connect_timeout": 2, "read_timeout": 5, "tcp_keepalive": True, "parameter_validation": False}
    table = own_account.client("dynamodb", region, parsers=AnswerParsers(), session=session, **settings)
    return cast("DynamoDBClient", table)


@contextmanager
def translated() -> Iterator[None]:
    """Raise our store errors for whatever botocore raises in the block, except cancelled transactions."""
    try:
        yield
    except ClientError as fault:
        if "CancellationReasons" in fault.response:
            raise
        raise _meaning(fault) from fault
    except BotoCoreError as fault:
        raise errors.StoreUnavailable(f"The table did not answer ({type(fault).__name__})") from fault


def _meaning(fault: ClientError) -> errors.StoreError:
    error = fault.response.get("Error", {})
    code = error.get("Code", "")
    status = fault.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    text = f"{fault.operation_name}: {code}"
    if code in _UNAVAILABLE or status >= 500:
        return errors.StoreUnavailable(text)
    return errors.StoreError(f"{text}: {error.get('Message', '')}")


def reasons(fault: ClientError) -> Sequence[Mapping[str, Any]]:
    """Reasons why a transaction was cancelled, one entry per write."""
    reasons: Sequence[Mapping[str, Any]] = fault.response.get("CancellationReasons", [])
    return reasons


def first_refused(reasons: Sequence[Mapping[str, Any]]) -> int | None:
    """The position of the first write whose condition did not hold."""
    codes = [reason.get("Code") for reason in reasons]
    return codes.index("ConditionalCheckFailed") if "ConditionalCheckFailed" in codes else None


def busy(reasons: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the transaction was cancelled only because other work was in its way."""
    codes = {reason.get("Code", "None") for reason in reasons} - {"None"}
    return bool(codes) and codes <= _BUSY
