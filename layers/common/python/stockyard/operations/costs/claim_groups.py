"""Claims that cost alike and are in the same phase, as one: how many there are, and since when on the average."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from stockyard.domain.nodes.node_types import ANY
from stockyard.domain.nodes.properties import ROOT_DISK
from stockyard.domain.nodes.records import PlacementOption
from stockyard.domain.records import NodeClaim, Placement
from stockyard.domain.values import times
from stockyard.domain.values.states import ReadyPhase

PENDING = "Pending"
_MILLISECONDS = 1000


class Kind(NamedTuple):
    """Common values of the claims of a group, of which all that is told of costs follows but for the time."""

    pool: str
    phase: ReadyPhase
    deleting: bool
    member: str
    """The claim's id, where it is a member of a control plane: each is a group of its own. Else empty."""
    type: str | None
    """None for claims that wait; then all that follows says nothing."""
    capacity_type: str = ""
    usd_hour: float | None = None
    zones: tuple[str, ...] = ()
    disk: str = ""
    launching: bool = False
    """Whether a machine of theirs may still become any of the options."""
    options: tuple[tuple[str, float | None], ...] = ()


class ClaimGroup(NamedTuple):
    """So many claims of one kind of a cluster, whose id is empty for none. ``since`` is the mean of the moments from
    which the month counts them, in milliseconds since 1970."""

    cluster_id: str
    kind: Kind
    number: int
    since: float

    @property
    def waits(self) -> bool:
        """Whether they wait for a node type."""
        return self.kind.type is None and self.kind.phase == PENDING and not self.kind.deleting

    def claim(self) -> NodeClaim:
        """One of them, with what prices and budgets look at."""
        kind, since = self.kind, times.to_text(_moment(self.since))
        options = tuple(
            PlacementOption(name, kind.capacity_type, (ANY,), usd, usd or 0.0) for name, usd in kind.options
        )
        placed = Placement(
            provider_id="",
            type=kind.type or "",
            capacity_type=kind.capacity_type,
            zones=kind.zones,
            cost=0.0,
            decided_at=since,
            usd_hour=kind.usd_hour,
            options=options,
        )
        return NodeClaim(
            id=kind.member,
            name="",
            created_at=since,
            updated_at=since,
            cluster_id=self.cluster_id,
            pool=kind.pool,
            properties={ROOT_DISK: kind.disk} if kind.disk else {},
            control_plane=bool(kind.member),
            phase=kind.phase,
            deleting=kind.deleting,
            machine_id="" if kind.launching else "there",
            placement=None if kind.type is None else placed,
        )


def group_of(claim: NodeClaim, month_start: str) -> ClaimGroup:
    """The claim as a group of its own, counted from the beginning of the month or later."""
    placed, member = claim.placement, claim.id if claim.control_plane else ""
    if placed is None:
        kind = Kind(claim.pool, claim.phase, claim.deleting, member, None)
        return ClaimGroup(claim.cluster_id, kind, 1, 0.0)
    launching = not claim.machine_id and bool(placed.options) and claim.phase == PENDING
    kind = Kind(
        claim.pool,
        claim.phase,
        claim.deleting,
        member,
        placed.type,
        placed.capacity_type,
        placed.usd_hour,
        placed.zones,
        claim.properties.get(ROOT_DISK, ""),
        launching,
        tuple((option.type, option.usd_hour) for option in placed.options) if launching else (),
    )
    since = times.from_text(max(placed.decided_at, month_start)).timestamp() * _MILLISECONDS
    return ClaimGroup(claim.cluster_id, kind, 1, since)


def merged(groups: Iterable[ClaimGroup]) -> list[ClaimGroup]:
    """The same claims in as few groups as there are kinds."""
    sums: dict[tuple[str, Kind], tuple[int, float]] = {}
    for group in groups:
        count, total = sums.get(group[:2], (0, 0.0))
        sums[group[:2]] = count + group.number, total + group.number * group.since
    return [ClaimGroup(cluster_id, kind, n, total / n) for (cluster_id, kind), (n, total) in sums.items()]


def as_rows(groups: Iterable[ClaimGroup], kinds: dict[Kind, int]) -> list[Any]:
    """The groups of one cluster as JSON, with the numbers of their ``kinds``; new ones are entered there."""
    return [[kinds.setdefault(group.kind, len(kinds)), group.number, group.since] for group in groups]


def of_rows(cluster_id: str, rows: Iterable[Sequence[Any]], kinds: Sequence[Kind]) -> list[ClaimGroup]:
    """The groups of a cluster whose JSON this is. What was kept before has the whole kind in place of its number."""
    return [
        ClaimGroup(cluster_id, kinds[kind[0]] if len(kind) == 1 else kind_of(kind), number, since)
        for *kind, number, since in rows
    ]


def kind_of(values: Sequence[Any]) -> Kind:
    """The kind whose JSON this is."""
    pool, phase, deleting, member, name, capacity_type, usd_hour, zones, disk, launching, options = values
    priced = tuple((option, usd) for option, usd in options)
    return Kind(pool, phase, deleting, member, name, capacity_type, usd_hour, tuple(zones), disk, launching, priced)


def _moment(milliseconds: float) -> datetime:
    return datetime.fromtimestamp(round(milliseconds) / _MILLISECONDS, UTC)
