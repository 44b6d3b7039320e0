"""Why a claim got its node type: for each kind the first rule, in the order of ``RULES``, that ruled it out.

Written straight from the rules, kind by kind, and not by the masks of ``match``: each proves the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from stockyard.domain.node_types import ANY, NodeKind, Offering, is_extended
from stockyard.domain.quantities import text
from stockyard.domain.requirements import CAPACITY_TYPE, INSTANCE_TYPE, NODE_TYPE, ZONE, Requirement
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import State, Wanted
from stockyard.scheduling.order import Row, cheapest_first, row_of

PROVIDER, OUT_OF_REACH, NOT_ALLOWED = "Provider", "OutOfReach", "NotAllowed"
UNAVAILABLE, REQUIREMENT = "Unavailable", "Requirement"
EXTENDED, RESOURCE, OFFERING = "ExtendedResource", "Resource", "Offering"
FULL, REFUSED, MIN_VALUES = "Full", "RefusedRecently", "MinValues"
RULES = (
    PROVIDER,
    OUT_OF_REACH,
    NOT_ALLOWED,
    UNAVAILABLE,
    REQUIREMENT,
    EXTENDED,
    RESOURCE,
    OFFERING,
    FULL,
    REFUSED,
    MIN_VALUES,
)
"""The order in which rules are tried. Within a rule: requirements as the claim lists them, resources by name."""
_SENTENCES: Mapping[str, str] = {
    PROVIDER: "of another provider",
    OUT_OF_REACH: "that cannot be in the cluster's network and a zone as asked",
    NOT_ALLOWED: "not among the allowed node types",
    UNAVAILABLE: "not available",
    REQUIREMENT: "without a value of {} as asked",
    EXTENDED: "kept for claims that ask for {}",
    RESOURCE: "without enough {}",
    OFFERING: "not offered with this capacity type in this zone",
    FULL: "with all nodes taken",
    REFUSED: "refused by the provider a short while ago",
    MIN_VALUES: "left, but with fewer values of {} than minValues",
}
_BYTES = ("memory", "ephemeral-storage", "hugepages-")


@dataclass(frozen=True, slots=True)
class Verdict:
    """One kind: ``rule`` (with its key or resource as ``subject``) ruled it out, or None: it fits.

    Price, cost, capacity type and zones are those of its cheapest way that fits, else of its cheapest at all.
    """

    kind: NodeKind
    rule: str | None
    subject: str
    message: str
    capacity_type: str | None = None
    zones: tuple[str, ...] = ()
    usd_hour: float | None = None
    cost: float | None = None
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """How many kinds one rule ruled out, as a sentence."""

    rule: str
    subject: str
    count: int
    message: str


@dataclass(frozen=True, slots=True)
class _Ruled:
    rule: str
    subject: str
    message: str


def explain(index: Index, wanted: Wanted, state: State) -> list[Verdict]:
    """A verdict for each kind: first those that fit, in the order of choice, then the others by name."""
    scope = [kind for kind in index.kinds if wanted.provider in (None, kind.provider)]
    named = {key: _resolved(scope, key, wanted.requirements.get(key)) for key in (NODE_TYPE, INSTANCE_TYPE)}
    fitting: list[Row] = []
    ruled: list[Verdict] = []
    for kind in index.kinds:
        found = _ruled_out(kind, wanted, state, named)
        if isinstance(found, _Ruled):
            ruled.append(_verdict(kind, wanted, found))
        else:
            fitting += found
    few = _too_few(fitting, wanted)
    if few is not None:
        kinds = {row.kind.name: row.kind for row in fitting}
        ruled += [_verdict(kind, wanted, few) for kind in kinds.values()]
        fitting = []
    return _in_order(fitting, wanted) + sorted(ruled, key=lambda verdict: verdict.kind.name)


def reasons(verdicts: Iterable[Verdict]) -> list[Reason]:
    """What ruled kinds out, one reason per rule and subject, in the order of the rules, the most frequent first."""
    counts: dict[tuple[str, str], int] = {}
    for verdict in verdicts:
        if verdict.rule is not None:
            mark = (verdict.rule, verdict.subject)
            counts[mark] = counts.get(mark, 0) + 1
    ordered = sorted(counts.items(), key=lambda pair: (RULES.index(pair[0][0]), -pair[1], pair[0][1]))
    return [
        Reason(rule, subject, count, f"{count} node type{'s' * (count > 1)} {_SENTENCES[rule].format(subject)}")
        for (rule, subject), count in ordered
    ]


def _ruled_out(
    kind: NodeKind, wanted: Wanted, state: State, named: Mapping[str, Requirement | None]
) -> _Ruled | list[Row]:
    """The first rule against ``kind``, else its ways to get a node, each with the zones that are left."""
    if wanted.provider not in (None, kind.provider):
        return _Ruled(PROVIDER, "", f"it is of {kind.provider}, the claim asks for {wanted.provider}")
    if kind.provider in wanted.out_of_reach:
        return _Ruled(OUT_OF_REACH, "", f"{kind.provider} has none in the cluster's network and a zone as asked")
    if wanted.allowed is not None and not {kind.name, f"{kind.provider}.*"} & set(wanted.allowed):
        return _Ruled(NOT_ALLOWED, "", "it is not among the allowed node types")
    if not kind.available:
        return _Ruled(UNAVAILABLE, "", "it is not available now")
    return _not_as_asked(kind, wanted, named) or _too_small(kind, wanted) or _not_now(kind, wanted, state)


def _not_as_asked(kind: NodeKind, wanted: Wanted, named: Mapping[str, Requirement | None]) -> _Ruled | None:
    for key, asked in wanted.requirements.items():
        if key in (ZONE, CAPACITY_TYPE):
            continue
        if key in named:
            meant = named[key]
            values: tuple[str, ...] = (kind.name,)
        else:
            meant, values = asked, kind.properties.get(key, ())
        if meant is not None and not _of_values(values).overlaps(meant):
            there = f"is {', '.join(values)}" if values else "is not there"
            return _Ruled(REQUIREMENT, key, f"{key} {there}; asked is {_words(key, asked)}")
    return None


def _too_small(kind: NodeKind, wanted: Wanted) -> _Ruled | None:
    for name in sorted({*kind.capacity, *kind.allocatable}):
        has = max(kind.capacity.get(name, 0), kind.allocatable.get(name, 0)) > 0
        if is_extended(name) and has and wanted.resources.get(name, 0) <= 0:
            return _Ruled(EXTENDED, name, f"it has {name}, which the claim does not ask for")
    for name, amount in sorted(kind.allocatable.items()):
        if amount < 0:
            return _Ruled(RESOURCE, name, f"{name}: its overhead is larger than what it has")
    for name, amount in sorted(wanted.resources.items()):
        have = kind.allocatable.get(name, 0)
        if amount > max(have, 0):
            return _Ruled(RESOURCE, name, f"{name}: {_shown(name, amount)} asked, {_shown(name, have)} allocatable")
    return None


def _not_now(kind: NodeKind, wanted: Wanted, state: State) -> _Ruled | list[Row]:
    capacity_type, zone = wanted.requirements.get(CAPACITY_TYPE), wanted.requirements.get(ZONE)
    offered = [
        (offering, zones)
        for offering in kind.offerings
        if capacity_type is None or _of_values((offering.capacity_type,)).overlaps(capacity_type)
        if (zones := [one for one in offering.zones if zone is None or _of_values((one,)).overlaps(zone)])
    ]
    if not offered:
        has = "; ".join(f"{one.capacity_type} in {', '.join(one.zones)}" for one in kind.offerings) or "nothing"
        return _Ruled(OFFERING, "", f"no offering has the capacity type and a zone as asked; it has {has}")
    if kind.limited and state.free.get(kind.name, 0) <= 0:
        return _Ruled(FULL, "", "all its nodes are taken")
    left = [_left(kind, offering, zones, state) for offering, zones in offered]
    rows = [row for row in left if row.zones]
    if not rows:
        where = sorted({one for _, zones in offered for one in zones})
        return _Ruled(REFUSED, "", f"the provider refused it a short while ago in {', '.join(where)}")
    return rows


def _left(kind: NodeKind, offering: Offering, zones: Sequence[str], state: State) -> Row:
    refused = {
        zone for name, capacity, zone in state.refused if (name, capacity) == (kind.name, offering.capacity_type)
    }
    left = () if ANY in refused else tuple(zone for zone in zones if zone not in refused)
    return replace(row_of(kind, offering), zones=left)


def _too_few(fitting: Sequence[Row], wanted: Wanted) -> _Ruled | None:
    for key, asked in wanted.requirements.items():
        if asked.min_values is None or not fitting:
            continue
        if key in (NODE_TYPE, INSTANCE_TYPE):
            values = {row.kind.name for row in fitting}
        else:
            values = {value for row in fitting for value in _values(row, key) if value != ANY and asked.has(value)}
        if len(values) < asked.min_values:
            message = f"{key}: {len(values)} values are left to choose from, minValues is {asked.min_values}"
            return _Ruled(MIN_VALUES, key, message)
    return None


def _values(row: Row, key: str) -> tuple[str, ...]:
    if key == ZONE:
        return row.zones
    return (row.capacity_type,) if key == CAPACITY_TYPE else row.kind.properties.get(key, ())


def _resolved(scope: Sequence[NodeKind], key: str, asked: Requirement | None) -> Requirement | None:
    """``asked`` with the canonical names of the kinds that its values name."""
    if asked is None:
        return None
    names = {name for value in asked.values for name in (_meant(scope, key, value) or [value])}
    return replace(asked, values=frozenset(names))


def _meant(scope: Sequence[NodeKind], key: str, value: str) -> list[str]:
    if any(kind.name == value for kind in scope):
        return [value]
    labelled = [kind.name for kind in scope if key == INSTANCE_TYPE and value in kind.properties.get(key, ())]
    if labelled and value != ANY:
        return labelled
    bare = [kind.name for kind in scope if kind.bare == value]
    return bare if len(bare) == 1 else []


def _in_order(fitting: Sequence[Row], wanted: Wanted) -> list[Verdict]:
    """One verdict per kind, by its cheapest way."""
    best: dict[str, Row] = {}
    for row in cheapest_first(fitting, wanted.provider):
        best.setdefault(row.kind.name, row)
    verdicts = []
    for place, row in enumerate(best.values()):
        message = "the cheapest that fits" if place == 0 else "it fits, but others come first"
        if row.usd_hour is None and wanted.provider is None:
            message += "; no price is known, so it ranks last"
        verdicts.append(
            Verdict(
                row.kind, None, "", message, row.capacity_type, row.zones, row.usd_hour, row.cost, chosen=place == 0
            )
        )
    return verdicts


def _verdict(kind: NodeKind, wanted: Wanted, ruled: _Ruled) -> Verdict:
    rows = cheapest_first([row_of(kind, offering) for offering in kind.offerings], wanted.provider)
    known = Verdict(kind, ruled.rule, ruled.subject, ruled.message, cost=kind.cost)
    if not rows:
        return known
    row = rows[0]
    return replace(known, capacity_type=row.capacity_type, zones=row.zones, usd_hour=row.usd_hour, cost=row.cost)


def _of_values(values: tuple[str, ...]) -> Requirement:
    """What a kind with these values of a key can be."""
    if ANY in values:
        return Requirement(complement=True)
    return Requirement(complement=False, values=frozenset(values))


def _words(key: str, asked: Requirement) -> str:
    return " and ".join(
        f"{entry['operator']} {', '.join(entry.get('values', ()))}".strip() for entry in asked.entries(key)
    )


def _shown(name: str, amount: int) -> str:
    return text(amount, binary=name.startswith(_BYTES))
