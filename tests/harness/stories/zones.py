"""The story of a zone that is taken away, and of a change that goes through all nodes, on a cluster over three zones of
a served local cloud: by HTTP alone, as a person has it, and as somebody reads it who only follows the events."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from local.aws.accounts import ACME_ACCOUNT
from tests.harness.stories.pools import administrator

if TYPE_CHECKING:
    from pathlib import Path

    from local.kubernetes.real.client import Client
    from local.testing.serving import Served

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
MEMBERS, POOL = "control-plane", "workers"
SECONDS = 420
"""What healing may take: everything in it is far below that, on a machine that does other things too."""
Object = dict[str, Any]


def zoned_body(name: str, nodes: int, **worker: Any) -> Object:
    """A cluster of three members over three zones, with a pool of so many nodes spread over them."""
    groups = [
        {"name": MEMBERS, "role": "control", "min_size": 3, "max_size": 3, "instance_types": ["t3.xlarge"]},
        {
            "name": POOL, "role": "worker", "min_size": nodes, "max_size": nodes, "instance_types": ["t3.large"],
            "zones": list(ZONES), **worker,
        },
    ]  # fmt: skip
    settings: Object = {"region_name": "us-east-1", "zones": list(ZONES), "key_pair": "my-key"}
    settings["autoscaler_node_groups"] = groups
    return {
        "name": name, "description": "Three zones", "cloud_account_id": 1, "cluster_type": "k8s", "settings": settings,
    }  # fmt: skip


@contextmanager
def zone_down(plan: Path, zone: str) -> Iterator[None]:
    """The zone is taken away: the served local cloud follows its plan of faults."""
    document = json.loads(plan.read_text(encoding="utf-8"))

    def write(zones: Sequence[str]) -> None:
        part = plan.with_suffix(".part")
        part.write_text(json.dumps({**document, "zones_down": list(zones)}), encoding="utf-8")
        part.replace(plan)

    write([zone])
    try:
        yield
    finally:
        write([])


@dataclass
class Follower:
    """Reads the nodes of one pool by nothing but ``GET /v1/events?after=``: phase and zone of each by its claim."""

    served: Served
    cluster_id: str
    phases: dict[str, tuple[str, str]] = field(default_factory=dict)
    last_id: str = f"evt_{'0' * 26}"
    count: int = 0

    def moments(self) -> Iterator[str]:
        """The moments of what has come since, in order; at each of them ``phases`` is as all of its events say. Claims
        that one transaction makes are of one moment, and in no order."""
        for moment, events in groupby(self._news(), lambda event: str(event["time"])):
            for event in events:
                self.phases[event["subject"]] = (str(event["phase"]["after"]), str(event["zone"]))
                self.count += 1
            yield moment

    def _news(self) -> list[Object]:
        """The events of the pool's nodes that have come since, in order."""
        events: list[Object] = []
        while True:
            page = self.served.call("GET", f"/v1/events?page_size=200&after={self.last_id}").body
            events += page["items"]
            self.last_id = events[-1]["id"] if events else self.last_id
            if page["next_page_token"] is None:
                break
        here = (self.cluster_id, POOL)
        return [
            event
            for event in events
            if event["detail_type"] == "NodeClaim" and (event["cluster_id"], event["pool"]) == here
        ]

    @property
    def ready(self) -> int:
        """Number of nodes that are ready."""
        return sum(phase == "Available" for phase, _ in self.phases.values())

    @property
    def zones(self) -> Counter[str]:
        """Number of nodes that are, or come, in each zone."""
        return Counter(zone for phase, zone in self.phases.values() if phase in ("Pending", "Available"))


