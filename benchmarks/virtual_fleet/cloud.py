"""The cloud accounts of a fleet: each has its own machines, and calls are known by the keys of its role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from benchmarks.virtual_fleet import prices
from benchmarks.virtual_time.cloud import Answer, Cloud

KEY = "AKIA"


class FleetCloud:
    """``of`` gives the account of a number. ``now`` is the moment of the stage."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.accounts: dict[str, Cloud] = {}

    def of(self, number: str) -> Cloud:
        """The account of that number, made at the first call."""
        return self.accounts.setdefault(number, Cloud())

    def answer(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> Answer:
        """The answer to a call of EC2 or STS. What nobody plays has nothing in it: a list that is empty."""
        if operation == "AssumeRole":
            answer = Cloud().answer(operation, parameters)
            number = parameters["RoleArn"].split(":")[4]
            answer["Credentials"]["AccessKeyId"] = f"{KEY}{number}"
            return answer
        if operation == "DescribeSpotPriceHistory":
            return prices.history(self._now())
        if operation == "DescribeAvailabilityZones":
            return prices.zones()
        try:
            return self.of(number_of(client)).answer(operation, parameters)
        except KeyError:
            if not operation.startswith(("Describe", "Get", "List")):
                raise
            return nothing(client, operation)


def number_of(client: Any) -> str:
    """The number of the account whose keys a client has; ``own`` for ours."""
    credentials = client._request_signer._credentials
    key = credentials.access_key if credentials is not None else ""
    return key.removeprefix(KEY) if key.startswith(KEY) else "own"


def nothing(client: Any, operation: str) -> Answer:
    """An answer of the shape that the service has, with lists that are empty."""
    shape = client.meta.service_model.operation_model(operation).output_shape
    members = shape.members if shape is not None else {}
    return {name: [] for name, member in members.items() if member.type_name == "list"}
