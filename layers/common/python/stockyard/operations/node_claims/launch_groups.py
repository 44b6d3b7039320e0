"""Claims that are launched together: who is put together, and the record by which they share one call.

A claim leaves its group only when nothing of it is its own any more, so that no machine of a group is forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from stockyard.domain.nodes import launch_groups
from stockyard.domain.records import LaunchGroup, NodeClaim, NodeProvider, Placement, PlacementOption
from stockyard.domain.values import ids, times
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import Conflict, Fenced, InsufficientCapacity, NotYetVisible
from stockyard.lifecycle.nodes.node_claim import PENDING
from stockyard.operations.engine.advance import TRIES
from stockyard.operations.services import Services
from stockyard.ports import Check, Remove, Replace

MOST_TRIES = 50
"""Tries to write what a call has made: each member may leave in between, and it must not be lost."""
Placed = tuple[NodeClaim, Placement]
Alike = tuple[str, tuple[PlacementOption, ...]]
Change = Callable[[LaunchGroup], LaunchGroup]


def form(
    services: Services, providers: Mapping[str, NodeProvider], placed: Sequence[Placed], room: int
) -> list[LaunchGroup]:
    """Groups of those that are equal for a launch, the largest first, at most ``room``; the others go alone.

    ``providers`` are by id. A group's id follows from its first claim's and that one's attempt: a claim is placed only
    once in an attempt.
    """
    alike: dict[Alike, list[NodeClaim]] = {}
    most: dict[Alike, int] = {}
    for claim, placement in placed:
        provider = providers[placement.provider_id]
        source = services.node_sources.get(provider.kind)
        limit = source.together(provider, placement.capacity_type, claim.properties) if source is not None else 1
        if limit > 1 and claim.cluster_id:
            key = _equal(claim, placement)
            alike.setdefault(key, []).append(claim)
            most[key] = limit
    parts = [
        claims[start : start + most[key]] for key, claims in alike.items() for start in range(0, len(claims), most[key])
    ]
    parts = sorted((part for part in parts if len(part) > 1), key=len, reverse=True)[: max(0, room)]
    return [
        LaunchGroup(
            ids.derive(ids.LAUNCH_GROUP, part[0].id, str(part[0].attempt)),
            part[0].cluster_id,
            tuple(claim.id for claim in part),
            services.now(),
        )
        for part in parts
    ]


def _equal(claim: NodeClaim, placement: Placement) -> Alike:
    """Values that a launch may depend on: the same for claims that are equal in them."""
    specification = (claim.cluster_id, claim.requirements, claim.resources, claim.properties, claim.labels)
    kubelet = (claim.taints, claim.startup_taints, claim.kubelet_args)
    return json.dumps([*specification, *kubelet, placement.provider_id], sort_keys=True), placement.options


def of(services: Services, claim: NodeClaim) -> LaunchGroup | None:
    """The group that the claim may have something of; None when it has none, or has left it."""
    if claim.placement is None or not claim.placement.group:
        return None
    group = services.store.get(LaunchGroup, claim.placement.group)
    return group if group is not None and claim.id in group.members else None


def leave(services: Services, claim: NodeClaim, earlier_group: LaunchGroup) -> bool:
    """Leave the group, unless its share is another one than in ``earlier_group``, what was undone. Repeatable."""
    undone = launch_groups.share(earlier_group, claim.id)
    for _ in range(TRIES):
        group = services.store.get(LaunchGroup, earlier_group.id)
        if group is None or claim.id not in group.members:
            return True
        share = launch_groups.share(group, claim.id)
        if share != undone or share.in_flight:
            return False
        remaining_group = launch_groups.without_member(group, claim.id)
        try:
            services.store.commit(
                Replace(remaining_group) if remaining_group.members else Remove(LaunchGroup, group.id, group.version)
            )
        except Conflict:
            continue
        return True
    return False


@dataclass(frozen=True, slots=True)
class StoreGroup:
    """``ports.node_work.Group`` on a store. ``guard`` is the fence of the claim that works on it."""

    services: Services
    id: str
    claim_id: str
    guard: Check

    def read(self) -> LaunchGroup | None:
        """See ``ports.node_work.Group.read``."""
        return self.services.store.get(LaunchGroup, self.id)

    def intend(self, earlier_group: LaunchGroup, template_at: str | None) -> LaunchGroup:
        """See ``ports.node_work.Group.intend``. Members that leave meanwhile make it fail: their version is another."""
        waiting_members = [member for member in earlier_group.members if self._waits(member)]
        if self.claim_id not in waiting_members:
            raise Fenced("The claim does not wait for a machine any more.")
        group = launch_groups.announce_call(earlier_group, waiting_members, template_at, self.services.now())
        try:
            self.services.store.commit(self.guard, Replace(group))
        except Fenced:
            raise
        except Conflict as conflict:
            if conflict.index == 0:
                raise Fenced("Another operation or attempt owns the claim now.") from conflict
            raise NotYetVisible("Another worker launches the claims of the group.") from conflict
        return group

    def _waits(self, member: str) -> bool:
        claim = self.services.store.get(NodeClaim, member)
        if claim is None or claim.placement is None or claim.deleting:
            return False
        return claim.placement.group == self.id and claim.phase == PENDING

    def made(
        self,
        announced_call: LaunchGroup,
        machines: Sequence[Mapping[str, str]],
        refusal: InsufficientCapacity | None = None,
    ) -> LaunchGroup | None:
        """See ``ports.node_work.Group.made``. Not fenced: what exists must be known, whoever owns the claim."""
        now = self.services.now()
        return self._settled(announced_call, lambda group: launch_groups.record_launch(group, machines, refusal, now))

    def opened(self, announced_call: LaunchGroup, pause_seconds: int = 0) -> LaunchGroup | None:
        """See ``ports.node_work.Group.opened``."""
        moment = self.services.clock.now() + timedelta(seconds=pause_seconds)
        pause = times.to_text(moment) if pause_seconds else None
        return self._settled(announced_call, lambda group: launch_groups.reopen(group, pause))

    def _settled(self, announced_call: LaunchGroup, change: Change) -> LaunchGroup | None:
        """The end of one announced call, written once, on whatever version has that call."""
        for _ in range(MOST_TRIES):
            group = self.read()
            if group is None or group.state != launch_groups.INTENDED or group.token != announced_call.token:
                return group
            changed = change(group)
            try:
                self.services.store.commit(Replace(changed))
            except Conflict:
                continue
            return changed
        raise Conflict(f"Launch group {self.id} changes too often to be written.")

    def over(self, announced_call: LaunchGroup) -> bool:
        """See ``ports.node_work.Group.over``."""
        intended_at, limit = announced_call.intended_at, self.services.settings.in_flight_seconds
        return intended_at is None or self.services.seconds_since(intended_at) >= limit
