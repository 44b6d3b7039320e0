"""Claims that EC2 launches together, worked on step by step, with a fault at one write or call and an event at another.

EC2 is played by a dictionary, so that thousands of lives are cheap: what it does here is what ``test_together`` sees of
the local cloud's. What was just made is hidden from a search for half a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, TypeVar

import boto3

from local.memory_store import MemoryStore
from stockyard.domain.ids import client_id
from stockyard.domain.launch_groups import share
from stockyard.domain.offers import InstanceOffer, RegionOffers
from stockyard.domain.records import Cluster, LaunchGroup, NodeClaim, NodeEnvironment, Operation
from stockyard.errors import Conflict, Fenced, StockyardError, VendorNotFound, VendorRefused, VendorTimeout
from stockyard.lifecycle.operation import phase_of
from stockyard.operations.claims import ClaimFence
from stockyard.operations.create_claim import NewClaim, create_claim
from stockyard.operations.delete_claim import delete_claim
from stockyard.operations.every import every
from stockyard.operations.fail_node import compensate, fail
from stockyard.operations.node_work import environment_id
from stockyard.operations.run_node_phase import run_node_phase
from stockyard.ports import Create, Write
from stockyard.providers.nodes.ec2.place import Place
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes

T = TypeVar("T")
CLUSTER = "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV"
TYPES = (
    InstanceOffer("m6i.large", 2, 8192, "x86_64", 3, 10, 0.09),
    InstanceOffer("m5.large", 2, 8192, "x86_64", 3, 10, 0.1),
)
OFFERS = RegionOffers("us-east-1", "2026", {one.name: one for one in TYPES})
HIDDEN = 30
LATE = 100
"""Seconds after which a call comes about whose worker waited in vain."""
DELETION = ("settle", "drain", "terminate", "release")
ALIVE = frozenset({"running"})


class Died(StockyardError):
    """The worker's process ended."""

    workflow_name = "Runtime.ExitError"


