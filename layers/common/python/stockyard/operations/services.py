"""What use cases are given: the ports and a few settings, in one frozen value that the composition root builds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stockyard import ports
from stockyard.domain import ids, times

if TYPE_CHECKING:
    from stockyard.ports.nodes import NodeSource, Scarcity


@dataclass(frozen=True, slots=True)
class Rules:
    """The stage's choices that use cases need."""

    name_prefix: str = "vantage"
    issuer: str = ""
    api_url: str = ""
    lease_seconds: int = 120
    quotas: Mapping[str, int] = field(
        default_factory=lambda: {"clusters": 20, "node_providers": 50, "nodeclaims": 1000}
    )
    retry_deletion_seconds: int = 900
    stuck_seconds: int = 1800
    in_flight_seconds: int = 180
    """How long after an intent the thing may still appear: a worker's longest life and the cloud's hiding."""
    sweep_grace_seconds: int = 3600
    report_only: bool = False
    launch_seconds: int = 300
    """How long a machine may take to be made."""
    drain_seconds: int = 600
    """How long a drain may take before pods are deleted past their budgets."""
    register_seconds: int = 900
    """How long its node may then take to join."""
    agent_busy_seconds: int = 10
    agent_quiet_seconds: int = 60
    """How soon a cluster's agent comes again: while it has something to do for a claim, and otherwise."""

    @property
    def token_url(self) -> str:
        """Where a client of the realm gets its tokens."""
        return f"{self.issuer}/protocol/openid-connect/token"


@dataclass(frozen=True, slots=True)
class Services:
    """Everything a tenant's use case may touch. ``store`` is bound to the tenant."""

    store: ports.Store
    clock: ports.Clock
    identity: ports.Identity
    secrets: ports.Secrets
    workflows: ports.Workflows
    deployer: ports.Deployer
    prover: ports.Prover
    providers: Mapping[str, ports.ClusterProvider]
    verifiers: Mapping[str, ports.AccountVerifier]
    prices: ports.PriceList
    installation: str
    rules: Rules = field(default_factory=Rules)
    sources: Mapping[str, NodeSource] = field(default_factory=dict)
    """By the provider's kind; a kind without one is not built yet."""
    scarcity: Scarcity | None = None
    catalogs: dict[Any, Any] = field(default_factory=dict)
    """Catalogues of node types that the process has built, by version; see ``node_catalog``."""
    of: Callable[[str], Services] | None = None
    """Another tenant's services. Only the platform has it: a tenant is by itself."""

    @property
    def tenant(self) -> str:
        """The tenant that everything here belongs to."""
        return self.store.tenant

    def new_id(self, prefix: str) -> str:
        """A fresh identifier of that prefix."""
        return ids.make(prefix, self.clock.now(), self.clock.randomness(10))

    def now(self) -> str:
        """The current moment as the API shows it."""
        return times.to_text(self.clock.now())
