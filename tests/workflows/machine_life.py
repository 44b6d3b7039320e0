"""One claim's life with a machine of EC2 and at most one fault: moto in process, the store in memory.

Network, templates, fleets and machines behave as in the local cloud. Time passes on a virtual clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import boto3
from botocore.exceptions import ClientError

from stockyard.domain.nodes.offers import InstanceOffer, RegionOffers
from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.records import NodeClaim, SimulatedMachine
from stockyard.errors import (
    IllegalTransition,
    VendorError,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
)
from stockyard.operations.clusters import nodes as cluster_nodes
from stockyard.operations.node_claims.create import create_claim
from stockyard.operations.node_claims.power import power_claim
from stockyard.ports import Create, Remove, Replace, Write
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.crash.faults import Errors
from tests.harness.sweeping import Reaper
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes
from tests.workflows.fake_agent import FakeAgent
from tests.workflows.faulty_cloud import ACCOUNT, CLUSTER, REGION, URL, Cloud, Died, FaultInjection

T = TypeVar("T")
CLAIM = "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV"
OFFERS = RegionOffers(
    REGION,
    "2026",
    {
        name: InstanceOffer(name, 2, 8192, "x86_64", 3, 10, usd)
        for name, usd in (("m6i.large", 0.09), ("m5.large", 0.1))
    },
    {"gp3": 0.0},
)
SCARCE = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.5, "maxCapacity": 1}
"""The node type that the claim gets when EC2 has no capacity."""
PORT_ERRORS = Errors(
    lambda: VendorTimeout("no answer"), lambda: VendorThrottled("slow down"), lambda: VendorRefused("never")
)


@dataclass
class FaultyStore:
    """A tenant's store whose commits can fail."""

    store: Any
    injection: FaultInjection

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def commit(self, *writes: Write) -> None:
        vendor = any(_kind(write) is SimulatedMachine for write in writes)
        name = "simulated.Machine" if vendor else "commit"
        self.injection.inject(name, lambda: self.store.commit(*writes), PORT_ERRORS)


def _kind(write: Write) -> type[Any] | None:
    if isinstance(write, Create | Replace):
        return type(write.record)
    return write.kind if isinstance(write, Remove) else None


class MachineLife:
    """A claim for a machine of EC2, from its request to the end of its deletion. ``full``: EC2 has no capacity."""

    provider = "aws."
    """How the names of the cloud's node types begin."""

    def __init__(
        self,
        cloud: Cloud,
        injection: FaultInjection | None = None,
        *,
        full: bool = False,
        seed: int = 1,
        kind: str = "",
        trouble: str = "",
    ) -> None:
        world = make_world()
        self.cloud, self.injection = cloud, injection or FaultInjection()
        self.injection.point = ""
        cloud.begin(world.clock, self.injection, seed, {"m6i.large": 0, "m5.large": 0} if full else {"m6i.large": 1})
        self.nodes = nodes = Nodes.of(world.registry, world.services, world.clock)
        world.services.store.commit(Create(cloud.cluster))
        block = {"cloudAccount": 1, "region": REGION, "capacityTypes": ["on-demand"], "instanceTypes": ["m*"]}
        nodes.provider("aws", {"name": "m6i.large", "maxCapacity": 1}, kind="ec2", block=block)
        nodes.provider("lab", SCARCE, block={"launchSeconds": 1, "joinSeconds": 2})
        store: Any = FaultyStore(world.registry.store("acme"), self.injection)
        config = Ec2NodesConfig("vantage", URL, 60)
        source = Ec2Nodes(config, boto3.Session, {REGION: OFFERS}.get)
        source._sessions = cloud.sessions
        simulated = SimulatedNodes(lambda _: store)
        sources = {"ec2": source, "simulated": simulated}
        nodes.services = with_ports(replace(nodes.services, store=store), node_sources=sources)
        self.agent = FakeAgent(nodes, cloud.cluster, ACCOUNT, self._runs, kind, trouble)
        nodes.meanwhile = self._meanwhile
        self.reached_phase, self.machine_count = "", 0
        """The claim's phase after provisioning, and the number of machines at that moment."""
        self.powered: list[str] = []

    # --- the life -----------------------------------------------------------------------------------------------------

    def run(self) -> str:
        """Runs the life from the request to the end of the deletion. Returns the claim's phase before the deletion."""
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
        self.reached_phase = claim.phase if claim is not None else "gone"
        self.machine_count = len(self.cloud.machines()) + len(self.nodes.machines())
        if self.reached_phase == "Available" and claim is not None and claim.type_ref.startswith(self.provider):
            for state in ("Off", "On", "Reboot"):
                self._power(state)
        self._delete()
        self._clear()
        return self.reached_phase

    def _power(self, state: str) -> None:
        def ask() -> None:
            try:
                power_claim(self.nodes.services, CLAIM, state, "user:ann")
            except IllegalTransition:
                return

        self._again("power", ask)
        self._relay("power")
        self.powered += [f"{state} {machine.state}" for machine in self.cloud.machines()]

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
            self.nodes.hours(1)  # The sweep continues what was blocked or lost.
            self._again("sweep", self._sweep)

    def _clear(self) -> None:
        """Removes the node environment, as the deletion of the cluster does."""
        for _ in range(40):
            try:
                outcome = self._again("clear", self._release)
            except VendorError:
                self.nodes.hours(1)  # The removal is blocked, and the sweep tries again.
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
        # A simulated machine is not in this account and joins by itself.
        return any(instance.id == machine and instance.state == "running" for instance in self.cloud.machines())

    def _meanwhile(self) -> None:
        self.injection.point = "agent"
        self.agent.round()

    def _relay(self, point: str) -> None:
        self.nodes.before_phase = self._in
        self._again(point, self.nodes.relay)

    def _in(self, point: str) -> None:
        self.injection.point = point

    def _again(self, point: str, work: Callable[[], T]) -> T:
        """Repeats ``work`` while the worker dies or a vendor is slow, as a caller or a stream does."""
        for _ in range(4):
            self.injection.point = point
            try:
                return work()
            except (Died, VendorThrottled, VendorTimeout, ClientError):
                continue
            finally:
                self.injection.point = ""
        raise AssertionError(f"{point} never succeeds")

    # --- the judge ----------------------------------------------------------------------------------------------------

    def wrong(self) -> list[str]:
        """The faults of this life at its end."""
        faults = [f"left in the account: {thing}" for thing in self.cloud.leftovers()]
        if not self.nodes.nothing_left():
            faults.append("a claim, a capacity slot or a machine is left")
        if (self.reached_phase, self.machine_count) not in (("Available", 1), ("Failed", 0)):
            faults.append(f"it became {self.reached_phase} with {self.machine_count} machines")
        return faults