@dataclass
class FakeEc2:
    """As much of EC2 as a launch and its end need. The first fleet gets at most ``first`` machines."""

    strike: Callable[[str, Callable[[], Any]], Any]
    now: Callable[[], float]
    first: int = 1000
    machines: dict[str, dict[str, Any]] = field(default_factory=dict)
    templates: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def get(self, service: str, region: str, *, once: bool = False) -> FakeEc2:
        """The session's clients: this one."""
        return self

    def alive(self) -> list[str]:
        return [name for name, one in self.machines.items() if one["State"]["Name"] in ALIVE]

    # --- what changes something ---

    def create_fleet(self, **asked: Any) -> Any:
        self.calls.append("create_fleet")
        return self.strike("create_fleet", lambda: self._fleet(asked))

    def _fleet(self, asked: Any) -> Any:
        token = asked["ClientToken"]
        if token not in self.answers:
            self.answers[token] = self._made(asked)
        return self.answers[token]

    def _made(self, asked: Any) -> Any:
        left = asked["TargetCapacitySpecification"]["TotalTargetCapacity"]
        (tags,) = [one["Tags"] for one in asked["TagSpecifications"] if one["ResourceType"] == "instance"]
        made, errors = [], []
        for way in asked["LaunchTemplateConfigs"][0]["Overrides"]:
            ids = []
            while left and (self.answers or len(self.machines) < self.first):
                name = f"i-{len(self.machines):017x}"
                state = {"Name": "running"}
                zone = {"AvailabilityZone": "us-east-1a"}
                self.machines[name] = {
                    "InstanceId": name, "State": state, "Tags": tags, "InstanceType": way["InstanceType"],
                    "Placement": zone, "shown_at": self.now() + HIDDEN,
                }  # fmt: skip
                ids.append(name)
                left -= 1
            place = {"Overrides": way}
            if ids:
                made.append(
                    {"InstanceIds": ids, "InstanceType": way["InstanceType"], "LaunchTemplateAndOverrides": place}
                )
            if left:
                errors.append({"ErrorCode": "InsufficientInstanceCapacity", "LaunchTemplateAndOverrides": place})
        return {"Instances": made, "Errors": errors}

    def terminate_instances(self, InstanceIds: list[str]) -> Any:  # noqa: N803
        return self.strike("terminate_instances", lambda: self._ended(InstanceIds))

    def _ended(self, names: list[str]) -> None:
        for name in names:
            if name not in self.machines:
                raise VendorNotFound("no such machine")
            self.machines[name]["State"] = {"Name": "terminated"}

    def create_launch_template(self, **asked: Any) -> Any:
        def make() -> None:
            tags = asked["TagSpecifications"][0]["Tags"]
            name = asked["LaunchTemplateName"]
            self.templates[name] = {"LaunchTemplateId": f"lt-{name}", "LaunchTemplateName": name, "Tags": tags}

        return self.strike("create_launch_template", make)

    def delete_launch_template(self, LaunchTemplateId: str) -> None:  # noqa: N803
        del self.templates[LaunchTemplateId.removeprefix("lt-")]

    # --- what shows something ---

    def describe_launch_templates(self, LaunchTemplateNames: list[str]) -> Any:  # noqa: N803
        return {"LaunchTemplates": [self.templates[name] for name in LaunchTemplateNames if name in self.templates]}

    def describe_instances(self, InstanceIds: list[str]) -> Any:  # noqa: N803
        if not all(name in self.machines for name in InstanceIds):
            raise VendorNotFound("no such machine")
        return {"Reservations": [{"Instances": [self.machines[name] for name in InstanceIds]}]}

    def get_paginator(self, operation: str) -> Any:
        return SimpleNamespace(paginate=lambda **asked: [self._page(operation, asked["Filters"])])

    def _page(self, operation: str, filters: list[dict[str, Any]]) -> Any:
        wanted = {(one["Name"].removeprefix("tag:"), one["Values"][0]) for one in filters}

        def carries(one: dict[str, Any]) -> bool:
            return wanted <= {(tag["Key"], tag["Value"]) for tag in one["Tags"]}

        if operation == "describe_launch_templates":
            return {"LaunchTemplates": [one for one in self.templates.values() if carries(one)]}
        shown = [one for one in self.machines.values() if one["shown_at"] <= self.now() and carries(one)]
        return {"Reservations": [{"Instances": shown}]}


