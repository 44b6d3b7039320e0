"""The pods of a cluster in which nodes shrink and a DaemonSet grows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from stockyard.domain.records import NodeClaim
from stockyard.domain.values.quantities import milli
from stockyard.operations.fleet.state import Workload
from stockyard.scheduling.packing.model import Pod
from tests.unit.operations.fleet.disruption.conftest import ROOM, Pods
from tests.workflows.people.acts import DAEMON


@dataclass
class PodsBesideDaemon(Pods):
    """``daemon`` is the pod that a DaemonSet has on each node with room for it; None while there is no DaemonSet."""

    daemon: Pod | None = None

    @property
    def told_daemon(self) -> Pod | None:
        """The pod of the DaemonSet as the agent tells of it."""
        return self.daemon

    def workload(self) -> Workload:
        workload, daemon = super().workload(), self.told_daemon
        if daemon is None:
            return workload
        hosts = [claim.node_name for claim in self.claims() if self._fits(claim, self.on.get(claim.node_name, []))]
        running = dict(workload.running)
        running |= {name: ((daemon, 1), *running.get(name, ())) for name in hosts}
        daemons_running = dict.fromkeys(hosts, frozenset({DAEMON}))
        return replace(workload, running=running, daemons={DAEMON: daemon}, daemons_running=daemons_running)

    def _fits(self, claim: NodeClaim, pods: list[Pod]) -> bool:
        cores, gib = ROOM[claim.type_ref]
        allocatable = self.facts.get(claim.node_name, {}).get("allocatable")
        cpu, memory = (
            (cores, gib * 2**30 * 1000)
            if allocatable is None
            else (milli(allocatable["cpu"]), milli(allocatable["memory"]))
        )
        total: Counter[str] = Counter()
        for each in (*pods, *([self.daemon] if self.daemon is not None else ())):
            total.update(dict(each.requests))
        return total["cpu"] <= cpu and total["memory"] <= memory
