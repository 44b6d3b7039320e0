"""The level ``cluster``: steps in a served cluster with its agent, in virtual time, and what has to come of them.

What is expected has to be so when ``within_seconds`` are over. Claims are counted from the end of the last ``until``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values.requirements import INSTANCE_TYPE
from stockyard.lifecycle.nodes.node_claim import AVAILABLE
from stockyard.operations.fleet.disruption.record import ABOUT
from tests.conformance.bug_levels.bench import Bench
from tests.conformance.bug_levels.cluster_steps import Steps
from tests.conformance.bug_levels.plane import CLAIM
from tests.conformance.bug_levels.reading import (
    Different,
    Json,
    absent,
    check_fields,
    counts,
    judge,
    listed,
    names_of,
)
from tests.conformance.bug_levels.yard import Yard

FIELDS = frozenset({"steps"})
PATIENCE = 300
"""How many seconds an ``until`` waits."""
GRACE = 30
"""For how many seconds a pod may wait, where a case does not say it, before what is said of it has to be true: an agent
posts, a pass looks, and a claim is on its way."""
WITHIN = 60


def play(bench: Bench, case: Mapping[str, Json]) -> None:
    """Play one case. Raises ``Different`` or ``Unreadable``."""
    Played(Yard(bench), case["expected"]).play(case["steps"])


@dataclass
class Played:
    """A case that is being played."""

    yard: Yard
    expected: Mapping[str, Json]
    before: frozenset[str] = frozenset()
    """The claims that had been made when the last ``until`` ended."""
    told_events: int = 0
    """How many events had been told then."""
    waits: dict[str, int] = field(default_factory=dict)
    """For how many seconds each pod has waited."""
    never: str = ""
    """When something was so that may never be."""

    def __post_init__(self) -> None:
        self.checks: Mapping[str, Callable[[Json], str | None]] = {
            "new_claims": counts(lambda: len(self.yard.made - self.before)),
            "running": self._running,
            "assigned": self._assigned,
            "waiting": self._waiting,
            "type_of": lambda expected: self._each(expected, self._type_of),
            "placed_on": lambda expected: self._each(expected, self._placed_on),
            "claims_available": counts(lambda: sum(claim.phase == AVAILABLE for claim in self.yard.claims())),
            "empty_nodes": counts(lambda: len(self._empty())),
            "decision_reason_contains": lambda expected: absent(expected, self._decisions()),
        }

    def play(self, steps: list[Mapping[str, Json]]) -> None:
        """Do the steps, wait, and compare."""
        at_end = {"within_seconds": lambda _: None, "never": lambda _: self.never or None}
        check_fields("expected", self.expected, {*self.checks, *at_end})
        check_fields("never", self.expected.get("never", {}), ("waiting", "with_condition", "longer_than_seconds"))
        todo = Steps(self.yard, self._hold)
        for step in steps:
            todo.play(step)
        for _ in range(self.expected.get("within_seconds", WITHIN)):
            self._second()
        judge(self.expected, {**self.checks, **at_end})

    def _hold(self, wanted_state: Mapping[str, Json]) -> None:
        """Wait until all that is wanted is so."""
        check_fields("until", wanted_state, self.checks)
        for _ in range(PATIENCE):
            if all(self.checks[name](value) is None for name, value in wanted_state.items()):
                break
            self._second()
        else:
            answers = [f"{name} {self.checks[name](value)}" for name, value in wanted_state.items()]
            raise Different(f"until {dict(wanted_state)}: not within {PATIENCE} s, but {'; '.join(answers)}")
        self.before, self.told_events = frozenset(self.yard.made), len(self.yard.events)

    # --- what may never be --------------------------------------------------------------------------------------------

    def _second(self) -> None:
        self.yard.second()
        waiting = {pod["metadata"]["name"] for pod in self.yard.plane.all("pods") if not pod["spec"].get("nodeName")}
        self.waits = {name: self.waits.get(name, 0) + 1 for name in waiting}
        rule = self.expected.get("never")
        if rule is None or self.never:
            return
        seconds = max((self.waits.get(name, 0) for name in self._names(rule["waiting"])), default=0)
        least = rule.get("longer_than_seconds")
        if seconds <= (GRACE if least is None else least):
            return
        # Where a case does not say for how long, a pod may wait for a node that is on its way.
        if least is None and any(claim.phase != AVAILABLE and not claim.deleting for claim in self.yard.claims()):
            return
        if self._says(rule["with_condition"]):
            self.never = f"{rule['waiting']} waits for {seconds} s while {rule['with_condition']}"

    def _says(self, wanted_condition: Mapping[str, Json]) -> bool:
        """Whether the pool has the condition, or its cluster, which says it of all pools."""
        check_fields("with_condition", wanted_condition, ("pool", "type", "status"))
        store, status = self.yard.services.store, str(wanted_condition["status"])
        about = [pool for pool in store.list(Pool).items if pool.name == wanted_condition["pool"]] + list(
            store.list(Cluster).items
        )
        return any(
            each.type == wanted_condition["type"] and each.status == status
            for record in about
            for each in record.conditions
        )

    # --- what is so ---------------------------------------------------------------------------------------------------

    def _names(self, text: str) -> list[str]:
        """The names of an app's pods, or of the one pod."""
        return [pod["metadata"]["name"] for pod in self.yard.plane.pods_of(text)]

    def _running(self, expected: Json) -> str | None:
        lacking = []
        for name in names_of(expected):
            app, pods = self.yard.plane.apps.get(name), self.yard.plane.pods_of(name)
            count = app.replicas if app is not None else 1
            if sum(pod["status"].get("phase") == "Running" for pod in pods) < count:
                lacking.append(name)
        return f"{listed(lacking)} not running" if lacking else None

    def _assigned(self, expected: Json) -> str | None:
        assigned = {key.name for key in self.yard.plane.scheduling.assigned}
        lacking = [name for name in names_of(expected) if not set(self._names(name)) & assigned]
        return f"{listed(lacking)} not assigned" if lacking else None

    def _waiting(self, expected: Json) -> str | None:
        lacking = [name for name in names_of(expected) if not set(self._names(name)) & self.waits.keys()]
        return f"{listed(lacking)} not waiting" if lacking else None

    def _each(self, expected: Mapping[str, Json], read_value: Callable[[str], str]) -> str | None:
        came = {name: read_value(name) for name in expected}
        return None if all(came[name] in names_of(value) for name, value in expected.items()) else str(came)

    def _node_of(self, name: str) -> str:
        nodes = [pod["spec"]["nodeName"] for pod in self.yard.plane.pods_of(name) if pod["spec"].get("nodeName")]
        return str(nodes[0]) if nodes else ""

    def _type_of(self, name: str) -> str:
        node = self.yard.plane.nodes().get(self._node_of(name))
        return str(node["metadata"]["labels"].get(INSTANCE_TYPE)) if node is not None else "no node"

    def _placed_on(self, name: str) -> str:
        """The type that the claim of the pod's node says it was placed on."""
        node = self.yard.plane.nodes().get(self._node_of(name))
        return self.yard.placed[node["metadata"]["labels"][CLAIM]] if node is not None else "no node"

    def _empty(self) -> list[str]:
        daemons = {daemon.name for daemon in self.yard.plane.daemons}
        used = {
            pod["spec"].get("nodeName")
            for pod in self.yard.plane.all("pods")
            if pod["metadata"]["ownerReferences"][0]["name"] not in daemons
        }
        return sorted(self.yard.plane.nodes().keys() - used)

    def _decisions(self) -> str:
        """Messages of decisions since the last ``until``."""
        new_events = self.yard.events[self.told_events :]
        return " ".join(str(detail.get("message", "")) for kind, detail in new_events if kind == ABOUT)