@dataclass
class _Store:
    store: MemoryStore
    strike: Callable[[str, Callable[[], Any]], Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def commit(self, *writes: Write) -> None:
        self.strike("commit", lambda: self.store.commit(*writes))


@dataclass
class FleetLife:
    """``count`` equal claims. Write or call number ``site`` fails by ``fault``; ``event`` comes before the ``at``-th.

    It is the number of a claim that is deleted, or ``others``: every other claim's worker does a step there.
    """

    site: int = -1
    fault: str = ""
    at: int = -1
    event: int | str = ""
    count: int = 3
    first: int = 1000
    seen: list[str] = field(default_factory=list)
    fired: bool = False
    happened: bool = False
    working: str = ""
    late: list[tuple[float, Callable[[], Any]]] = field(default_factory=list)
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
        place = Place({"subnet-1": "us-east-1a"}, ("sg-1",), "profile", {"amd64": "ami-1"})
        environment = NodeEnvironment(
            environment_id(CLUSTER, provider.id), CLUSTER, provider.id, "aws", now, now, outputs=place.facts()
        )
        self.plain.commit(Create(cluster), Create(environment))
        self.cloud = FakeEc2(self.strike, lambda: self.clock.now().timestamp(), self.first)
        source = Ec2Nodes(
            Ec2NodesConfig("vantage", "1.34", "https://api.example.test", 60), boto3.Session, lambda _: OFFERS
        )
        source._sessions = SimpleNamespace(of=lambda account, name: self.cloud)  # type: ignore[assignment]
        self.services = replace(self.nodes.services, sources={"ec2": source})
        self.nodes.services = self.services
        self.struck = replace(self.services, store=_Store(self.plain, self.strike))  # type: ignore[arg-type]

    # --- faults -------------------------------------------------------------------------------------------------------

    def strike(self, what: str, do: Callable[[], T]) -> T:
        """A write or a call of a worker."""
        if not self.working:
            return do()
        number = len(self.seen)
        self.seen.append(what)
        if number == self.at:
            self._happen()
        mine, self.fired = number == self.site, self.fired or number == self.site
        if mine and self.fault == "before":
            raise Died("before the call")
        if mine and self.fault == "late":
            self.late.append((self.clock.now().timestamp() + LATE, do))
            raise VendorTimeout("no answer yet")
        if mine and self.fault == "refused":
            raise VendorRefused("never")
        result = do()
        if mine and self.fault == "after":
            raise Died("after the call")
        if mine and self.fault == "timeout":
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
        """The claims, placed by one pass."""
        for number in range(self.count):
            create_claim(self.services, NewClaim(name=f"w-{number}", cluster_ref=CLUSTER), "user:ann")
        self.nodes.schedule()

    def delete(self, number: int) -> None:
        """A person gives the node of that number back."""
        for claim in self.claims():
            if claim.name == f"w-{number}" and not claim.deleting:
                delete_claim(self.services, claim.id, "user:ann")

    def work(self, most: int = 400) -> None:
        """Step every claim's worker in turn until all have their machine or are gone."""
        for _ in range(most):
            if any(claim.due_at for claim in self.claims()):
                self.nodes.schedule()
            left = [self._step(claim) for claim in self.claims()]
            if all(wait == 0 for wait in left):
                return
            self.clock.advance(max(1, min(wait for wait in left if wait)))
            now = self.clock.now().timestamp()
            for moment, do in [one for one in self.late if one[0] <= now]:
                self.late.remove((moment, do))
                do()
        raise AssertionError(f"it does not end: {[(c.name, c.phase, c.message, c.deleting) for c in self.claims()]}")

    def _step(self, given: NodeClaim) -> int:
        """One step of a claim's workflow. Seconds until the next; 0 when there is none."""
        claim = self.plain.get(NodeClaim, given.id)
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
        fence = ClaimFence(claim.id, operation.id, operation.attempt)
        try:
            step = run_node_phase(self.struck, fence, todo[0])
        except (Died, VendorTimeout, Conflict, Fenced):
            return 1
        except StockyardError as error:
            return self._failed(fence, error)
        finally:
            self.working = before
        return 1 if step.done else max(1, step.wait)

    def _failed(self, fence: ClaimFence, error: StockyardError) -> int:
        self.failed.append(f"{fence.claim_id}: {type(error).__name__}: {error}")
        step = compensate(self.services, fence)
        if not step.done:
            return max(1, step.wait)
        fail(self.services, fence, {"Error": type(error).__name__, "Cause": str(error)})
        return 1

    # --- the judge ----------------------------------------------------------------------------------------------------

    def wrong(self) -> Iterator[str]:
        """What must not be while all live claims have been served."""
        live = self.claims()
        owned = [claim.machine_id for claim in live]
        if any(claim.deleting or not claim.machine_id for claim in live):
            yield f"a claim is without a machine: {[(c.name, c.phase, c.message) for c in live]} {self.failed}"
        if sorted(owned) != sorted(self.cloud.alive()):
            yield f"machines {self.cloud.alive()} are there, {owned} are the claims'"
        for group in self.groups():
            strangers = set(group.members) - {claim.id for claim in live}
            if strangers or any(share(group, member).in_flight for member in group.members):
                yield f"{group} has members that are gone, or a call under way"

    def end(self) -> Iterator[str]:
        """Delete what is left, and say what remains."""
        for claim in self.claims():
            delete_claim(self.services, claim.id, "user:ann")
        self.work()
        if self.cloud.alive() or self.claims() or self.groups():
            yield f"left: {self.cloud.alive()}, {self.claims()}, {self.groups()}"