@dataclass
class ZoneStory:
    """One cluster, and a caller of its own API."""

    served: Served
    plan: Path
    cluster: Object
    kube: Client
    looks: int = 0
    fewest_members: int = 3

    @classmethod
    def create(cls, served: Served, plan: Path, name: str, nodes: int, **worker: Any) -> ZoneStory:
        """A cluster that stands, with all of its members and nodes."""
        answer = served.call("POST", "/v1/clusters", zoned_body(name, nodes, **worker))
        assert answer.status == 202, answer.text
        assert served.operation(answer.body["operation_id"])["status"] == "succeeded"
        story = cls(served, plan, answer.body, administrator(served, answer.body, plan.parent))
        served.wait("the cluster", lambda: story.is_whole(nodes), SECONDS)
        return story

    def good(self, method: str, path: str, body: Any = None) -> Any:
        """The body of an answer that says yes."""
        answer = self.served.call(method, f"/v1/{path}", body)
        assert answer.status in (200, 201, 202), answer.text
        return answer.body

    def claims(self, pool: str) -> list[Object]:
        """The claims of a pool that stay."""
        listed = self.good("GET", f"node-claims?cluster={self.cluster['id']}&page_size=200")["items"]
        return [each for each in listed if each["name"].startswith(f"{pool}-") and not each["deleting"]]

    def zones(self, pool: str) -> Counter[str]:
        """Number of nodes of the pool that are available in each zone."""
        return Counter(each["placement"]["zones"][0] for each in self.claims(pool) if each["phase"] == "Available")

    def operation(self) -> Object:
        """The operation that was the cluster's last."""
        current = self.good("GET", f"clusters/{self.cluster['id']}")
        document: Object = self.good("GET", f"operations/{current['operation_id']}")
        return document

    def is_whole(self, nodes: int, members: int = 3) -> bool:
        """Whether members and nodes are all there, and nobody is at work."""
        counts = {pool: sum(self.zones(pool).values()) for pool in (MEMBERS, POOL)}
        return counts == {MEMBERS: members, POOL: nodes} and self.operation()["status"] == "succeeded"

    def members(self) -> list[Object]:
        """The claims of members, that of the first one before the others: it has made the cluster."""
        return sorted(self.claims(MEMBERS), key=lambda claim: str(claim["node_name"]).startswith(MEMBERS))

    def member_zone(self, *, first: bool) -> str:
        """The zone of the first member or of another one."""
        (zone,) = self.members()[0 if first else 1]["placement"]["zones"]
        return str(zone)

    def serves(self) -> bool:
        """Whether most members run. The cluster's API answers, or it raises."""
        assert self.kube.call("GET", "/api/v1/nodes")["items"]
        ids = [claim["machine_id"] for claim in self.claims(MEMBERS) if claim["machine_id"]]
        reservations = self.served.aws("ec2", ACME_ACCOUNT).describe_instances(InstanceIds=ids)["Reservations"]
        states = Counter(each["State"]["Name"] for group in reservations for each in group["Instances"])
        self.fewest_members = min(self.fewest_members, states["running"])
        self.looks += 1
        return states["running"] >= 2

    def loses(self, zone: str, nodes: int) -> Object:
        """The zone goes: members and nodes heal into the others. It comes back: what is launched later is spread over
        it again. Returns figures."""
        healthy = [name for name in ZONES if name != zone]
        with zone_down(self.plan, zone):
            began = time.monotonic()
            noticed = self._until(lambda: self.operation()["kind"] == "change_cluster" and self._running(), "notice")
            self._until(lambda: not self.zones(MEMBERS)[zone] and self.is_whole(nodes), "healing")
            healed = time.monotonic() - began
            members, workers = self.zones(MEMBERS), self.zones(POOL)
            assert set(members) == set(workers) == set(healthy), (members, workers)
            assert sorted(members.values()) == [1, 2]
            assert max(workers.values()) - min(workers.values()) <= 1, workers
        self.scale(nodes + 2)
        self._until(lambda: self.is_whole(nodes + 2), "the zone")
        assert self.zones(POOL)[zone] == 2, "what is launched later stands in the zone that has the fewest"
        assert self.zones(POOL) - workers == Counter({zone: 2}), "nothing was moved"
        assert self.fewest_members >= 2
        return {
            "noticed_seconds": round(noticed, 1), "healed_seconds": round(healed, 1), "looks": self.looks,
            "members": dict(members), "nodes": dict(workers),
        }  # fmt: skip

    def scale(self, nodes: int) -> None:
        """The pool is to have so many nodes."""
        self.change({"floor": nodes, "limits": {"nodes": nodes}})

    def change(self, body: Object) -> None:
        """A ``PATCH`` of the pool, which begins an operation of its cluster."""
        answer = self.served.change("PATCH", f"/v1/clusters/{self.cluster['id']}/pools/{POOL}", body)
        assert answer.status in (200, 202), answer.text

    def rolls(self, nodes: int, unavailable: int) -> Object:
        """Every node of the pool is replaced, because its labels change. Who only follows the events sees at each of
        them so many nodes ready as there are to be, less the unavailable, and zones that are even. Returns figures."""
        follower = Follower(self.served, self.cluster["id"])
        self.served.wait("the events", lambda: list(follower.moments()) and follower.ready == nodes, 60)
        before = {claim["id"] for claim in self.claims(POOL)}
        began, events, moments = time.monotonic(), follower.count, list[tuple[int, int]]()
        self.change({"labels": {"tier": "new"}})

        def look_at(moment: str) -> None:
            zones = [follower.zones[zone] for zone in ZONES]
            moments.append((follower.ready, max(zones) - min(zones)))
            assert follower.ready >= nodes - unavailable, (moment, follower.phases)
            assert max(zones) - min(zones) <= 1, (moment, follower.zones)

        def follow() -> bool:
            for moment in follower.moments():
                look_at(moment)
            is_over = self.operation()["status"] != "running" and not before & self._there(follower)
            # Events are told five seconds late, and a node of the surge may leave last.
            return is_over and follower.ready == sum(follower.zones.values()) == nodes

        def look() -> bool:
            # The minute's schedule, which keeps real time here.
            self.served.aws("lambda").invoke(FunctionName="stockyard-dev-disruptor", Payload=b"{}")
            return follow()

        self.served.wait("the change", look, 60 * nodes)
        assert self.operation()["status"] == "succeeded"
        assert not before & {claim["id"] for claim in self.claims(POOL)}
        assert {claim["node_labels"]["tier"] for claim in self.claims(POOL)} == {"new"}
        return {
            "nodes": nodes, "seconds": round(time.monotonic() - began, 1), "events": follower.count - events,
            "fewest_ready": min(ready for ready, _ in moments), "most_uneven": max(uneven for _, uneven in moments),
        }  # fmt: skip

    @staticmethod
    def _there(follower: Follower) -> set[str]:
        """The claims that the follower has not seen go."""
        return {claim for claim, (phase, _) in follower.phases.items() if phase in ("Pending", "Available")}

    def member_is_silent(self) -> Object:
        """A member's machine is stopped: it is there, and answers nobody. It is replaced once that has lasted. Returns
        figures."""
        victim = self.members()[0]
        self.served.aws("ec2", ACME_ACCOUNT).stop_instances(InstanceIds=[victim["machine_id"]])

        def is_noted() -> bool:
            conditions = self.good("GET", f"node-claims/{victim['id']}")["conditions"]
            return any(each["type"] == "HealthCheckSucceeded" and each["status"] == "False" for each in conditions)

        noticed = self._until(is_noted, "the condition")

        def begins() -> bool:
            self.served.aws("lambda").invoke(FunctionName="stockyard-dev-reaper", Payload=b"{}")
            return victim["id"] not in {claim["id"] for claim in self.claims(MEMBERS)}

        replaced = self._until(begins, "the replacement")
        self._until(lambda: self.is_whole(sum(self.zones(POOL).values())), "healing")
        current = self.good("GET", f"clusters/{self.cluster['id']}")["conditions"]
        assert {each["type"]: each["status"] for each in current}["ControlPlaneHealthy"] == "True"
        return {"noticed_seconds": round(noticed, 1), "replaced_seconds": round(replaced, 1)}

    def _running(self) -> bool:
        return str(self.operation()["status"]) == "running"

    def _until(self, reached: Callable[[], bool], subject: str) -> float:
        """Wait for it; at each look the control plane serves. Returns how many seconds it took."""
        began = time.monotonic()

        def look() -> bool:
            assert self.serves(), "etcd has lost its quorum"
            return reached()

        self.served.wait(subject, look, SECONDS)
        return time.monotonic() - began
