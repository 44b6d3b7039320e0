"""The functions, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

HTTP_SECONDS = 29
"""API Gateway gives up after 30 seconds."""


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """One Lambda. ``asynchronous``: nobody waits for its answer, so what fails goes to a queue.
    ``polled``: agents of clusters call it each minute.
    ``private``: calls Keycloak's admin API, vdeployer, tenants' Vaults or Kubernetes hosts, so it joins the stage's
    network where there is one."""

    name: str
    description: str
    timeout: int
    memory: int = 512
    asynchronous: bool = False
    private: bool = False
    polled: bool = False

    @property
    def traced(self) -> bool:
        """Whether its runs are traced: only where people wait for an answer. A trace costs more than the run itself."""
        return not self.asynchronous and not self.polled


# A function of 512 MB has 0.29 of a core. To describe EC2 takes botocore 0.13 seconds of a whole one and 24 MB: half a
# second of a cold start at 512 MB, a quarter at 1,024. What asks clouds for people has that. Measured for all by
# ``benchmarks.costs.memory_sizes``, which says which have more than they need; decision 605 has the rule.
FUNCTIONS: tuple[FunctionSpec, ...] = (
    FunctionSpec("clusters", "HTTP: clusters", HTTP_SECONDS, 1024, private=True),
    FunctionSpec("cloud_accounts", "HTTP: cloud accounts", HTTP_SECONDS, 1024, private=True),
    FunctionSpec("node_providers", "HTTP: node providers, node types, node environments", HTTP_SECONDS, private=True),
    FunctionSpec("node_claims", "HTTP: node claims", HTTP_SECONDS, 1024),
    # Packing takes a whole core.
    FunctionSpec("pools", "HTTP: pools of clusters, and which nodes pods would need", HTTP_SECONDS, 1769),
    FunctionSpec("cluster_profiles", "HTTP: cluster profiles", HTTP_SECONDS, 1024, private=True),
    FunctionSpec("apply", "HTTP: manifests", HTTP_SECONDS, 1024, private=True),
    FunctionSpec("records", "HTTP: operations, events, audit, quotas, prices, health, unknown routes", HTTP_SECONDS),
    FunctionSpec(
        "machines",
        "HTTP: machines that boot, report and join, and what clusters observe",
        HTTP_SECONDS,
        1024,
        private=True,
        polled=True,
    ),
    FunctionSpec("sites", "HTTP: sites, and what their connectors exchange", HTTP_SECONDS, private=True, polled=True),
    FunctionSpec("runs", "HTTP: tasks, logs and states of the programs of runs", HTTP_SECONDS, polled=True),
    # The workflow documents give a task 150 seconds, so the function ends first and its own error is seen.
    FunctionSpec("cluster_phases", "One phase of creating or deleting a cluster", 120, private=True),
    # Pods wait for it, and it computes for a third of the time until its call for a machine.
    FunctionSpec("node_phases", "The phases of making a node or giving it back", 120, 1536, private=True),
    FunctionSpec("scheduler", "Binds claims to node types", 60, 1769, asynchronous=True),
    FunctionSpec("autoscaler", "Keeps pools at the nodes that they are to have", 60, 1769, asynchronous=True),
    FunctionSpec("disruptor", "Lets nodes go that are empty, out of date or too dear", 120, 1769, asynchronous=True),
    FunctionSpec("relay", "Sends what the outbox holds", 60, asynchronous=True),
    FunctionSpec("reaper", "The sweep: orphans and expired leases", 240, asynchronous=True, private=True),
    FunctionSpec("requests", "Requests that come as events", 60, asynchronous=True, private=True),
    FunctionSpec("catalog", "Refreshes prices and offers of clouds", 600, 1024, asynchronous=True),
)

SHARES: Mapping[str, Fraction] = {
    "cluster_phases": Fraction(1, 10),
    "node_phases": Fraction(1, 5),
    "scheduler": Fraction(1, 20),
    "relay": Fraction(1, 50),
    "autoscaler": Fraction(1, 10),
    "disruptor": Fraction(1, 20),
    "pools": Fraction(1, 20),
    "cluster_profiles": Fraction(1, 50),
}
"""The part of the account's concurrency that is kept for a function, and more than which it never has: for the first
four it is there whatever others ask for, and of the others, whose work tenants can make long, it is the most."""
LEAST_QUOTA = 500
"""The concurrency of an account from which on parts of it are kept: AWS lets nobody keep the last 100. Below it only
turns hold tenants apart."""


def reserved(name: str, quota: int) -> int | None:
    """Number of processes that are kept for the function in an account of this concurrency; None where none are."""
    return int(SHARES[name] * quota) if name in SHARES and quota >= LEAST_QUOTA else None


NEW_ACCOUNT = 10
"""The concurrency of an account that AWS has not raised yet: what one has of which nobody knows it."""


def most_waits(limit: int, quota: int) -> int:
    """The number of requests that may wait for news at a time, each in a process of its own: a fifth of the
    account's concurrency at most; 0 as ``quota`` where nobody knows it."""
    return min(limit, (quota or NEW_ACCOUNT) // 5)


SCHEDULES: Mapping[str, tuple[int, str]] = {
    "relay": (1, "Sends again what the stream did not deliver"),
    "scheduler": (1, "Looks again at claims that wait"),
    "autoscaler": (1, "Looks at pools that lack nodes or are on their way out"),
    "disruptor": (1, "Looks at clusters whose nodes may be consolidated"),
    "reaper": (5, "Sweeps orphans and expired leases"),
    "catalog": (15, "Refreshes prices and offers: of accounts each time, of regions once a day"),
}
"""Function -> minutes between two runs, and what the run is for."""

REQUEST_SOURCE = "stockyard.request"
