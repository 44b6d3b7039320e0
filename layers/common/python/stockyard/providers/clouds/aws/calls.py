"""The door to AWS: every call goes through here, so that every failure leaves as one of our errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from botocore.config import Config

from stockyard.errors import VendorNotFound
from stockyard.providers.clouds.aws.errors import translated
from stockyard.providers.clouds.aws.sessions import ONCE, RETRYING, SLOW, Clients

UNTOKENED = frozenset(
    {
        "allocate_address",
        "create_internet_gateway",
        "create_lifecycle_policy",
        "create_security_group",
        "create_subnet",
        "create_vpc",
    }
)
"""Calls that make one more thing each time. botocore must not repeat them: the phase does, after it has looked."""
SLOW_CALLS = frozenset({"create_fleet", "run_instances"})
"""Calls for machines: where there are few, EC2 tries many ways before it answers. They have a client token, so the
workflow repeats them."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one session in one region."""

    clients: Clients
    region: str

    def call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        """One call. Raises a ``VendorError`` leaf."""
        client = self.clients.get(service, self.region, _config_of(operation))
        with translated(f"{service} {operation}"):
            answer: dict[str, Any] = getattr(client, operation)(**parameters)
        return answer

    def described_items(self, operation: str, key: str, **parameters: Any) -> list[dict[str, Any]]:
        """Items that EC2 describes under ``key``; nothing where it says that there is no such thing."""
        try:
            return list(self.call("ec2", operation, **parameters)[key])
        except VendorNotFound:
            return []

    def pages(self, service: str, operation: str, key: str, **parameters: Any) -> Iterator[dict[str, Any]]:
        """The items under ``key`` of all pages; where they are names, each is a text."""
        client = self.clients.get(service, self.region)
        with translated(f"{service} {operation}"):
            for page in client.get_paginator(operation).paginate(**parameters):
                yield from page.get(key, ())


def _config_of(operation: str) -> Config:
    if operation in SLOW_CALLS:
        return SLOW
    return ONCE if operation in UNTOKENED else RETRYING
