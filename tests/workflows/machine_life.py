"""One claim's life with a machine of EC2, struck by at most one fault: moto in process, the ledger's store in memory.

Place, templates, fleets, machines and their end are AWS's as the local cloud plays it; a virtual clock passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import boto3
from botocore.exceptions import ClientError

from local.faults import Errors
from stockyard.domain.offers import InstanceOffer, RegionOffers
from stockyard.domain.records import NodeClaim, SimulatedMachine
from stockyard.errors import (
    IllegalTransition,
    VendorError,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
)
from stockyard.operations import cluster_nodes
from stockyard.operations.create_claim import NewClaim, create_claim
from stockyard.operations.power_claim import power_claim
from stockyard.operations.reap import Reaper
from stockyard.ports import Create, Remove, Replace, Write
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes
from tests.workflows.played_agent import PlayedAgent
from tests.workflows.struck_cloud import ACCOUNT, CLUSTER, REGION, URL, Cloud, Died, Strikes

T = TypeVar("T")
CLAIM = "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV"
OFFERS = RegionOffers(
    REGION,
    "2026",
    {
        name: InstanceOffer(name, 2, 8192, "x86_64", 3, 10, usd)
        for name, usd in (("m6i.large", 0.09), ("m5.large", 0.1))
    },
)
SCARCE = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.5, "maxCapacity": 1}
"""What the claim gets when EC2 has nothing."""
OF_OURS = Errors(
    lambda: VendorTimeout("no answer"), lambda: VendorThrottled("slow down"), lambda: VendorRefused("never")
)


@dataclass
class StruckStore:
    """A tenant's store whose commits can be struck."""

    store: Any
    strikes: Strikes

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def commit(self, *writes: Write) -> None:
        vendor = any(_kind(write) is SimulatedMachine for write in writes)
        name = "simulated.Machine" if vendor else "commit"
        self.strikes.strike(name, lambda: self.store.commit(*writes), OF_OURS)


def _kind(write: Write) -> type[Any] | None:
    if isinstance(write, Create | Replace):
        return type(write.record)
    return write.kind if isinstance(write, Remove) else None


class MachineLife:
    """A claim that wants a machine of EC2, from its request to nothing. ``full``: EC2 has none of the types."""

    def __init__(
        self,
        cloud: Cloud,
        strikes: Strikes | None = None,
        *,
        full: bool = False,
        seed: int = 1,
        kind: str = "",
        trouble: str = "",
    ) -> None:
        world = make_world()
        self.cloud, self.strikes = cloud, strikes or Strikes()
        self.strikes.where = ""
        cloud.begin(world.clock, self.strikes, seed, {"m6i.large": 0, "m5.large": 0} if full else {"m6i.large": 1})
        self.nodes = nodes = Nodes.of(world.registry, world.services, world.clock)
        world.services.store.commit(Create(cloud.cluster))
        block = {"cloudAccount": 1, "region": REGION, "capacityTypes": ["on-demand"], "instanceTypes": ["m*"]}
        nodes.provider("aws", {"name": "m6i.large", "maxCapacity": 1}, kind="ec2", block=block)
        nodes.provider("lab", SCARCE, block={"launchSeconds": 1, "joinSeconds": 2})
        store: Any = StruckStore(world.registry.store("acme"), self.strikes)
        config = Ec2NodesConfig("vantage", "1.34", URL, 60)
        source = Ec2Nodes(config, boto3.Session, {REGION: OFFERS}.get)
        source._sessions = cloud.sessions  # type: ignore[assignment]
        simulated = SimulatedNodes(lambda _: store)
        nodes.services = replace(nodes.services, store=store, sources={"ec2": source, "simulated": simulated})
        self.agent = PlayedAgent(nodes, cloud.cluster, ACCOUNT, self._runs, kind, trouble)
        nodes.meanwhile = self._meanwhile
        self.became, self.had = "", 0
        """Its phase when it had been provided for, and how many machines there were then."""
        self.powered: list[str] = []

    # --- the life -----------------------------------------------------------------------------------------------------

    def run(self) -> str:
        """From the request to nothing. Returns what the claim became before it was deleted."""
        services = self.nodes.services
        self._again(
            "create", lambda: create_claim(services, NewClaim(name="one", cluster_ref=CLUSTER), "user:ann", CLAIM)
        )
        for _ in range(6):
            self._again("schedule", self.nodes.schedule)
            self._relay("provision")
            claim = self._claim()
            if claim is None or claim.phase != "Pending":
                break
            self.nodes.clock.advance(30)
        self.became = claim.phase if claim is not None else "gone"
        self.had = len(self.cloud.machines()) + len(self.nodes.machines())
        if self.became == "Available" and claim is not None and claim.type_ref.startswith("aws."):
            for state in ("Off", "On", "Reboot"):
                self._power(state)
        self._delete()
        self._clear()
        return self.became

    def _power(self, state: str) -> None:
        def ask() -> None:
            try:
                power_claim(self.nodes.services, CLAIM, state, "user:ann")
            except IllegalTransition:
                return

        self._again("power", ask)
        self._relay("power")
        self.powered += [f"{state} {one.state}" for one in self.cloud.machines()]

    def _delete(self) -> None:
        def delete() -> None:
            claim = self._claim()
            if claim is not None:
                self.nodes.delete(claim)

        self._again("delete", delete)
        for _ in range(6):
            self._relay("delete")
            if self._claim() is None:
                return
            self.nodes.hours(1)  # what was blocked or lost is the sweep's
            self._again("sweep", self._sweep)

    def _clear(self) -> None:
        """What the deletion of the cluster does with what was set up for its nodes."""
        for _ in range(40):
            try:
                outcome = self._again("clear", self._release)
            except VendorError:
                self.nodes.hours(1)  # it is blocked, and the sweep tries again
                continue
            if outcome.done:
                return
            self.nodes.clock.advance(outcome.wait_seconds)

    def _release(self) -> Any:
        return cluster_nodes.release(self.nodes.services, self.cloud.cluster, "op_9")

    def _claim(self) -> NodeClaim | None:
        return self.nodes.services.store.get(NodeClaim, CLAIM)

    def _sweep(self) -> None:
        Reaper(self.nodes.registry, self.nodes.clock, lambda _: self.nodes.services).run()

    def _runs(self, machine: str) -> bool:
        # a simulated machine joins by itself
        return any(one.id == machine and one.state == "running" for one in self.cloud.machines())

    def _meanwhile(self) -> None:
        self.strikes.where = "agent"
        self.agent.round()

    def _relay(self, where: str) -> None:
        self.nodes.where = self._in
        self._again(where, self.nodes.relay)

    def _in(self, place: str) -> None:
        self.strikes.where = place

    def _again(self, where: str, work: Callable[[], T]) -> T:
        """As a caller or a stream does: again, while the worker dies or a vendor is slow."""
        for _ in range(4):
            self.strikes.where = where
            try:
                return work()
            except (Died, VendorThrottled, VendorTimeout, ClientError):
                continue
            finally:
                self.strikes.where = ""
        raise AssertionError(f"{where} never succeeds")

    # --- the judge ----------------------------------------------------------------------------------------------------

    def wrong(self) -> list[str]:
        """What must not be at the end."""
        bad = [f"left in the account: {thing}" for thing in self.cloud.left()]
        if not self.nodes.nothing_left():
            bad.append("a claim, a place or a machine is left")
        if (self.became, self.had) not in (("Available", 1), ("Failed", 0)):
            bad.append(f"it became {self.became} with {self.had} machines")
        return bad
