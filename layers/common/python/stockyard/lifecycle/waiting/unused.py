"""Room that pods wait beside, and nodes that were made for them and took none: what is remembered of it. Pure.

A plan may be wrong about what the cluster's scheduler lets onto a node: a webhook, a size that nobody foresaw, a
scheduler of somebody else. So room that pods have not used in time is not believed any more for them, and after two
nodes that helped them nothing no third is made for them.

``memory`` is what ``UnusedRoom.groups`` holds, by the id of a group of equal pods. A group is forgotten when its pods
do not wait any more, and when what it was learned under has changed: the pools and the DaemonSets. What is remembered
of one node is forgotten when the node's report changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from stockyard.domain.values import times

BELIEVED_SECONDS = 90
"""How long pods may wait beside room before it is not believed any more, and another node is made."""
UNUSED_SECONDS = 120
"""How long a node is ready before it counts as one that took none of the pods that it was made for."""
LEFT_SECONDS = 30
"""The same for a node that has left: an empty one goes soon."""
MOST_UNUSED = 2
"""Nodes that took none of the pods that they were made for; after so many no other is made."""
MOST_GROUPS, MOST_NODES = 40, 10
"""Groups, and nodes of each, that are remembered."""
_Value = TypeVar("_Value")
DigestOf = Callable[[str], str | None]
"""What the cluster reports of a node, in short, by its name; None for one that takes no pods."""


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """Memory of one group of equal pods.

    ``since`` is when it was first remembered: only nodes that were made later were made for the pods that wait now.
    ``rooms``: since when they have waited beside the room of a node, and that node's digest. ``nodes``: since when a
    node that was made for them is seen to have taken none of them, and its digest. ``unused``: the nodes that helped
    nothing for long enough, with their digests; None for one that has left.
    """

    digest: str
    since: str
    rooms: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    nodes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unused: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> GroupMemory:
        """As ``document`` wrote it."""
        rooms, nodes = _pairs(stored["rooms"]), _pairs(stored["nodes"])
        return cls(str(stored["mark"]), str(stored["since"]), rooms, nodes, dict(stored["unused"]))

    def document(self) -> dict[str, Any]:
        """As it is stored."""
        rooms, nodes = ({name: list(entry) for name, entry in part.items()} for part in (self.rooms, self.nodes))
        return {
            "mark": self.digest,
            "since": self.since,
            "rooms": rooms,
            "nodes": nodes,
            "unused": dict(self.unused),
        }

    @property
    def is_empty(self) -> bool:
        """Whether nothing is remembered."""
        return not (self.rooms or self.nodes or self.unused)

    @property
    def is_braked(self) -> bool:
        """Whether no other node is made for the pods, as those that were made have helped nothing."""
        return len(self.unused) >= MOST_UNUSED

    @property
    def is_held(self) -> bool:
        """Whether no other node is made for now: it is not known yet whether those that are ready help."""
        return len(self.unused.keys() | self.nodes.keys()) >= MOST_UNUSED

    def distrusted(self, now: datetime) -> Sequence[str]:
        """The nodes whose room is not believed any more."""
        return sorted(
            {
                *self.unused_rooms(now, BELIEVED_SECONDS),
                *(name for name, last in self.unused.items() if last),
            }
        )

    def unused_rooms(self, now: datetime, seconds: int) -> Sequence[str]:
        """The nodes beside whose room the pods have waited for so long."""
        limit = timedelta(seconds=seconds)
        return sorted(name for name, (since, _) in self.rooms.items() if times.from_text(since) + limit <= now)


@dataclass(frozen=True, slots=True)
class MadeNode:
    """A node that was made for pods, and when; one that is ready, or that has no room for them as it comes.

    ``took`` says that some of the pods run there, ``is_full`` that other pods have taken its room meanwhile.
    """

    created_at: str
    took: bool = False
    is_full: bool = False


def after_report(
    memory: Mapping[str, GroupMemory],
    groups: Mapping[str, Mapping[str, MadeNode]],
    names: Set[str],
    digest_of: DigestOf,
    digest: str,
    now: str,
) -> Mapping[str, GroupMemory]:
    """Memory after a report.

    ``groups`` are those that wait, with the nodes that were made for each; ``names`` the nodes that are there,
    ready or not; ``mark`` stands for the pools and DaemonSets as they are.
    """
    remembered: dict[str, GroupMemory] = {}
    for group in sorted(groups)[:MOST_GROUPS]:
        before = memory.get(group)
        if before is None or before.digest != digest:
            before = GroupMemory(digest, now)
        remembered[group] = _after_report(before, groups[group], names, digest_of, now)
    return remembered


def _after_report(
    before: GroupMemory, made_nodes: Mapping[str, MadeNode], names: Set[str], digest_of: DigestOf, now: str
) -> GroupMemory:
    rooms = {name: entry for name, entry in before.rooms.items() if digest_of(name) == entry[1]}
    made_nodes = {name: node for name, node in made_nodes.items() if node.created_at >= before.since}
    if any(node.took for node in made_nodes.values()):
        # Nodes help these pods: what others took of them, or what comes late, is no fault of the plan.
        return GroupMemory(before.digest, before.since, rooms)
    unused = {
        name: digest for name, digest in before.unused.items() if digest is None or digest_of(name) in (digest, None)
    }
    nodes: dict[str, tuple[str, str]] = {}
    for name in sorted(made_nodes):
        digest = digest_of(name)
        if digest is None or made_nodes[name].is_full:
            continue
        since, known_digest = before.nodes.get(name, (now, digest))
        nodes[name] = (since, digest) if known_digest == digest else (now, digest)
        if _has_passed(nodes[name][0], UNUSED_SECONDS, now):
            unused[name] = digest
    for name in before.nodes.keys() - names:
        if name in unused or _has_passed(before.nodes[name][0], LEFT_SECONDS, now):
            unused[name] = None
    return GroupMemory(before.digest, before.since, rooms, _few(nodes), _few(unused))


def after_plan(
    memory: Mapping[str, GroupMemory],
    beside: Mapping[str, Set[str]],
    bought: Set[str],
    digest_of: DigestOf,
    now: str,
) -> Mapping[str, GroupMemory]:
    """The memory after a plan in which pods of these groups have room on ready nodes. Of the groups ``bought`` it is
    remembered since when they wait: nodes are made for them, or were by earlier plans."""
    remembered = {group: entry for group, entry in memory.items() if group in bought or not entry.is_empty}
    for group, names in beside.items():
        before = memory.get(group)
        if before is not None:
            fresh = {name: (now, digest) for name in sorted(names) if (digest := digest_of(name)) is not None}
            remembered[group] = replace(before, rooms=_few({**fresh, **before.rooms}))
    return remembered


def _pairs(stored: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, str]]:
    return {name: (since, digest) for name, (since, digest) in stored.items()}


def _has_passed(since: str, seconds: int, now: str) -> bool:
    return times.from_text(since) + timedelta(seconds=seconds) <= times.from_text(now)


def _few(entries: Mapping[str, _Value]) -> dict[str, _Value]:
    """So many that a record of all groups stays small."""
    return dict(sorted(entries.items())[:MOST_NODES])
