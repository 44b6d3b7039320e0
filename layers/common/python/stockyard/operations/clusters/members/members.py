"""The members of a ready cluster's control plane become as many as wanted, made as wanted: one step at each look.

What is to be done says ``lifecycle.clusters.control_plane``; here it is seen and done. Every member is a node claim of
the pool ``control-plane``. The first one's machine is made by the cluster's own phase and is taken over as a claim once
another member is wanted. The plan that a joining machine reads is written in the transaction that makes its claim.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from stockyard.domain.month_budgets import BUDGET_REACHED
from stockyard.domain.pools.node_groups import CONTROL_GROUP, control_group_name
from stockyard.domain.pools.records import CONTROL_PLANE, NewPool, Pool
from stockyard.domain.records import Cluster, Fact, NodeClaim, Resource
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import CAPACITY_TYPE, IN, INSTANCE_TYPE
from stockyard.errors import ClusterCouldNotBeDeployed, Conflict, QuotaExceeded
from stockyard.lifecycle.clusters.control_plane import (
    Add,
    Admit,
    Delete,
    Done,
    Expel,
    Lost,
    Member,
    Step,
    Wait,
    Withdraw,
    decide,
    replaces,
)
from stockyard.lifecycle.clusters.member_health import NODE_NOT_READY, completeness, condition_of, failing
from stockyard.lifecycle.nodes.machine_gone import is_lost
from stockyard.lifecycle.nodes.node_claim import FAILED
from stockyard.lifecycle.nodes.node_phases import MACHINE_PHASE
from stockyard.lifecycle.pools.spread import zone_of, zone_requirement
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.fleet.pools import conditions
from stockyard.operations.fleet.pools.claims import commit_claims, draft_claim
from stockyard.operations.fleet.pools.groups import ensure_member_provider
from stockyard.operations.fleet.pools.pools import claims_of, draft, member_pool_of
from stockyard.operations.fleet.pools.spread import move_claims
from stockyard.operations.machines import overlay
from stockyard.operations.machines.first_node import first_node
from stockyard.operations.machines.member_plan import PLAN, has_joined, member_of
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, ClusterDriver, Create, Outcome, Put, Replace, Write
from stockyard.ports.clusters import DRAINING, GONE, HEALTHY, BalancesMembers

MACHINES = "control_plane"
"""The phase on whose ledger lines the first member's machine is."""
SIZE = "control_plane_size"
SOON, LATER = 5, 15
"""Seconds until the next look: at what was done just now, and at what takes minutes."""
GRACE = "10m"
"""How long pods may hold the node of a member that leaves."""


class QuorumLost(ClusterCouldNotBeDeployed):
    """Too few members are left for etcd to change anything."""


def wanted_size(cluster: Cluster) -> int:
    """Number of members that the cluster's control plane is to have."""
    return int(cluster.settings.get(SIZE) or 1)


def ensure_members(services: Services, driver: ClusterDriver, work: CloudWork) -> Outcome:
    """One step towards the members that are wanted. Done when they are there. ``QuorumLost`` when nothing can be."""
    cluster = work.cluster
    balancer = driver.balancer
    if balancer is None or not _concerned(services, cluster):
        return Outcome(True, "The control plane is one machine, and stays.")
    control_plane = ControlPlane(services, balancer, work)
    try:
        return control_plane.look()
    except (Conflict, QuotaExceeded) as refusal:
        return Outcome(False, refusal.detail, wait_seconds=SOON if isinstance(refusal, Conflict) else LATER)


def _concerned(services: Services, cluster: Cluster) -> bool:
    """Whether there is more to a control plane than its first machine, or is to be."""
    return wanted_size(cluster) > 1 or bool(cluster.members_since) or member_pool_of(services, cluster.id) is not None


def lacks_members(services: Services, cluster: Cluster) -> bool:
    """Whether members are missing, or gone, as the records tell: no cloud is asked."""
    if wanted_size(cluster) <= 1 and member_pool_of(services, cluster.id) is None:
        return False
    claims = [claim for claim in member_claims(services, cluster.id) if not claim.deleting]
    living = sum(not is_lost(claim) and claim.phase != FAILED for claim in claims)
    return living < wanted_size(cluster) or living < len(claims)


