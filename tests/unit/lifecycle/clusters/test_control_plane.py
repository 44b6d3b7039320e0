"""Members of a control plane: every sequence of steps keeps etcd's quorum and ends with the members that are wanted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stockyard.domain.clusters.control_plane import size_fault
from stockyard.lifecycle.clusters.control_plane import (
    Add,
    Admit,
    Delete,
    Done,
    Expel,
    Lost,
    Member,
    Wait,
    Withdraw,
    decide,
    quorum,
)

ZONES = ("a", "b", "c")


@dataclass
class Etcd:
    """A control plane that obeys each order, and dies on request."""

    size: int
    zones: tuple[str, ...] = ZONES
    members: dict[str, Member] = field(default_factory=dict)
    pending: tuple[str, ...] = ()
    steps: list[object] = field(default_factory=list)
    number: int = 0

    def begin(self) -> Etcd:
        self.members["m0"] = Member("m0", self.zones[0], "0000", joined=True, alive=True, healthy=True, serving=True)
        self.number = 1
        return self

    def step(self) -> object:
        """One step, and what becomes of it at once."""
        step = decide(self.size, self.zones, list(self.members.values()))
        self.steps.append(step)
        match step:
            case Add(zone, expels):
                name = f"m{self.number}"
                self.number += 1
                self.members[name] = Member(name, zone, f"{self.number:04}", joined=False, alive=True)
                self.pending = expels
            case Wait():
                self._time_passes()
            case Admit(name):
                self._change(name, serving=True)
            case Withdraw(name):
                self._change(name, serving=False)
            case Expel(name, by) if not self.members[by].joined:
                self.pending = (*self.pending, name)
                self._change(name, in_plan=True)
            case Expel(name, by):
                assert self.members[by].listens
                self._expel(name)
            case Delete(name):
                assert self.members[name].expelled
                del self.members[name]
        return step

    def run(self, most: int = 200) -> object:
        for _ in range(most):
            step = self.step()
            if isinstance(step, Done | Lost):
                return step
        raise AssertionError(self.steps)

    def die(self, name: str) -> None:
        self._change(name, alive=False, healthy=False)

    def voters(self) -> list[Member]:
        return [member for member in self.members.values() if member.votes]

    def has_quorum(self) -> bool:
        voters = self.voters()
        return sum(member.alive for member in voters) >= quorum(len(voters))

    def outdate(self) -> None:
        for name in self.members:
            self._change(name, current=False)

    def _change(self, name: str, **fields: object) -> None:
        self.members[name] = replace(self.members[name], **fields)

    def _expel(self, name: str) -> None:
        assert self.has_quorum(), "etcd changes nothing without a quorum"
        self._change(name, expelled=True, serving=False)

    def _time_passes(self) -> None:
        for name, member in list(self.members.items()):
            if member.alive and not member.joined:
                for dead in self.pending:
                    if dead in self.members:
                        self._expel(dead)
                self.pending = ()
                # etcd takes no voter while another one cannot be reached
                assert all(voter.alive for voter in self.voters())
                self._change(name, joined=True, healthy=True, listens=True)
                return


@pytest.mark.parametrize("size", [1, 3, 5])
def test_a_control_plane_grows_to_its_size_evenly(size: int) -> None:
    etcd = Etcd(size).begin()
    assert etcd.run() == Done()
    assert len(etcd.voters()) == size
    counts = Counter(member.zone for member in etcd.voters())
    assert max(counts.values()) - min((counts[zone] for zone in ZONES[:size]), default=0) <= 1
    assert not any(isinstance(step, Withdraw | Expel | Delete) for step in etcd.steps)


def test_members_join_one_after_the_other() -> None:
    etcd = Etcd(5).begin()
    for _ in range(100):
        if isinstance(etcd.step(), Done):
            break
        assert sum(not member.joined for member in etcd.members.values()) <= 1


@pytest.mark.parametrize("size", [1, 3, 5])
def test_members_that_are_made_otherwise_are_replaced_each_after_its_successor_is_healthy(size: int) -> None:
    etcd = Etcd(size).begin()
    etcd.run()
    etcd.outdate()
    smallest = len(etcd.voters())
    for _ in range(200):
        step = etcd.step()
        smallest = min(smallest, sum(member.healthy for member in etcd.voters()))
        if isinstance(step, Done):
            break
    assert smallest == size
    assert all(member.current for member in etcd.voters())
    assert len(etcd.members) == size
    counts = Counter(member.zone for member in etcd.voters())
    assert max(counts.values()) - min(counts[zone] for zone in ZONES[: min(size, 3)]) <= 1


def test_a_dead_member_leaves_before_its_successor_joins() -> None:
    etcd = Etcd(3).begin()
    etcd.run()
    etcd.die("m1")
    step = etcd.step()
    assert isinstance(step, Add)
    assert step.expels == ("m1",)
    assert step.zone == "b"
    assert etcd.run() == Done()
    assert sorted(etcd.members) == ["m0", "m2", "m3"]


def test_without_a_quorum_nothing_is_done_but_said() -> None:
    etcd = Etcd(3).begin()
    etcd.run()
    etcd.die("m0")
    etcd.die("m1")
    step = etcd.step()
    assert isinstance(step, Lost)
    assert "2 of 3" in step.text
    assert "snapshot" in step.text


def test_a_zone_that_is_gone_has_no_members() -> None:
    etcd = Etcd(3).begin()
    etcd.run()
    etcd.die("m2")
    etcd.zones = ("a", "b")
    assert etcd.run() == Done()
    assert Counter(member.zone for member in etcd.voters()) == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    ("before", "size", "words"),
    [
        (1, 3, None),
        (3, 5, None),
        (1, 5, None),
        (3, 3, None),
        (3, 1, "only grows"),
        (5, 3, "only grows"),
        (1, 2, "1, 3"),
    ],
)
def test_sizes_only_grow(before: int, size: int, words: str | None) -> None:
    fault = size_fault(before, size)
    assert (fault is None) if words is None else words in (fault or "")


@settings(deadline=None, max_examples=300)
@given(
    size=st.sampled_from([3, 5]),
    begin=st.booleans(),
    outdated=st.booleans(),
    deaths=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8)), max_size=6),
)
def test_a_quorum_is_never_given_up(size: int, begin: bool, outdated: bool, deaths: list[tuple[int, int]]) -> None:
    """Members die at any moment, as many as etcd bears; in the end there are those that are wanted."""
    etcd = Etcd(size).begin()
    if not begin:
        etcd.run()
    if outdated:
        etcd.outdate()
    planned = sorted(deaths)
    for moment in range(400):
        while planned and planned[0][0] <= moment:
            _die_if_borne(etcd, planned.pop(0)[1])
        step = etcd.step()
        assert etcd.has_quorum(), etcd.steps
        assert not isinstance(step, Lost)
        if isinstance(step, Done) and not planned:
            break
    assert isinstance(step, Done)
    assert len(etcd.voters()) == size == len(etcd.members)
    assert all(member.alive and member.current and member.serving for member in etcd.members.values())


def _die_if_borne(etcd: Etcd, index: int) -> None:
    """A member dies, unless etcd would not bear it, or the one that joins is the victim's successor just now."""
    names = sorted(etcd.members)
    name = names[index % len(names)]
    survivors = [member for member in etcd.voters() if member.alive and member.id != name]
    if len(survivors) >= quorum(len(etcd.voters())) and all(m.joined for m in etcd.members.values()):
        etcd.die(name)
