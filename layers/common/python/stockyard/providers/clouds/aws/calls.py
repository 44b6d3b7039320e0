"""The door to AWS: every call goes through here, so that every failure leaves as one of our errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

from botocore.config import Config

from stockyard.errors import VendorNotFound
from stockyard.ports import LedgerThings
from stockyard.providers.clouds.aws import tags
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


LEDGER = "ledger"
"""Stands for the generation of what is known without being asked for: nothing that is known is removed."""
T = TypeVar("T")


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

    def tags_of(self, kind: str, vendor_id: str) -> Mapping[str, str] | None:  # noqa: ARG002
        """The tags of a thing that need not be asked for; None where the cloud has to say them."""
        return None

    def rests(self, resource_id: str) -> bool:  # noqa: ARG002
        """Whether what stands within the things of this record is not looked at."""
        return False

    def once(self, name: str, listed: Callable[[], Iterable[T]]) -> Sequence[T]:  # noqa: ARG002
        """The things that are ``listed``; in a sweep only once, for all kinds that need it."""
        return list(listed())

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


@dataclass(frozen=True, slots=True)
class ListingCalls(Calls):
    """The calls of a sweep of one region, which asks for nothing that it knows."""

    ledger: LedgerThings
    known_tags: Mapping[str, str]
    """The tags of everything that is known, but for whose it is."""
    _lists: dict[str, list[Any]] = field(default_factory=dict)
    _locks: defaultdict[str, Lock] = field(default_factory=lambda: defaultdict(Lock))

    def tags_of(self, kind: str, vendor_id: str) -> Mapping[str, str] | None:
        """See ``Calls``."""
        owner = self.ledger.owners.get((kind, vendor_id))
        return None if owner is None else {**self.known_tags, tags.RESOURCE: owner, tags.GENERATION: LEDGER}

    def rests(self, resource_id: str) -> bool:
        """See ``Calls``."""
        return resource_id in self.ledger.resting

    def once(self, name: str, listed: Callable[[], Iterable[T]]) -> Sequence[T]:
        """See ``Calls``. Who needs it at the same time waits for the first one."""
        with self._locks[name]:
            if name not in self._lists:
                self._lists[name] = list(listed())
            return self._lists[name]


def _config_of(operation: str) -> Config:
    if operation in SLOW_CALLS:
        return SLOW
    return ONCE if operation in UNTOKENED else RETRYING
