"""What a cluster's agent says of pods: which wait for a node, and what runs where."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from stockyard.domain.models.base import Input, View
from stockyard.domain.models.observations import MOST_NODES, Labels, Moment, Name, Text
from stockyard.domain.workload_records import MOST_GROUPS

MOST_ALTERNATIVES = 100
MOST_NAMES = 5
_TWICE = 2
"""A report of changes may take away as many entries as it brings."""
GroupId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
ShownName = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class VolumePlace(Input):
    """A requirement on the node's labels, as a volume's node affinity has it."""

    key: Name
    operator: Annotated[str, StringConstraints(max_length=20)]
    values: Annotated[list[Text], Field(max_length=1_000)] = Field(default_factory=list)


class PodTemplate(Input):
    """Equal pods: what of their manifest decides where they may go.

    ``spec`` is the part of a pod's specification that scheduling reads. ``volumes`` are the alternatives of where
    their volumes can be, each a list of requirements that hold together. ``daemon_set`` is the namespace and name of
    the DaemonSet that makes them, empty for other pods.
    """

    namespace: Name
    labels: Labels = Field(default_factory=dict)
    spec: Annotated[dict[str, Any], Field(max_length=32)]
    volumes: Annotated[
        list[Annotated[list[VolumePlace], Field(max_length=MOST_ALTERNATIVES)]], Field(max_length=MOST_ALTERNATIVES)
    ] = Field(default_factory=list)
    daemon_set: Annotated[str, StringConstraints(max_length=512)] = ""


class WaitingPods(Input):
    """How many pods of a group wait for a node, and the namespaces and names of a few."""

    count: Count
    names: Annotated[list[ShownName], Field(max_length=MOST_NAMES)] = Field(default_factory=list)


class PendingPods(Input):
    """One post of the agent. All of it, or what changed since the report of the sequence ``base``: there an entry of
    null takes away what was said under its name.

    ``running`` are the pods of each node, ``daemon_sets`` the pods that each DaemonSet makes, ``omitted`` how many
    pods that wait were left out, because there are too many different ones.
    """

    sequence: Annotated[int, Field(ge=0, le=2**53 - 1)]
    base: Annotated[int, Field(ge=0, le=2**53 - 1)] | None = None
    observed_at: Moment
    agent_version: Text
    groups: Annotated[dict[GroupId, PodTemplate | None], Field(max_length=_TWICE * MOST_GROUPS)]
    pending: Annotated[dict[GroupId, WaitingPods | None], Field(max_length=_TWICE * MOST_GROUPS)]
    running: Annotated[
        dict[Name, Annotated[dict[GroupId, Count], Field(max_length=1_000)] | None],
        Field(max_length=_TWICE * MOST_NODES),
    ] = Field(default_factory=dict)
    daemon_sets: Annotated[dict[ShownName, GroupId | None], Field(max_length=_TWICE * MOST_GROUPS)] = Field(
        default_factory=dict
    )
    omitted: Annotated[int, Field(ge=0, le=10_000_000)] = 0


class PendingPodsAnswer(View):
    """``sequence`` is that of the report that Stockyard has: the base of the next changes. With ``resync`` it could not
    use this one, and needs all of it. ``interval_seconds`` says how soon to come again when nothing changes."""

    sequence: int
    resync: bool
    interval_seconds: int
