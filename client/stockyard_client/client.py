"""The client: one object per API and caller."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from stockyard_client import waiting
from stockyard_client.errors import ApiError, OperationFailed
from stockyard_client.transport import Token, Transport

if TYPE_CHECKING:
    import httpx

    from stockyard_client.following import Pace
    from stockyard_client.models import Cluster, Operation
    from stockyard_client.pool_models import Pool
    from stockyard_client.resources.accounts import Accounts
    from stockyard_client.resources.base import Clusters, Events, Operations
    from stockyard_client.resources.costs import CostReports, Metrics
    from stockyard_client.resources.disruption import Disruption
    from stockyard_client.resources.nodes import Manifests, NodeClaims, NodeProviders, NodeTypes, Prices, SetMembers
    from stockyard_client.resources.os_images import OSImages
    from stockyard_client.resources.pools import PlacementPlans, Pools
    from stockyard_client.resources.profiles import Profiles
    from stockyard_client.resources.simulations import Simulations
    from stockyard_client.resources.sites import Sites
    from stockyard_client.resources.tenant import AccountsOfEvents, AllowedTypes, Audit, NodeEnvironments, Quotas

POOLS_READY = "PoolsReady"
"""The condition of a cluster that says whether its pools have the nodes that they have to have."""
MEMBERS_COMPLETE = "ControlPlaneComplete"
"""The one that says whether its control plane has the members that its settings ask for."""


class Client:
    """A caller of the API at ``url``. The models of a resource are imported at its first use.

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

    @property
    def simulates_kubernetes(self) -> bool:
        """Whether the API has said, in an answer to this client, that its clusters have no API servers to reach: a
        local cloud's."""
        return self._transport.simulated == "kubernetes"

    @cached_property
    def accounts(self) -> Accounts:
        """Cloud accounts."""
        from stockyard_client.resources.accounts import Accounts

        return Accounts(self._transport, self._pace)

    @cached_property
    def sites(self) -> Sites:
        """Sites."""
        from stockyard_client.resources.sites import Sites

        return Sites(self._transport, self._pace)

    @cached_property
    def os_images(self) -> OSImages:
        """Images that machines of one's own are written from."""
        from stockyard_client.resources.os_images import OSImages

        return OSImages(self._transport, self._pace)

    @cached_property
    def clusters(self) -> Clusters:
        """Clusters."""
        from stockyard_client.resources.base import Clusters

        return Clusters(self._transport, self._pace)

    @cached_property
    def pools(self) -> Pools:
        """Pools of a cluster."""
        from stockyard_client.resources.pools import Pools

        return Pools(self._transport, self._pace)

    @cached_property
    def disruption(self) -> Disruption:
        """Disruption of a cluster's nodes."""
        from stockyard_client.resources.disruption import Disruption

        return Disruption(self._transport)

    @cached_property
    def profiles(self) -> Profiles:
        """Cluster profiles."""
        from stockyard_client.resources.profiles import Profiles

        return Profiles(self._transport)

    @cached_property
    def placements(self) -> PlacementPlans:
        """Plans of nodes for pods."""
        from stockyard_client.resources.pools import PlacementPlans

        return PlacementPlans(self._transport)

    @cached_property
    def simulations(self) -> Simulations:
        """Replays of histories of pods."""
        from stockyard_client.resources.simulations import Simulations

        return Simulations(self._transport)

    @cached_property
    def operations(self) -> Operations:
        """Long-running changes."""
        from stockyard_client.resources.base import Operations

        return Operations(self._transport, self._pace)

    @cached_property
    def events(self) -> Events:
        """Events of the tenant's resources."""
        from stockyard_client.resources.base import Events

        return Events(self._transport, self._pace)

    @cached_property
    def node_providers(self) -> NodeProviders:
        """Sources of nodes."""
        from stockyard_client.resources.nodes import NodeProviders

        return NodeProviders(self._transport, self._pace)

    @cached_property
    def node_types(self) -> NodeTypes:
        """Kinds of nodes on offer."""
        from stockyard_client.resources.nodes import NodeTypes

        return NodeTypes(self._transport)

    @cached_property
    def node_claims(self) -> NodeClaims:
        """Wanted, promised and existing nodes."""
        from stockyard_client.resources.nodes import NodeClaims

        return NodeClaims(self._transport, self._pace)

    @cached_property
    def set_members(self) -> SetMembers:
        """Members of sets of manifests."""
        from stockyard_client.resources.nodes import SetMembers

        return SetMembers(self._transport, self._pace)

    @cached_property
    def manifests(self) -> Manifests:
        """Documents of Kubernetes' form."""
        from stockyard_client.resources.nodes import Manifests

        return Manifests(self._transport)

    @cached_property
    def prices(self) -> Prices:
        """Price lists of regions."""
        from stockyard_client.resources.nodes import Prices

        return Prices(self._transport)

    @cached_property
    def costs(self) -> CostReports:
        """Costs of the tenant."""
        from stockyard_client.resources.costs import CostReports

        return CostReports(self._transport)

    @cached_property
    def metrics(self) -> Metrics:
        """Numbers for monitoring."""
        from stockyard_client.resources.costs import Metrics

        return Metrics(self._transport)

    @cached_property
    def quotas(self) -> Quotas:
        """Limits of the tenant."""
        from stockyard_client.resources.tenant import Quotas

        return Quotas(self._transport)

    @cached_property
    def audit(self) -> Audit:
        """Records of who did what."""
        from stockyard_client.resources.tenant import Audit

        return Audit(self._transport)

    @cached_property
    def node_environments(self) -> NodeEnvironments:
        """Environments that providers set up for clusters."""
        from stockyard_client.resources.tenant import NodeEnvironments

        return NodeEnvironments(self._transport)

    @cached_property
    def allowed_types(self) -> AllowedTypes:
        """The node types that the tenant may use."""
        from stockyard_client.resources.tenant import AllowedTypes

        return AllowedTypes(self._transport)

    @cached_property
    def event_accounts(self) -> AccountsOfEvents:
        """The AWS accounts whose events are the tenant's requests."""
        from stockyard_client.resources.tenant import AccountsOfEvents

        return AccountsOfEvents(self._transport)

    def _pace(self) -> Pace:
        """New pace for a follower's questions."""
        from stockyard_client.following import Pace

        return Pace(self._sleep, self._clock)

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
            lambda earlier, wait: self.operations.newer(operation, earlier, wait),
            timeout=timeout,
            sleep=self._sleep,
            clock=self._clock,
            on_change=on_change,
            interval=interval,
        )

    def wait_pool(
        self, cluster: str, pool: str, *, timeout: float | None = None, on_change: Callable[[str], None] | None = None
    ) -> Pool:
        """The pool once it has the nodes that it has to have, and no other one leaves.

        Raises ``PoolsNotReady`` after ``timeout`` seconds.
        """
        return waiting.wait_until(
            lambda earlier, wait: self.pools.newer(cluster, pool, earlier, wait),
            lambda record: record.ready and not record.nodes.leaving,
            _state_of_pool,
            f"pool {pool}",
            timeout=timeout,
            sleep=self._sleep,
            clock=self._clock,
            on_change=on_change,
        )

    def wait_pool_gone(
        self, cluster: str, pool: str, *, timeout: float | None = None, on_change: Callable[[str], None] | None = None
    ) -> None:
        """Returns once there is no such pool. Raises ``PoolsNotReady`` after ``timeout`` seconds."""

        def read(earlier: Pool | None, wait: int) -> Pool | None:
            try:
                return self.pools.newer(cluster, pool, earlier, wait)
            except ApiError as error:
                if error.status != 404:
                    raise
                return None

        waiting.wait_until(
            read,
            lambda record: record is None,
            lambda record: "it is gone" if record is None else _state_of_pool(record),
            f"pool {pool}",
            timeout=timeout,
            sleep=self._sleep,
            clock=self._clock,
            on_change=on_change,
        )

    def wait_pools(
        self, cluster: str, *, timeout: float | None = None, on_change: Callable[[str], None] | None = None
    ) -> Cluster:
        """The cluster once its condition ``PoolsReady`` holds; at once when it has no pools.

        Raises ``PoolsNotReady`` after ``timeout`` seconds. ``on_change`` gets the condition's message, with counts.
        """
        record = self.clusters.get(cluster)
        if next(self.pools.list(record.id, page_size=1), None) is None:
            return record
        return waiting.wait_until(
            lambda earlier, wait: self.clusters.newer(record.id, earlier, wait),
            lambda current: _pools_state(current)[0] == "True",
            lambda current: _pools_state(current)[1],
            f"the pools of cluster {record.name}",
            timeout=timeout,
            sleep=self._sleep,
            clock=self._clock,
            on_change=on_change,
        )

    def wait_control_plane(
        self, cluster: Cluster, *, timeout: float | None = None, on_change: Callable[[str], None] | None = None
    ) -> Cluster:
        """The cluster once its control plane has the members that its settings ask for; at once for one of one member.

        Raises ``PoolsNotReady`` after ``timeout`` seconds, ``OperationFailed`` where what completes it has failed.
        """
        size = cluster.settings.get("control_plane_size")
        # on Cudo it is the size of the one machine: sm, md or lg
        if not isinstance(size, int) or size == 1:
            return cluster
        current = waiting.wait_until(
            lambda earlier, wait: self.clusters.newer(cluster.id, earlier, wait),
            lambda record: _members_state(record)[0] == "True" or _is_degraded(record),
            lambda record: _members_state(record)[1],
            f"the control plane of cluster {cluster.name}",
            timeout=timeout,
            sleep=self._sleep,
            clock=self._clock,
            on_change=on_change,
        )
        if _members_state(current)[0] != "True" and current.operation_id:
            operation = self.operations.get(current.operation_id)
            if operation.done and operation.status != "succeeded":
                raise OperationFailed(operation)
        return current

    def health(self) -> dict[str, Any]:
        """Answer of ``/v1/health``; needs no token."""
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


def _state_of_pool(pool: Pool) -> str:
    condition, leaving = pool.condition, pool.nodes.leaving
    if condition is not None and pool.ready and leaving:
        return f"{condition.message} {leaving} {'node leaves' if leaving == 1 else 'nodes leave'}."
    return condition.message if condition is not None else "it was not looked at yet"


def _pools_state(cluster: Cluster) -> tuple[str, str]:
    """Status and message of the condition that speaks of all pools of the cluster."""
    return _state_of(cluster, POOLS_READY, "they were not looked at yet")


def _members_state(cluster: Cluster) -> tuple[str, str]:
    """Status and message of the condition that speaks of the members of the control plane."""
    return _state_of(cluster, MEMBERS_COMPLETE, "its other members were not begun yet")


def _is_degraded(cluster: Cluster) -> bool:
    return any(condition.type == "Degraded" and condition.status == "True" for condition in cluster.conditions)


def _state_of(cluster: Cluster, kind: str, otherwise: str) -> tuple[str, str]:
    """Status and message of the condition of that type."""
    conditions = (condition for condition in cluster.conditions if condition.type == kind)
    return next(((condition.status, condition.message) for condition in conditions), ("Unknown", otherwise))
