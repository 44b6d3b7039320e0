"""Members of a control plane as etcd and the balancer have them: every state that deaths and delays can lead to.

The other tests play one sequence at a time against members that do at once what they are told. Here a member may be a
voter of etcd before it has said so, may die between any two events, and is healthy only for a balancer that serves it.
It may also live and answer nobody, for long or not, and come back at any moment.
All states within reach are visited, so what holds here holds in every order.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

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
    quorum,
)

ZONES = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class Machine:
    """A member's machine as it is, and what has been told of it."""

    zone: str
    runs: bool = True
    votes: bool = False
    """Whether etcd has it, which nobody else may know yet."""
    reported: bool = False
    failed: bool = False
    """Whether its claim has failed: it did not join in time, or its machine was seen to be gone."""
    registered: bool = False
    healthy: bool = False
    expelled: bool = False
    leaving: bool = False
    current: bool = True
    sick: bool = False
    """Whether neither its API server nor its etcd answers, though the machine runs."""
    overdue: bool = False
    """Whether that is so for longer than is borne."""
    unready: bool = False
    """Whether it answers, but its node has not been ready for too long."""

    @property
    def answers(self) -> bool:
        return self.runs and not self.sick

    def as_member(self, index: int, listens: bool) -> Member:
        return Member(
            str(index),
            self.zone,
            f"{index:03}",
            joined=self.reported,
            alive=self.runs and not self.failed,
            healthy=self.healthy and self.answers,
            serving=self.registered and self.runs,
            expelled=self.expelled,
            leaving=self.leaving,
            current=self.current,
            failing=self.runs and (self.overdue or self.unready),
            listens=listens,
        )


@dataclass(frozen=True, slots=True)
class State:
    """The machines in order of age, and the plan of the one that joined last."""

    machines: tuple[Machine, ...]
    plan: int = -1
    before: frozenset[int] = frozenset()
    after: frozenset[int] = frozenset()

    def members(self) -> list[Member]:
        plan = self.before | self.after
        members = [machine.as_member(index, self._listens(index)) for index, machine in enumerate(self.machines)]
        return [replace(member, in_plan=index in plan) for index, member in enumerate(members)]

    def _listens(self, index: int) -> bool:
        return index == self.plan and self.machines[index].reported

    def voters(self) -> list[Machine]:
        return [machine for machine in self.machines if machine.votes]

    def survivors(self) -> int:
        return sum(machine.answers for machine in self.voters())

    def has_quorum(self) -> bool:
        return self.survivors() >= quorum(len(self.voters()))

    def change(self, index: int, **fields: object) -> State:
        changed = replace(self.machines[index], **fields)
        return replace(self, machines=(*self.machines[:index], changed, *self.machines[index + 1 :]))

    def without(self, index: int) -> State:
        """The claim is gone: whatever was after it moves up."""

        def moved(indexes: frozenset[int]) -> frozenset[int]:
            return frozenset(other - (other > index) for other in indexes if other != index)

        plan = -1 if self.plan == index else self.plan - (self.plan > index)
        machines = (*self.machines[:index], *self.machines[index + 1 :])
        return State(machines, plan, moved(self.before), moved(self.after))


def fresh(size: int, *, current: bool = True, unready: int = -1) -> State:
    machine = Machine("a", votes=True, reported=True, registered=True, healthy=True, current=current)
    zones = [ZONES[index % len(ZONES)] for index in range(size)]
    return State(tuple(replace(machine, zone=zone, unready=index == unready) for index, zone in enumerate(zones)))


def decided(state: State, size: int, zones: tuple[str, ...] = ZONES) -> tuple[Step, State]:
    """Step of the decider, and the state once that is done."""
    step = decide(size, zones, state.members())
    if isinstance(step, Add):
        indexes = frozenset(map(int, step.expels))
        return step, State((*state.machines, Machine(step.zone)), len(state.machines), indexes)
    if isinstance(step, Wait | Done | Lost):
        return step, state
    return step, _obey(state, step)


def _obey(state: State, step: Admit | Withdraw | Delete | Expel) -> State:
    index = int(step.id)
    if isinstance(step, Expel):
        assert int(step.by) == state.plan, "only the machine with the plan listens"
        if state.machines[state.plan].reported:
            return replace(state, after=state.after | {index})
        return replace(state, before=state.before | {index})
    if isinstance(step, Delete):
        assert not state.machines[index].votes, "a machine is ended that etcd counts on"
        return state.change(index, leaving=True)
    if isinstance(step, Withdraw):
        return state.change(index, registered=False, healthy=False)
    return state.change(index, registered=True)


def events(state: State) -> Iterator[State]:
    """States that the machines, etcd and the balancer may lead to next, each event by itself."""
    for index, machine in enumerate(state.machines):
        if machine.leaving:
            yield state.without(index)
        if not machine.runs:
            if not machine.failed:
                yield state.change(index, failed=True)
            continue
        if machine.sick:
            yield state.change(index, sick=False, overdue=False)
            if not machine.overdue:
                yield state.change(index, overdue=True)
            continue
        if machine.registered and not machine.healthy and machine.votes:
            yield state.change(index, healthy=True)
        if machine.votes and not machine.reported and not machine.failed:
            yield state.change(index, reported=True)
    yield from _etcd(state)


