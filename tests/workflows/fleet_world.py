"""Claims that EC2 launches together, run step by step, with a fault at one write or call and an event at another.

EC2 is a dictionary here, so that thousands of lives are cheap. It behaves as ``test_together`` shows of the local
cloud's EC2. A new machine is hidden from searches for half a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, TypeVar

import boto3

from local.testing.memory_store import MemoryStore
from stockyard.domain.nodes.launch_groups import share
from stockyard.domain.nodes.offers import InstanceOffer, RegionOffers
from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.records import Cluster, LaunchGroup, NodeClaim, NodeEnvironment, Operation
from stockyard.domain.values.ids import client_id
from stockyard.errors import Conflict, Fenced, StockyardError, VendorNotFound, VendorRefused, VendorTimeout
from stockyard.lifecycle.operation import phase_of
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.fail import compensate, fail
from stockyard.operations.engine.run_phase import run_phase
from stockyard.operations.listing import every
from stockyard.operations.node_claims.create import create_claim
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.node_claims.phases import RUNNER
from stockyard.operations.node_claims.work import environment_id
from stockyard.ports import Create, Write
from stockyard.providers.nodes.ec2.node_class import NodeClass
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes

T = TypeVar("T")
CLUSTER = "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV"
TYPES = (
    InstanceOffer("m6i.large", 2, 8192, "x86_64", 3, 10, 0.09),
    InstanceOffer("m5.large", 2, 8192, "x86_64", 3, 10, 0.1),
)
OFFERS = RegionOffers("us-east-1", "2026", {offer.name: offer for offer in TYPES}, {"gp3": 0.0})
HIDDEN = 30
LATE = 100
"""Seconds after which a late call takes effect. Its worker has had a timeout long before."""
DELETION = ("settle", "drain", "terminate", "release")
ALIVE = frozenset({"running"})


class Died(StockyardError):
    """The worker's process ended."""

    workflow_name = "Runtime.ExitError"


@dataclass
class FakeEc2:
    """The parts of EC2 that launch and termination need. The first fleet gets at most ``first`` machines."""

    inject: Callable[[str, Callable[[], Any]], Any]
    now: Callable[[], float]
    first: int = 1000
    machines: dict[str, dict[str, Any]] = field(default_factory=dict)
    templates: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def get(self, service: str, region: str, config: object = None) -> FakeEc2:
        """The client of a service. This object is the client of every service."""
        return self

    def alive(self) -> list[str]:
        return [name for name, machine in self.machines.items() if machine["State"]["Name"] in ALIVE]

    # --- calls that change something ---

    def create_fleet(self, **request: Any) -> Any:
        self.calls.append("create_fleet")
        return self.inject("create_fleet", lambda: self._fleet(request))

    def _fleet(self, request: Any) -> Any:
        token = request["ClientToken"]
        if token not in self.answers:
            self.answers[token] = self._launch(request)
        return self.answers[token]

    def _launch(self, request: Any) -> Any:
        remaining = request["TargetCapacitySpecification"]["TotalTargetCapacity"]
        (tags,) = [
            specification["Tags"]
            for specification in request["TagSpecifications"]
            if specification["ResourceType"] == "instance"
        ]
        launched, errors = [], []
        for way in request["LaunchTemplateConfigs"][0]["Overrides"]:
            ids = []
            while remaining and (self.answers or len(self.machines) < self.first):
                name = f"i-{len(self.machines):017x}"
                state = {"Name": "running"}
                zone = {"AvailabilityZone": "us-east-1a"}
                self.machines[name] = {
                    "InstanceId": name, "State": state, "Tags": tags, "InstanceType": way["InstanceType"],
                    "Placement": zone, "shown_at": self.now() + HIDDEN,
                }  # fmt: skip
                ids.append(name)
                remaining -= 1
            override = {"Overrides": way}
            if ids:
                launched.append(
                    {"InstanceIds": ids, "InstanceType": way["InstanceType"], "LaunchTemplateAndOverrides": override}
                )
            if remaining:
                errors.append({"ErrorCode": "InsufficientInstanceCapacity", "LaunchTemplateAndOverrides": override})
        return {"Instances": launched, "Errors": errors}

    def terminate_instances(self, InstanceIds: list[str]) -> Any:  # noqa: N803
        return self.inject("terminate_instances", lambda: self._terminate(InstanceIds))

    def _terminate(self, names: list[str]) -> None:
        for name in names:
            if name not in self.machines:
                raise VendorNotFound("no such machine")
            self.machines[name]["State"] = {"Name": "terminated"}

    def create_launch_template(self, **request: Any) -> Any:
        def make() -> None:
            tags = request["TagSpecifications"][0]["Tags"]
            name = request["LaunchTemplateName"]
            self.templates[name] = {"LaunchTemplateId": f"lt-{name}", "LaunchTemplateName": name, "Tags": tags}

        return self.inject("create_launch_template", make)

    def delete_launch_template(self, LaunchTemplateId: str) -> None:  # noqa: N803
        del self.templates[LaunchTemplateId.removeprefix("lt-")]

    # --- calls that only read ---

    def describe_launch_templates(self, LaunchTemplateNames: list[str]) -> Any:  # noqa: N803
        return {"LaunchTemplates": [self.templates[name] for name in LaunchTemplateNames if name in self.templates]}

    def describe_instances(self, InstanceIds: list[str]) -> Any:  # noqa: N803
        if not all(name in self.machines for name in InstanceIds):
            raise VendorNotFound("no such machine")
        return {"Reservations": [{"Instances": [self.machines[name] for name in InstanceIds]}]}

    def get_paginator(self, operation: str) -> Any:
        return SimpleNamespace(paginate=lambda **request: [self._page(operation, request["Filters"])])

    def _page(self, operation: str, filters: list[dict[str, Any]]) -> Any:
        required_tags = {(tag_filter["Name"].removeprefix("tag:"), tag_filter["Values"][0]) for tag_filter in filters}

        def has_required_tags(resource: dict[str, Any]) -> bool:
            return required_tags <= {(tag["Key"], tag["Value"]) for tag in resource["Tags"]}

        if operation == "describe_launch_templates":
            return {
                "LaunchTemplates": [template for template in self.templates.values() if has_required_tags(template)]
            }
        visible = [
            machine
            for machine in self.machines.values()
            if machine["shown_at"] <= self.now() and has_required_tags(machine)
        ]
        return {"Reservations": [{"Instances": visible}]}


