"""The stack as CloudFormation has it now: whether a request is still waited for.

A request may be delivered twice, or hours after CloudFormation has gone on. Of such a one nothing may be made any more,
since nothing would ever remove it.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from stockyard_stack_resources.errors import Superseded

_LONGEST_WAIT = timedelta(hours=1, minutes=1)
"""How long CloudFormation waits for an answer, and a minute for clocks that differ."""


@dataclass(frozen=True, slots=True)
class StackResource:
    """State of a resource in its stack."""

    status: str
    physical_id: str | None


Look = Callable[[str, str], StackResource | None]
"""(stack id, logical id) -> the resource; None where the stack has none of it."""


def looking(client: Any) -> Look:
    """``Look`` by a client of boto3 for CloudFormation."""

    def look(stack_id: str, logical_id: str) -> StackResource | None:
        try:
            answer = client.describe_stack_resource(StackName=stack_id, LogicalResourceId=logical_id)
        except client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] == "ValidationError":
                return None
            raise
        detail = answer["StackResourceDetail"]
        return StackResource(detail["ResourceStatus"], detail.get("PhysicalResourceId"))

    return look


def check_awaited(event: Mapping[str, Any], resource: StackResource | None, now: datetime) -> None:
    """Raises ``Superseded`` when CloudFormation does not wait for this creation or update any more."""
    expected = "UPDATE_IN_PROGRESS" if event["RequestType"] == "Update" else "CREATE_IN_PROGRESS"
    status = None if resource is None else resource.status
    if status != expected:
        raise Superseded(f"CloudFormation does not wait for this any more: the resource is {status or 'gone'}")
    sent = sent_at(str(event.get("ResponseURL", "")))
    if sent is not None and now - sent > _LONGEST_WAIT:
        raise Superseded("CloudFormation does not wait for this any more: it was sent more than an hour ago")


def is_living(physical_id: str, resource: StackResource | None) -> bool:
    """Whether the stack keeps the resource of that physical id: a deletion is of an earlier life then."""
    return resource is not None and resource.physical_id == physical_id and not resource.status.startswith("DELETE")


def is_last(physical_id: str, resource: StackResource | None) -> bool:
    """Whether the stack deletes the resource of that physical id, and has none after it: not one that was replaced."""
    return resource is not None and resource.physical_id == physical_id and resource.status.startswith("DELETE")


def sent_at(response_url: str) -> datetime | None:
    """Time at which CloudFormation has signed the response URL; None where it does not say."""
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(response_url).query)
    (date, *_) = query.get("X-Amz-Date", [""])
    if not re.fullmatch(r"\d{8}T\d{6}Z", date):
        return None
    return datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
