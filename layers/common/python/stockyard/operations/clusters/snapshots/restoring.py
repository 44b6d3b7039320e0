"""The phase that begins a control plane anew from a snapshot: one step at each look.

A new member restores the snapshot while those of before serve, so that one that cannot be restored leaves the cluster
as it was. Then requests go to the new member alone. When its node is there the others end: they are no members of its
etcd, so nobody has to take them out of that. The phase after this one adds members until there are as many as wanted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import ClusterCouldNotBeDeployed, Conflict, QuotaExceeded
from stockyard.lifecycle.nodes.machine_gone import is_lost
from stockyard.lifecycle.nodes.node_claim import AVAILABLE, FAILED
from stockyard.lifecycle.pools.pool import living
from stockyard.lifecycle.pools.spread import zone_requirement
from stockyard.operations.clusters.members.members import LATER, SOON, ControlPlane, member_claims, node_of_member
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.fleet.pools.claims import commit_claims, draft_claim
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.machines.member_plan import PLAN, has_joined
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, ClusterDriver, Outcome, Put, Write
from stockyard.ports.clusters import DRAINING, GONE, HEALTHY, BalancesMembers
from stockyard.ports.snapshots import KeepsSnapshots

PHASE = "restore"
RESTORE = "restore"
"""The fact of a cluster: the ``operation`` that restores, the ``snapshot`` with the time when it was ``stored_at``, the
``claim`` of the member that begins from it, and whether that is ``done``."""


class SnapshotNotRestored(ClusterCouldNotBeDeployed):
    """The member that was to begin from the snapshot did not come up."""


def restore_members(services: Services, driver: ClusterDriver, work: CloudWork, operation_id: str) -> Outcome:
    """One step towards a control plane that has begun anew; done where the operation is to restore nothing."""
    fact = services.store.get(Fact, f"{work.cluster.id}/{RESTORE}")
    request: dict[str, Any] = json.loads(fact.value) if fact is not None else {}
    balancer, keeper = driver.balancer, driver.snapshot_keeper
    if request.get("operation") != operation_id or balancer is None:
        return Outcome(True, "No snapshot is to be restored.")
    if request.get("done") or keeper is None:
        return Outcome(True, f"The control plane has begun from {request['snapshot']}.")
    try:
        return _Restore(services, balancer, keeper, work, request).look()
    except (Conflict, QuotaExceeded) as refusal:
        return Outcome(False, refusal.detail, wait_seconds=SOON if isinstance(refusal, Conflict) else LATER)


def younger(services: Services, cluster: Cluster, moment: str) -> list[NodeClaim]:
    """The claims of workers that were made after it: a snapshot of that moment does not know their nodes."""
    claims = living(claims_of(services, cluster.id))
    return [claim for claim in claims if not claim.control_plane and claim.created_at > moment]


@dataclass(frozen=True, slots=True)
class _Restore:
    """One look at the members of one cluster, which is the driver's in two ways."""

    services: Services
    balancer: BalancesMembers
    keeper: KeepsSnapshots
    work: CloudWork
    request: Mapping[str, Any]

    def look(self) -> Outcome:
        """See the members, and do the next step."""
        services, cluster = self.services, self.work.cluster
        control_plane = ControlPlane(services, self.balancer, self.work)
        pool = control_plane.pool()
        claims = member_claims(services, cluster.id)
        adopted = control_plane.adopted(pool, claims)
        if adopted is not None:
            return adopted
        claim = next((each for each in claims if each.id == self.request["claim"] and not each.deleting), None)
        if claim is None:
            return self._make(pool)
        targets = self.balancer.targets(self.work, [each.machine_id for each in claims if each.machine_id])
        if claim.phase == FAILED or is_lost(claim) or targets.get(claim.machine_id) == GONE:
            return self._give_up(claim, [each for each in claims if each.id != claim.id], targets)
        if not has_joined(services, claim):
            text = f"Waiting for {node_of_member(claim)} to begin from the snapshot {self.request['snapshot']}."
            return Outcome(False, text, wait_seconds=LATER)
        former = [each for each in claims if each.id != claim.id]
        return self._hand_over(claim, former, targets) or self._end(claim, former) or self._done(claim)

    def _make(self, pool: Pool) -> Outcome:
        """A claim for the member, and the plan from which the machine learns where to begin."""
        services, cluster, snapshot = self.services, self.work.cluster, str(self.request["snapshot"])
        store = self.keeper.snapshot_store(cluster)
        if store is None:
            raise SnapshotNotRestored("The cluster's settings ask for no snapshots any more.")
        # The machine may be up before IAM knows it everywhere: it tries again.
        self.keeper.open_snapshot(self.work, snapshot)
        zone = self.balancer.member_zones(self.work)[0]
        drafted = draft_claim(services, cluster.id, pool)
        claim = replace(drafted, requirements=(*drafted.requirements, zone_requirement(zone)), control_plane=True)
        plan = {"claim": claim.id, "remove_before": [], "remove_after": [], "done": False}
        text = json.dumps({**plan, RESTORE: store.location(snapshot)})
        plan_fact = Put(Fact(f"{cluster.id}/{PLAN}", text, services.now()))
        commit_claims(services, cluster, pool, [claim], besides=[plan_fact, self._note(claim=claim.id)])
        return Outcome(False, f"Member {claim.name} is made in {zone} and begins from {snapshot}.", wait_seconds=LATER)

    def _give_up(self, claim: NodeClaim, former: Sequence[NodeClaim], targets: Mapping[str, str]) -> Outcome:
        """The members of before serve again. A resume makes another new one."""
        for each in former:
            if not each.deleting and targets.get(each.machine_id, DRAINING) == DRAINING:
                self.balancer.admit(self.work, each.machine_id)
        self.services.store.commit(self._note(claim=""))
        delete_claim(self.services, claim.id, WORKFLOW_ACTOR)
        raise SnapshotNotRestored(
            f"{node_of_member(claim)} did not begin from the snapshot {self.request['snapshot']}: "
            f"{claim.message or 'its machine is gone'} The members of before are as they were."
        )

    def _hand_over(self, claim: NodeClaim, former: Sequence[NodeClaim], targets: Mapping[str, str]) -> Outcome | None:
        """Requests go to the new member alone: whoever read from both would see two histories."""
        serving = [each for each in former if targets.get(each.machine_id, DRAINING) not in (DRAINING, GONE)]
        for each in serving:
            self.balancer.withdraw(self.work, each.machine_id)
        if serving:
            names = ", ".join(node_of_member(each) for each in serving)
            return Outcome(False, f"{names} serve no more.", wait_seconds=SOON)
        state = targets.get(claim.machine_id, DRAINING)
        if state == DRAINING:
            self.balancer.admit(self.work, claim.machine_id)
            return Outcome(False, f"{node_of_member(claim)} is admitted.", wait_seconds=SOON)
        if state != HEALTHY:
            return Outcome(False, f"Waiting for {node_of_member(claim)} to be healthy.", wait_seconds=SOON)
        return None

    def _end(self, claim: NodeClaim, former: Sequence[NodeClaim]) -> Outcome | None:
        """The members of before go once the new one's node is there, and at once: their kubelets know only an etcd that
        nobody asks any more. Until then they can take over again."""
        if claim.phase != AVAILABLE:
            return Outcome(False, f"Waiting for the node of {node_of_member(claim)}.", wait_seconds=LATER)
        for each in former:
            if not each.deleting:
                delete_claim(self.services, each.id, WORKFLOW_ACTOR, grace_seconds=0)
        if not former:
            return None
        names = ", ".join(node_of_member(each) for each in former)
        return Outcome(False, f"Waiting for {names} to end.", wait_seconds=LATER)

    def _done(self, claim: NodeClaim) -> Outcome:
        if claim.machine_id != self.work.cluster.instance_id:
            released = self.balancer.release_first(self.work)
            if not released.done:
                return released
        for each in younger(self.services, self.work.cluster, str(self.request["stored_at"])):
            delete_claim(self.services, each.id, WORKFLOW_ACTOR)
        self.keeper.close_snapshots(self.work)
        self.services.store.commit(self._note(done=True))
        return Outcome(True, f"The control plane has begun from the snapshot {self.request['snapshot']}.")

    def _note(self, **fields: Any) -> Write:
        text = json.dumps({**self.request, **fields})
        return Put(Fact(f"{self.work.cluster.id}/{RESTORE}", text, self.services.now()))