def _etcd(state: State) -> Iterator[State]:
    """Changes of etcd's members, which need a quorum. It takes a new one only while it reaches all of the others, and
    gives up one that it reaches only where the others are a quorum without it."""
    if state.plan < 0 or not state.has_quorum():
        return
    joins = state.machines[state.plan]
    if not joins.answers or joins.failed:
        return
    if not joins.votes:
        yield from (removed for index in state.before if (removed := _removed(state, index)) is not None)
        cleared = not any(state.machines[index].votes for index in state.before)
        if cleared and state.survivors() == len(state.voters()):
            yield state.change(state.plan, votes=True)
    elif joins.reported:
        for index in state.before | state.after:
            removed = _removed(state, index)
            if removed is not None:
                yield removed
            elif not state.machines[index].votes and not state.machines[index].expelled:
                yield state.change(index, expelled=True)


def _removed(state: State, index: int) -> State | None:
    if not state.machines[index].votes:
        return None
    without = state.change(index, votes=False)
    return without if not state.machines[index].answers or without.has_quorum() else None


def troubles(state: State, silence: bool) -> Iterator[State]:
    """Any machine dies that etcd bears to lose, or any member answers no more."""
    for index, machine in enumerate(state.machines):
        if machine.runs:
            dead = state.change(index, runs=False, healthy=False, registered=False, sick=False, overdue=False)
            if dead.has_quorum():
                yield dead
        if silence and machine.answers and machine.reported and machine.registered:
            silent = state.change(index, sick=True)
            if silent.has_quorum():
                yield silent


def as_wanted(state: State, size: int) -> bool:
    counts = Counter(machine.zone for machine in state.machines)
    return (
        len(state.machines) == size
        and all(m.runs and m.votes and m.registered and m.current for m in state.machines)
        and not any(m.overdue or m.unready for m in state.machines)
        and len(state.voters()) == size
        and max(counts.values()) - min(counts[zone] for zone in ZONES[:size]) <= 1
    )


Node = tuple[State, int]


def reach(begin: State, size: int, most: int, *, silence: bool = True) -> dict[Node, set[Node]]:
    """Every state within reach, with so many troubles left, and what may follow without another one."""
    following: dict[Node, set[Node]] = {}
    queue = deque([(begin, most)])
    while queue:
        node = queue.popleft()
        if node in following:
            continue
        state, more = node
        assert state.has_quorum(), state
        step, after = decided(state, size)
        assert not isinstance(step, Lost), (state, step)
        if isinstance(step, Done):
            assert as_wanted(state, size), state
        following[node] = {(after, more)} | {(other, more) for other in events(state)}
        queue.extend(following[node])
        if more:
            queue.extend((worse, more - 1) for worse in troubles(state, silence))
    return following


def stuck(following: dict[Node, set[Node]], size: int) -> list[State]:
    """The states from which nothing leads to the members that are wanted."""
    before: dict[Node, list[Node]] = {}
    for node, successors in following.items():
        for other in successors:
            before.setdefault(other, []).append(node)
    queue = deque(node for node in following if isinstance(decided(node[0], size)[0], Done))
    good = set(queue)
    while queue:
        for node in before.get(queue.popleft(), []):
            if node not in good:
                good.add(node)
                queue.append(node)
    return [state for state, _ in following if (state, _) not in good]


STORIES = {
    "one grows to three": (fresh(1), 3, 1),
    "one grows to five": (fresh(1), 5, 1),
    "three grow to five": (fresh(3), 5, 1),
    "one is made anew": (fresh(1, current=False), 1, 0),
    "three are made anew": (fresh(3, current=False), 3, 1),
    "three stay, and one dies": (fresh(3), 3, 1),
    "one of three has no ready node": (fresh(3, unready=1), 3, 1),
    "five stay, and one dies": (fresh(5), 5, 1),
}
MORE_STORIES = {
    "three grow to five, and two die": (fresh(3), 5, 2),
    "three are made anew, and two die": (fresh(3, current=False), 3, 2),
    "five are made anew": (fresh(5, current=False), 5, 1),
    "five stay, and two die": (fresh(5), 5, 2),
}


LARGE = ("one grows to five", "three grow to five", "three are made anew")
"""Stories in which members die, but answer, unless the full counts are asked for."""
SOAKING = os.environ.get("STOCKYARD_SOAK") == "1"


def endless(following: dict[Node, set[Node]], size: int) -> list[State]:
    """The states in which the decider goes on for ever by itself: what it does it undoes."""
    after = {node: (decided(node[0], size)[1], node[1]) for node in following}
    ends: set[Node] = set()
    for begin in after:
        node, way = begin, dict[Node, None]()
        while node not in ends and after[node] != node:
            if node in way:
                return [state for state, _ in way]
            way[node] = None
            node = after[node]
        ends |= {node, *way}
    return []


@pytest.mark.parametrize("story", [*STORIES, *(MORE_STORIES if SOAKING else [])])
def test_no_order_of_deaths_and_delays_gives_up_a_quorum_or_leads_to_where_nothing_goes_on(story: str) -> None:
    begin, size, most = (STORIES | MORE_STORIES)[story]
    following = reach(begin, size, most, silence=SOAKING or story not in LARGE)
    assert stuck(following, size)[:1] == []
    assert endless(following, size) == []
