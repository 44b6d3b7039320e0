"""The members of a control plane: what is to be done next, so that there are as many as wanted and made as wanted.

Pure. Growing, replacing a dead member, another type, an upgrade and a repave are one verb: a member is added, it joins,
the one in whose place it came leaves etcd, and then its machine goes. One after the other, so that at any moment more
than half of etcd's voters are there.

Two rules are etcd's. It takes no new voter while one of its voters cannot be reached, so a dead member leaves before
its successor joins; a living one leaves after it. And who leaves is told by a member that has joined since: only such
a machine still listens, see ``operations.machines.member_plan``.

A member that lives and has been unhealthy for too long is replaced in the same way: as a dead one where its API server
does not answer, since its etcd may not either, and else as one that is made otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from stockyard.domain.values.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """One member as it was last seen. ``id`` is that of its claim."""

    id: str
    zone: str
    made_at: str
    joined: bool
    """Whether it is a voter of etcd, or was one."""
    alive: bool
    """Whether its machine is there, and not silent for good."""
    healthy: bool = False
    """Whether its API server answers the balancer."""
    serving: bool = False
    """Whether the balancer sends requests to it."""
    expelled: bool = False
    """Whether another member has taken it out of etcd."""
    leaving: bool = False
    """Whether its claim is on its way out."""
    current: bool = True
    """Whether it is made as one would be made now."""
    listens: bool = False
    """Whether its machine asks which members are to leave etcd."""
    failing: bool = False
    """Whether it has been unhealthy for longer than is borne."""
    in_plan: bool = False
    """Whether the one that listens, or will once it joins, is to take it out of etcd."""

    @property
    def votes(self) -> bool:
        """Whether it counts for etcd's quorum."""
        return self.joined and not self.expelled

    @property
    def departs(self) -> bool:
        """Whether it may be out of etcd already, though it lives: the one that was told may have died before it said
        so. It is never taken back."""
        return self.votes and self.alive and self.in_plan


@dataclass(frozen=True, slots=True)
class Add:
    """Make a member in that zone; before it joins it takes these out of etcd."""

    zone: str
    expels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be done until this is over."""

    text: str


@dataclass(frozen=True, slots=True)
class Admit:
    """Let the balancer send requests to the member."""

    id: str


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Take the member out of the balancer: it leaves."""

    id: str


@dataclass(frozen=True, slots=True)
class Expel:
    """Have the member ``by`` take the other one out of etcd; one that has not joined does that before it joins."""

    id: str
    by: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Give the member's claim back: it is no voter any more."""

    id: str


@dataclass(frozen=True, slots=True)
class Done:
    """The members are as wanted."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Too few members are healthy for etcd to change anything."""

    text: str


Step = Add | Wait | Admit | Withdraw | Expel | Delete | Done | Lost


def quorum(voters: int) -> int:
    """Number of voters that etcd needs, of so many."""
    return voters // 2 + 1


def decide(size: int, zones: Sequence[str], members: Sequence[Member]) -> Step:
    """The next step towards ``size`` members over the zones. The first zones come first where others are as good."""
    ordered = sorted(given_up(members), key=lambda member: (member.made_at, member.id))
    voters = [member for member in ordered if member.votes]
    # Of those that were to be taken out nobody may know: etcd itself does nothing without a quorum.
    sure = [member for member in voters if not member.in_plan]
    surplus = _surplus(size, voters)
    # Of one that serves no more the balancer tells nothing; it was healthy when it was withdrawn.
    withdrawn = surplus if surplus is not None and not surplus.serving else None
    healthy = [member for member in sure if member.alive and (member.healthy or member is withdrawn)]
    return (
        _in_progress(ordered)
        or _admission(voters, surplus)
        or _too_few(sure, healthy)
        or _without_dead(size, zones, ordered, voters)
        or (_remove(surplus, voters, healthy) if surplus is not None else None)
        or _add(size, zones, voters)
        or Done()
    )


def given_up(members: Sequence[Member]) -> list[Member]:
    """The members as they count: a failing one as dead if it does not answer, as long as the others are a quorum of
    all; if it does, as one that is made otherwise."""
    voters = [member for member in members if member.votes]
    well = sum(member.alive and member.healthy and not member.in_plan for member in voters)
    spared = well < quorum(len(voters))
    return [member if not member.failing else _given_up(member, spared=spared) for member in members]


