"""What use cases are given: the ports and a few settings, in one frozen value that the composition root builds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stockyard import ports
from stockyard.domain import ids, times


@dataclass(frozen=True, slots=True)
class Rules:
    """The stage's choices that use cases need."""

    name_prefix: str = "vantage"
    issuer: str = ""
    api_url: str = ""
    audience: str = "stockyard"
    lease_seconds: int = 120
    quotas: Mapping[str, int] = field(default_factory=lambda: {"clusters": 20})
    retry_deletion_seconds: int = 900
    stuck_seconds: int = 1800
    in_flight_seconds: int = 180
    """How long after an intent the thing may still appear: a worker's longest life and the cloud's hiding."""
    sweep_grace_seconds: int = 3600
    report_only: bool = False


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