def member_claims(services: Services, cluster_id: str) -> list[NodeClaim]:
    """The claims of the control plane's members, those that leave among them."""
    return claims_of(services, cluster_id, CONTROL_PLANE)


def node_of_member(claim: NodeClaim) -> str:
    """Name of the member's node, in Kubernetes and in etcd."""
    return claim.host_name or claim.node_name or claim.name


def first_line(
    services: Services, driver: BalancesMembers, cluster: Cluster, claims: Sequence[NodeClaim]
) -> Resource | None:
    """The line of the cluster's ledger for the first member's machine; None once a claim has had it."""
    if any(claim.machine_id == cluster.instance_id for claim in claims):
        return None
    kind, _ = driver.member_line()
    lines = lines_of(services, cluster.id, MACHINES)
    return next((line for line in lines if line.kind == kind and line.state == "made"), None)


def _is_ready(claim: NodeClaim) -> bool:
    """Whether nothing was noted against the member's node."""
    part = condition_of(claim)
    return part is None or part.reason != NODE_NOT_READY


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """One look at the members of one cluster."""

    services: Services
    driver: BalancesMembers
    work: CloudWork

    def look(self) -> Outcome:
        """See the members, decide, and do the step."""
        pool = self.pool()
        claims = member_claims(self.services, self.work.cluster.id)
        adopted = self.adopted(pool, claims)
        if adopted is not None:
            return adopted
        plan = self._plan()
        targets = self.driver.targets(self.work, [claim.machine_id for claim in claims if claim.machine_id])
        zones = self.driver.member_zones(self.work)
        # A zone that has no room must not keep the control plane from what others have.
        move_claims(self.services, replace(pool, zones=tuple(zones)), claims, ())
        step = decide(wanted_size(self.work.cluster), zones, self._members(claims, targets, plan))
        by_id = {claim.id: claim for claim in claims}
        outcome = self._do(step, pool, by_id, targets, plan)
        if not isinstance(step, Done):
            self._say(targets)
        return outcome

    def _say(self, targets: Mapping[str, str]) -> None:
        """Say on the cluster how many members are there, and what keeps others from coming up."""
        services, cluster = self.services, self.work.cluster
        claims = member_claims(services, cluster.id)
        gone_ids = {claim.id for claim in claims if targets.get(claim.machine_id) == GONE}
        conditions.show(services, cluster, [completeness(claims, services.now(), wanted_size(cluster), gone_ids)])

    def replaces_failing(self) -> bool:
        """Whether a member that has been unhealthy for too long can be replaced now."""
        claims = member_claims(self.services, self.work.cluster.id)
        targets = self.driver.targets(self.work, [claim.machine_id for claim in claims if claim.machine_id])
        return replaces(self._members(claims, targets, self._plan()))

    def adopted(self, pool: Pool, claims: Sequence[NodeClaim]) -> Outcome | None:
        """Make a claim of the first member, where its machine is none yet; None when there is nothing to do."""
        first = first_line(self.services, self.driver, self.work.cluster, claims)
        return self._adopt(pool, first) if first is not None else None

    # --- what is there -----------------------------------------------------------------------------------------------

    def pool(self) -> Pool:
        """The record of the pool, as the settings say it now."""
        services, cluster = self.services, self.work.cluster
        present = member_pool_of(services, cluster.id)
        group = control_group_name(cluster.settings)
        new_pool = replace(
            self.driver.member_pool(cluster),
            name=CONTROL_PLANE,
            form=CONTROL_PLANE,
            document={CONTROL_GROUP: group} if group is not None else {},
            quantity=wanted_size(cluster),
            termination_grace_period=GRACE,
        )
        ensure_member_provider(services, cluster, new_pool.provider_ref)
        if present is None:
            pool = replace(draft(services, cluster.id, new_pool, WORKFLOW_ACTOR), due_at=None)
            services.store.commit(Create(pool))
            return pool
        if present.spec() == new_pool.spec() and present.document == new_pool.document:
            return present
        return self._changed(present, new_pool)

    def _changed(self, pool: Pool, new_pool: NewPool) -> Pool:
        changed: Pool = replace(
            pool,
            **new_pool.spec(),
            document=new_pool.document,
            generation=pool.generation + (new_pool.spec() != pool.spec()),
            updated_at=self.services.now(),
            version=pool.version + 1,
        )
        self.services.store.commit(Replace(changed))
        return changed

    def _plan(self) -> dict[str, Any]:
        fact = self.services.store.get(Fact, f"{self.work.cluster.id}/{PLAN}")
        empty = {"claim": "", "remove_before": [], "remove_after": [], "done": True}
        return cast("dict[str, Any]", json.loads(fact.value)) if fact is not None else empty

    def _put(self, plan: dict[str, Any]) -> Write:
        return Put(Fact(f"{self.work.cluster.id}/{PLAN}", json.dumps(plan), self.services.now()))

    def _members(self, claims: Sequence[NodeClaim], targets: Mapping[str, str], plan: dict[str, Any]) -> list[Member]:
        limit, now = self.services.settings.unhealthy_member_seconds, self.services.now()
        failing_ids = {claim.id for claim in failing(claims, limit, now)}
        members = [self._member(claim, claims, targets.get(claim.machine_id, ""), plan) for claim in claims]
        return [
            # Whether it answers is seen now, and may be better than what was noted.
            replace(member, failing=member.id in failing_ids and not (member.healthy and _is_ready(claim)))
            for member, claim in zip(members, claims, strict=True)
        ]

    def _member(self, claim: NodeClaim, claims: Sequence[NodeClaim], state: str, plan: dict[str, Any]) -> Member:
        cluster, is_first = self.work.cluster, claim.machine_id == self.work.cluster.instance_id
        reports = [report for other in claims if (report := member_of(self.services, other)) is not None]
        removed_names = {name for report in reports for name in report["removed"]}
        made_at = cluster.created_at if is_first else claim.created_at
        joined = is_first or member_of(self.services, claim) is not None
        alive = state != GONE and not is_lost(claim) and claim.phase != FAILED
        return Member(
            claim.id,
            zone_of(claim),
            made_at,
            joined=joined,
            alive=alive,
            healthy=state == HEALTHY,
            serving=bool(state) and state not in (DRAINING, GONE),
            expelled=node_of_member(claim) in removed_names,
            leaving=claim.deleting,
            current=made_at >= cluster.members_since,
            listens=joined and plan["claim"] == claim.id and not plan["done"],
            in_plan=node_of_member(claim) in (*plan["remove_before"], *plan["remove_after"]),
        )

    # --- what is done ------------------------------------------------------------------------------------------------

    def _adopt(self, pool: Pool, line: Resource) -> Outcome:
        """A claim for the first member's machine: its line moves from the cluster's ledger to the claim's."""
        services, cluster = self.services, self.work.cluster
        node = first_node(services, cluster)
        if not node:
            return Outcome(False, "Waiting for the agent to tell the first member's node.", wait_seconds=LATER)
        pinned = {INSTANCE_TYPE: str(line.detail.get("type") or ""), CAPACITY_TYPE: "on-demand"}
        requirements = [{"key": key, "operator": IN, "values": [value]} for key, value in pinned.items() if value]
        zone = str(line.detail.get("zone") or "")
        claim = replace(
            draft_claim(services, cluster.id, pool),
            requirements=(*requirements, *([zone_requirement(zone)] if zone else [])),
            control_plane=True,
            host_name=node,
            machine_id=line.vendor_id,
        )
        now = services.now()
        kind, key = self.driver.member_line()
        own_line = replace(line, id=f"{claim.id}/{MACHINE_PHASE}/{kind}/{key}", phase=MACHINE_PHASE, key=key, version=1)
        released = replace(line, state="gone", gone_at=now, version=line.version + 1)
        commit_claims(services, cluster, pool, [claim], besides=[Create(own_line), Replace(released)], adopting=True)
        return Outcome(False, f"{node} becomes a claim.", wait_seconds=SOON)

    def _do(
        self,
        step: Step,
        pool: Pool,
        claims: dict[str, NodeClaim],
        targets: Mapping[str, str],
        plan: dict[str, Any],
    ) -> Outcome:
        if isinstance(step, Done):
            return self._done(claims, plan)
        if isinstance(step, Lost):
            raise QuorumLost(step.text)
        if isinstance(step, Add):
            return self._add(pool, step.zone, [node_of_member(claims[member]) for member in step.expels])
        if isinstance(step, Wait):
            return Outcome(False, self._in_words(step.text, claims), wait_seconds=LATER)
        return self._change(step, claims[step.id], targets, plan)

    def _change(
        self,
        step: Admit | Withdraw | Expel | Delete,
        claim: NodeClaim,
        targets: Mapping[str, str],
        plan: dict[str, Any],
    ) -> Outcome:
        node = node_of_member(claim)
        if isinstance(step, Expel):
            return self._expel(claim, targets.get(claim.machine_id), plan)
        if isinstance(step, Delete):
            if claim.machine_id and claim.execution is None:
                # It took the first machine over. Until it is placed, a deletion would forget it and end no machine.
                return Outcome(False, f"Waiting for {node} to be placed before it leaves.", wait_seconds=LATER)
            part = condition_of(claim)
            # Nothing on a node that does not answer can be moved away in order.
            grace = 0 if part is not None and part.status == "False" else None
            delete_claim(self.services, claim.id, WORKFLOW_ACTOR, grace_seconds=grace)
            return Outcome(False, f"{node} leaves.", wait_seconds=LATER)
        if isinstance(step, Withdraw):
            self.driver.withdraw(self.work, claim.machine_id)
            return Outcome(False, f"{node} serves no more.", wait_seconds=SOON)
        self.driver.admit(self.work, claim.machine_id)
        return Outcome(False, f"{node} is admitted.", wait_seconds=SOON)

    def _in_words(self, text: str, claims: dict[str, NodeClaim]) -> str:
        """The text with nodes' names for the ids of their claims."""
        for claim_id, claim in claims.items():
            text = text.replace(claim_id, node_of_member(claim))
        held_up = [claim.message for claim in claims.values() if claim.reason == BUDGET_REACHED]
        return " ".join((text, *held_up[:1]))

    def _add(self, pool: Pool, zone: str, expels: Sequence[str]) -> Outcome:
        services, cluster = self.services, self.work.cluster
        drafted = draft_claim(services, cluster.id, pool)
        claim = replace(drafted, requirements=(*drafted.requirements, zone_requirement(zone)), control_plane=True)
        plan = {"claim": claim.id, "remove_before": list(expels), "remove_after": [], "done": False}
        commit_claims(services, cluster, pool, [claim], besides=[self._put(plan)])
        return Outcome(False, f"Member {claim.name} is made in {zone}.", wait_seconds=LATER)

    def _expel(self, claim: NodeClaim, state: str | None, plan: dict[str, Any]) -> Outcome:
        node = node_of_member(claim)
        if state == DRAINING:
            return Outcome(False, f"Waiting for requests to {node} to end.", wait_seconds=LATER)
        if node not in (*plan["remove_before"], *plan["remove_after"]):
            by = self.services.store.get(NodeClaim, plan["claim"])
            # A machine that has not joined asks at each try which ones go before it.
            when = "remove_after" if by is not None and has_joined(self.services, by) else "remove_before"
            self.services.store.commit(self._put({**plan, when: [*plan[when], node]}))
        return Outcome(False, f"Waiting for {node} to be taken out of etcd.", wait_seconds=SOON)

    def _done(self, claims: dict[str, NodeClaim], plan: dict[str, Any]) -> Outcome:
        """The last machine that joined need not listen any more; what the first one had goes after it."""
        if not plan["done"]:
            self.services.store.commit(self._put({**plan, "done": True}))
        cluster = self.work.cluster
        if not any(claim.machine_id == cluster.instance_id for claim in claims.values()):
            outcome = self.driver.release_first(self.work)
            if not outcome.done:
                return outcome
            overlay.release(self.services, cluster, cluster.id)
        return Outcome(True, f"{len(claims)} of {wanted_size(cluster)} members are there.")