def replaces(members: Sequence[Member]) -> bool:
    """Whether a failing member can be replaced now: all of the others that etcd counts on are healthy. Two of five that
    fail at once are given up together, since etcd takes nobody else before both are out of it."""
    remaining = [member for member in given_up(members) if member.votes and member.alive]
    return any(member.failing for member in members) and all(member.healthy for member in remaining)


def _given_up(member: Member, *, spared: bool) -> Member:
    # Of one that was withdrawn to be replaced the balancer tells nothing any more.
    if member.healthy or not member.serving:
        return replace(member, current=False)
    return replace(member, alive=member.alive and (spared or not member.votes))


def _in_progress(ordered: Sequence[Member]) -> Step | None:
    for member in ordered:
        if member.leaving:
            return Wait(f"Waiting for member {member.id} to leave.")
        if member.expelled:
            return Delete(member.id)
    joining = next((member for member in ordered if member.alive and not member.joined), None)
    if joining is None:
        return None
    # A member that dies meanwhile would keep it out of etcd until its claim fails.
    dead = next((member for member in ordered if not member.alive and not member.in_plan), None)
    return Expel(dead.id, joining.id) if dead is not None else Wait(f"Waiting for member {joining.id} to join.")


def _admission(voters: Sequence[Member], surplus: Member | None) -> Step | None:
    stays = (member for member in voters if member.alive and not member.departs and member is not surplus)
    member = next((member for member in stays if not member.serving), None)
    return Admit(member.id) if member is not None else None


def _too_few(voters: Sequence[Member], healthy: Sequence[Member]) -> Step | None:
    needed = quorum(len(voters))
    if len(healthy) >= needed:
        return None
    if any(member.alive and not member.healthy for member in voters):
        return Wait(f"Waiting for {needed} of {len(voters)} members to be healthy.")
    text = f"etcd needs {needed} of {len(voters)} members, and {len(healthy)} are healthy. Restore a snapshot."
    return Lost(text)


def _without_dead(size: int, zones: Sequence[str], ordered: Sequence[Member], voters: Sequence[Member]) -> Step | None:
    dead = [member for member in ordered if not member.alive]
    alive = [member for member in voters if member.alive and not member.departs]
    departing = [member for member in voters if member.departs]
    # One that was given up and lives again is no surplus: without it there may be too few.
    if not dead and not (departing and len(alive) < size):
        return None
    by = next((member for member in reversed(alive) if member.listens), None)
    if by is not None and (departing or len(alive) >= size):
        return Expel((departing or dead)[0].id, by.id)
    return Add(_zone(zones, _staying(size, alive)), tuple(member.id for member in (*dead, *departing)))


def _surplus(size: int, voters: Sequence[Member]) -> Member | None:
    """The member that leaves where there is one too many, the oldest of those made otherwise; only for another one of
    those that have joined since, which takes it out."""
    alive = [member for member in voters if member.alive]
    if len(alive) <= size or len(alive) < len(voters):
        return None
    last = max((member for member in alive if member.listens), key=lambda m: (m.made_at, m.id), default=None)
    candidates = [member for member in alive if member is not last]
    return min(candidates, key=lambda member: (not member.in_plan, member.current, member.made_at, member.id))


def _remove(surplus: Member, voters: Sequence[Member], healthy: Sequence[Member]) -> Step:
    remaining = [member for member in healthy if member is not surplus]
    by = max((m for m in remaining if m.listens), key=lambda m: (m.made_at, m.id), default=None)
    if by is None or len(remaining) < quorum(len(voters) - 1):
        return Wait(f"Waiting for the other members to be healthy before {surplus.id} leaves.")
    return Withdraw(surplus.id) if surplus.serving else Expel(surplus.id, by.id)


def _add(size: int, zones: Sequence[str], voters: Sequence[Member]) -> Step | None:
    if len(voters) >= size and all(member.current for member in voters):
        return None
    unhealthy = next((member for member in voters if not member.healthy), None)
    if unhealthy is not None:
        return Wait(f"Waiting for member {unhealthy.id} to be healthy before another one joins.")
    return Add(_zone(zones, _staying(size, voters)))


def _staying(size: int, members: Sequence[Member]) -> Sequence[Member]:
    """Members that stay once another one has joined: it comes to the zone of the one that leaves for it, where the
    zones are even without that one."""
    leaves = min(members, key=lambda member: (member.current, member.made_at, member.id))
    return [member for member in members if member is not leaves or len(members) < size]


def _zone(zones: Sequence[str], members: Sequence[Member]) -> str:
    counts = Counter(member.zone for member in members)
    return min(zones, key=lambda zone: (counts[zone], zones.index(zone)))
