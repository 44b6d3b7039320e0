"""The client: one object per API and caller."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import httpx

from stockyard_client import waiting
from stockyard_client.models import Operation
from stockyard_client.node_resources import Manifests, NodeClaims, NodeProviders, NodeTypes, Prices
from stockyard_client.resources import Accounts, Clusters, Events, Operations
from stockyard_client.transport import Token, Transport


class Client:
    """A caller of the API at ``url``.

    ``token`` is the bearer token or a function that gives a fresh one. ``tenant`` is whom somebody of the platform
    means, by default the token's own. ``timeout`` is seconds per call. ``transport``,
    ``sleep``, ``clock`` and ``new_key`` (an ``Idempotency-Key``) are for tests and odd networks.
    """

    def __init__(
        self,
        url: str,
        token: Token = None,
        *,
        tenant: str | None = None,
        timeout: float = 30.0,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        new_key: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self._transport = Transport(url, token, tenant=tenant, timeout=timeout, transport=transport, new_key=new_key)
        self._sleep = sleep
        self._clock = clock
        self.accounts = Accounts(self._transport)
        self.clusters = Clusters(self._transport)
        self.operations = Operations(self._transport)
        self.events = Events(self._transport)
        self.node_providers = NodeProviders(self._transport)
        self.node_types = NodeTypes(self._transport)
        self.node_claims = NodeClaims(self._transport)
        self.manifests = Manifests(self._transport)
        self.prices = Prices(self._transport)

    def wait_operation(
        self,
        operation: str,
        *,
        timeout: float | None = None,
        interval: float = waiting.FIRST_INTERVAL,
        on_change: Callable[[Operation], None] | None = None,
    ) -> Operation:
        """The operation once it has succeeded; see :func:`stockyard_client.waiting.wait_operation`."""
        return waiting.wait_operation(
            lambda: self.operations.get(operation),
            timeout=timeout,
            sleep=self._sleep,
            clock=self._clock,
            on_change=on_change,
            interval=interval,
        )

    def health(self) -> dict[str, Any]:
        """What ``/v1/health`` says; needs no token."""
        return self._transport.send("GET", "/v1/health").object()

    def close(self) -> None:
        """Gives the connections back."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