@dataclass
class _FaultyStore:
    store: MemoryStore
    inject: Callable[[str, Callable[[], Any]], Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def commit(self, *writes: Write) -> None:
        self.inject("commit", lambda: self.store.commit(*writes))


@dataclass
class FleetLife:
    """``count`` equal claims. Write or call number ``site`` fails by ``fault``; ``event`` happens before number ``at``.

    The event is a number or ``others``. A number deletes the claim with this position in the order in which scheduler
    and launch take the claims, so that a life does not depend on the ids. ``others``: every other claim's worker does
    a step.
    """

    site: int = -1
    fault: str = ""
    at: int = -1
    event: int | str = ""
    count: int = 3
    first: int = 1000
    call_names: list[str] = field(default_factory=list)
    fired: bool = False
    happened: bool = False
    order: list[str] = field(default_factory=list)
    """The ids of the claims."""
    working: str = ""
    late: list[tuple[datetime, Callable[[], Any]]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        world = make_world()
        self.nodes = Nodes.of(world.registry, world.services, world.clock)
        self.clock = world.clock
        self.plain = world.registry.store("acme")
        now = world.services.now()
        cluster = Cluster(
            CLUSTER, "c", "", "k8s", "aws", 1, client_id("acme", CLUSTER, "c"), "ready", {"region_name": "us-east-1"},
            now, now,
        )  # fmt: skip
        block = {"cloudAccount": 1, "region": "us-east-1", "capacityTypes": ["on-demand"], "instanceTypes": ["*"]}
        provider = self.nodes.provider("aws", kind="ec2", block=block)
        node_class = NodeClass({"subnet-1": "us-east-1a"}, ("sg-1",), "profile", {"amd64": "ami-1"})
        environment = NodeEnvironment(
            environment_id(CLUSTER, provider.id), CLUSTER, provider.id, "aws", now, now, outputs=node_class.facts()
        )
        self.plain.commit(Create(cluster), Create(environment))
        self.cloud = FakeEc2(self.inject, lambda: self.clock.now().timestamp(), self.first)
        source = Ec2Nodes(Ec2NodesConfig("vantage", "https://api.example.test", 60), boto3.Session, lambda _: OFFERS)
        source._sessions = SimpleNamespace(of=lambda *_: self.cloud)
        self.services = with_ports(self.nodes.services, node_sources={"ec2": source})
        self.nodes.services = self.services
        self.faulty_services = replace(self.services, store=_FaultyStore(self.plain, self.inject))

    # --- faults -------------------------------------------------------------------------------------------------------

    def inject(self, name: str, do: Callable[[], T]) -> T:
        """Does a write or a call of a worker, with the event and the fault of this life."""
        if not self.working:
            return do()
        number = len(self.call_names)
        self.call_names.append(name)
        if number == self.at:
            self._happen()
        at_site, self.fired = number == self.site, self.fired or number == self.site
        if at_site and self.fault == "before":
            raise Died("before the call")
        if at_site and self.fault == "late":
            self.late.append((self.clock.now() + timedelta(seconds=LATE), do))
            raise VendorTimeout("no answer yet")
        if at_site and self.fault == "refused":
            raise VendorRefused("never")
        result = do()
        if at_site and self.fault == "after":
            raise Died("after the call")
        if at_site and self.fault == "timeout":
            raise VendorTimeout("no answer")
        return result

    def _happen(self) -> None:
        self.happened = True
        worker = self.working
        if self.event == "others":
            for claim in self.claims():
                if claim.id != worker:
                    self._step(claim)
        elif isinstance(self.event, int):
            self.working = ""
            self.delete(self.event)
        self.working = worker

    # --- the life -----------------------------------------------------------------------------------------------------

    def claims(self) -> list[NodeClaim]:
        return list(every(self.plain, NodeClaim))

    def groups(self) -> list[LaunchGroup]:
        return list(every(self.plain, LaunchGroup))

    def create(self) -> None:
        """Creates the claims, and lets one scheduler pass bind them."""
        for number in range(self.count):
            create_claim(self.services, NewClaim(name=f"w-{number}", cluster_ref=CLUSTER), "user:ann")
        self.order = [claim.id for claim in self.claims()]
        self.nodes.schedule()

    def delete(self, number: int) -> None:
        """A person deletes the claim at this position of the order."""
        claim = self.plain.get(NodeClaim, self.order[number])
        if claim is not None and not claim.deleting:
            delete_claim(self.services, claim.id, "user:ann")

    def work(self, most: int = 400) -> None:
        """Steps every claim's worker in turn until all claims have their machine or are deleted."""
        for _ in range(most):
            if any(claim.due_at for claim in self.claims()):
                self.nodes.schedule()
            waits = [self._step(claim) for claim in self.claims()]
            if all(wait == 0 for wait in waits):
                return
            self._pass(max(1, min(wait for wait in waits if wait)))
        raise AssertionError(
            f"the life does not end: {[(c.name, c.phase, c.message, c.deleting) for c in self.claims()]}"
        )

    def _pass(self, seconds: int) -> None:
        """Advances the clock. A late call takes effect at its own moment, even within a longer wait, because a worker
        lives no longer than the product assumes."""
        end = self.clock.now() + timedelta(seconds=seconds)
        for moment, do in sorted(self.late, key=lambda late: late[0]):
            if moment <= end:
                self.late.remove((moment, do))
                self.clock.moment = max(self.clock.moment, moment)
                do()
        self.clock.moment = end

    def _step(self, listed: NodeClaim) -> int:
        """Does one step of a claim's workflow. Returns the seconds until the next step, 0 when there is none."""
        claim = self.plain.get(NodeClaim, listed.id)
        if claim is None or (claim.phase == "Failed" and not claim.deleting):
            return 0
        if claim.due_at is not None:
            return 30
        operation = self.plain.get(Operation, str(claim.operation_id))
        assert operation is not None
        phases = DELETION if claim.deleting else ("launch",)
        todo = [name for name in phases if phase_of(operation, name).state != "succeeded"]
        if not todo:
            return 0
        before, self.working = self.working, claim.id
        fence = Fence(NodeClaim, claim.id, operation.id, operation.attempt)
        try:
            step = run_phase(RUNNER, self.faulty_services, fence, todo[0])
        except (Died, VendorTimeout, Conflict, Fenced):
            return 1
        except StockyardError as error:
            return self._failed(fence, error)
        finally:
            self.working = before
        return 1 if step.done else max(1, step.wait)

    def _failed(self, fence: Fence[NodeClaim], error: StockyardError) -> int:
        self.failed.append(f"{fence.subject_id}: {type(error).__name__}: {error}")
        step = compensate(RUNNER, self.services, fence)
        if not step.done:
            return max(1, step.wait)
        fail(RUNNER, self.services, fence, {"Error": type(error).__name__, "Cause": str(error)})
        return 1

    # --- the judge ----------------------------------------------------------------------------------------------------

    def wrong(self) -> Iterator[str]:
        """The faults of a life whose remaining claims have all been served."""
        live = self.claims()
        owned = [claim.machine_id for claim in live]
        if any(claim.deleting or not claim.machine_id for claim in live):
            yield f"a claim is without a machine: {[(c.name, c.phase, c.message) for c in live]} {self.failed}"
        if sorted(owned) != sorted(self.cloud.alive()):
            yield f"machines {self.cloud.alive()} exist, {owned} are the claims'"
        for group in self.groups():
            strangers = set(group.members) - {claim.id for claim in live}
            if strangers or any(share(group, member).in_flight for member in group.members):
                yield f"{group} has members that are gone, or a call under way"

    def end(self) -> Iterator[str]:
        """Deletes all claims, and yields what remains after that."""
        for claim in self.claims():
            delete_claim(self.services, claim.id, "user:ann")
        self.work()
        if self.cloud.alive() or self.claims() or self.groups():
            yield f"left: {self.cloud.alive()}, {self.claims()}, {self.groups()}"
