"""Explains a choice: for each node type the first rule, in the order of ``RULES``, that excluded it.

It evaluates the rules node type by node type, without the masks of ``match``, so that each tests the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from stockyard.domain.node_types import ANY, NodeType, Offering, is_extended
from stockyard.domain.quantities import resource_text
from stockyard.domain.requirements import CAPACITY_TYPE, INSTANCE_TYPE, NODE_TYPE, ZONE, Requirement
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability, SchedulingRequest
from stockyard.scheduling.order import RankedOffering, cheapest_first, ranked

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


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The evaluation of one node type. ``rule`` is None when it matches, else the rule that excluded it.

    ``subject`` is the rule's key or resource. Price, cost, capacity type and zones are those of the cheapest matching
    offering, or of the cheapest offering when none matches.
    """

    node_type: NodeType
    rule: str | None
    subject: str
    message: str
    capacity_type: str | None = None
    zones: tuple[str, ...] = ()
    usd_hour: float | None = None
    cost: float | None = None
    selected: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """The number of node types that one rule excluded, with a sentence that says so."""

    rule: str
    subject: str
    count: int
    message: str


@dataclass(frozen=True, slots=True)
class Incompatibility:
    rule: str
    subject: str
    message: str


def explain(index: Index, request: SchedulingRequest, availability: Availability) -> list[Evaluation]:
    """An evaluation for each node type: first those that match, in the order of choice, then the others by name."""
    scope = [node_type for node_type in index.node_types if request.provider in (None, node_type.provider)]
    named = {key: _resolved(scope, key, request.requirements.get(key)) for key in (NODE_TYPE, INSTANCE_TYPE)}
    fitting: list[RankedOffering] = []
    ruled: list[Evaluation] = []
    for node_type in index.node_types:
        result = _ruled_out(node_type, request, availability, named)
        if isinstance(result, Incompatibility):
            ruled.append(_evaluation(node_type, request, result))
        else:
            fitting += result
    few = _too_few(fitting, request)
    if few is not None:
        node_types = {row.node_type.name: row.node_type for row in fitting}
        ruled += [_evaluation(node_type, request, few) for node_type in node_types.values()]
        fitting = []
    return _in_order(fitting, request) + sorted(ruled, key=lambda evaluation: evaluation.node_type.name)


def reasons(evaluations: Iterable[Evaluation]) -> list[Reason]:
    """Why node types were excluded: a reason per rule and subject, by order of the rules, most frequent first."""
    counts: dict[tuple[str, str], int] = {}
    for evaluation in evaluations:
        if evaluation.rule is not None:
            mark = (evaluation.rule, evaluation.subject)
            counts[mark] = counts.get(mark, 0) + 1
    ordered = sorted(counts.items(), key=lambda pair: (RULES.index(pair[0][0]), -pair[1], pair[0][1]))
    return [
        Reason(rule, subject, count, f"{count} node type{'s' * (count > 1)} {_SENTENCES[rule].format(subject)}")
        for (rule, subject), count in ordered
    ]


def _ruled_out(
    node_type: NodeType, request: SchedulingRequest, availability: Availability, named: Mapping[str, Requirement | None]
) -> Incompatibility | list[RankedOffering]:
    """The first rule that excludes ``node_type``, else its matching offerings with their usable zones."""
    if request.provider not in (None, node_type.provider):
        return Incompatibility(PROVIDER, "", f"it is of {node_type.provider}, the claim asks for {request.provider}")
    if node_type.provider in request.out_of_reach:
        return Incompatibility(
            OUT_OF_REACH, "", f"{node_type.provider} has none in the cluster's network and a zone as asked"
        )
    if request.allowed is not None and not {node_type.name, f"{node_type.provider}.*"} & set(request.allowed):
        return Incompatibility(NOT_ALLOWED, "", "it is not among the allowed node types")
    if not node_type.available:
        return Incompatibility(UNAVAILABLE, "", "it is not available now")
    return (
        _not_as_asked(node_type, request, named)
        or _too_small(node_type, request)
        or _not_now(node_type, request, availability)
    )


def _not_as_asked(
    node_type: NodeType, request: SchedulingRequest, named: Mapping[str, Requirement | None]
) -> Incompatibility | None:
    for key, requirement in request.requirements.items():
        if key in (ZONE, CAPACITY_TYPE):
            continue
        if key in named:
            resolved = named[key]
            values: tuple[str, ...] = (node_type.name,)
        else:
            resolved, values = requirement, node_type.properties.get(key, ())
        if resolved is not None and not _of_values(values).overlaps(resolved):
            there = f"is {', '.join(values)}" if values else "is not there"
            return Incompatibility(REQUIREMENT, key, f"{key} {there}; asked is {_words(key, requirement)}")
    return None


def _too_small(node_type: NodeType, request: SchedulingRequest) -> Incompatibility | None:
    for name in sorted({*node_type.capacity, *node_type.allocatable}):
        has = max(node_type.capacity.get(name, 0), node_type.allocatable.get(name, 0)) > 0
        if is_extended(name) and has and request.resources.get(name, 0) <= 0:
            return Incompatibility(EXTENDED, name, f"it has {name}, which the claim does not ask for")
    for name, amount in sorted(node_type.allocatable.items()):
        if amount < 0:
            return Incompatibility(RESOURCE, name, f"{name}: its overhead is larger than what it has")
    for name, amount in sorted(request.resources.items()):
        have = node_type.allocatable.get(name, 0)
        if amount > max(have, 0):
            return Incompatibility(
                RESOURCE,
                name,
                f"{name}: {resource_text(name, amount)} asked, {resource_text(name, have)} allocatable",
            )
    return None


def _not_now(
    node_type: NodeType, request: SchedulingRequest, availability: Availability
) -> Incompatibility | list[RankedOffering]:
    capacity_type, zone = request.requirements.get(CAPACITY_TYPE), request.requirements.get(ZONE)
    offered = [
        (offering, zones)
        for offering in node_type.offerings
        if capacity_type is None or _of_values((offering.capacity_type,)).overlaps(capacity_type)
        if (zones := [name for name in offering.zones if zone is None or _of_values((name,)).overlaps(zone)])
    ]
    if not offered:
        has = "; ".join(f"{item.capacity_type} in {', '.join(item.zones)}" for item in node_type.offerings) or "nothing"
        return Incompatibility(OFFERING, "", f"no offering has the capacity type and a zone as asked; it has {has}")
    if node_type.limited and availability.free.get(node_type.name, 0) <= 0:
        return Incompatibility(FULL, "", "all its nodes are taken")
    usable = [_with_remaining_zones(node_type, offering, zones, availability) for offering, zones in offered]
    rows = [row for row in usable if row.zones]
    if not rows:
        refused_zones = sorted({zone_name for _, zones in offered for zone_name in zones})
        return Incompatibility(REFUSED, "", f"the provider refused it a short while ago in {', '.join(refused_zones)}")
    return rows


def _with_remaining_zones(
    node_type: NodeType, offering: Offering, zones: Sequence[str], availability: Availability
) -> RankedOffering:
    refused = {
        zone
        for name, capacity, zone in availability.refused
        if (name, capacity) == (node_type.name, offering.capacity_type)
    }
    zones_left = () if ANY in refused else tuple(zone for zone in zones if zone not in refused)
    return replace(ranked(node_type, offering), zones=zones_left)


def _too_few(fitting: Sequence[RankedOffering], request: SchedulingRequest) -> Incompatibility | None:
    for key, requirement in request.requirements.items():
        if requirement.min_values is None or not fitting:
            continue
        if key in (NODE_TYPE, INSTANCE_TYPE):
            values = {row.node_type.name for row in fitting}
        else:
            values = {
                value for row in fitting for value in _values(row, key) if value != ANY and requirement.has(value)
            }
        if len(values) < requirement.min_values:
            message = f"{key}: {len(values)} values are left to choose from, minValues is {requirement.min_values}"
            return Incompatibility(MIN_VALUES, key, message)
    return None


def _values(row: RankedOffering, key: str) -> tuple[str, ...]:
    if key == ZONE:
        return row.zones
    return (row.capacity_type,) if key == CAPACITY_TYPE else row.node_type.properties.get(key, ())


def _resolved(scope: Sequence[NodeType], key: str, requirement: Requirement | None) -> Requirement | None:
    """``requirement`` with its values replaced by the canonical names of the node types that they stand for."""
    if requirement is None:
        return None
    names = {name for value in requirement.values for name in (_canonical_names(scope, key, value) or [value])}
    return replace(requirement, values=frozenset(names))


def _canonical_names(scope: Sequence[NodeType], key: str, value: str) -> list[str]:
    if any(node_type.name == value for node_type in scope):
        return [value]
    labelled = [
        node_type.name for node_type in scope if key == INSTANCE_TYPE and value in node_type.properties.get(key, ())
    ]
    if labelled and value != ANY:
        return labelled
    bare = [node_type.name for node_type in scope if node_type.bare == value]
    return bare if len(bare) == 1 else []


def _in_order(fitting: Sequence[RankedOffering], request: SchedulingRequest) -> list[Evaluation]:
    """One evaluation per node type, for its cheapest matching offering."""
    best: dict[str, RankedOffering] = {}
    for row in cheapest_first(fitting, request.provider):
        best.setdefault(row.node_type.name, row)
    evaluations = []
    for place, row in enumerate(best.values()):
        message = "the cheapest that fits" if place == 0 else "it fits, but others come first"
        if row.usd_hour is None and request.provider is None:
            message += "; no price is known, so it ranks last"
        evaluations.append(
            Evaluation(
                row.node_type,
                None,
                "",
                message,
                row.capacity_type,
                row.zones,
                row.usd_hour,
                row.cost,
                selected=place == 0,
            )
        )
    return evaluations


def _evaluation(node_type: NodeType, request: SchedulingRequest, ruled: Incompatibility) -> Evaluation:
    rows = cheapest_first([ranked(node_type, offering) for offering in node_type.offerings], request.provider)
    evaluation = Evaluation(node_type, ruled.rule, ruled.subject, ruled.message, cost=node_type.cost)
    if not rows:
        return evaluation
    row = rows[0]
    return replace(evaluation, capacity_type=row.capacity_type, zones=row.zones, usd_hour=row.usd_hour, cost=row.cost)


def _of_values(values: tuple[str, ...]) -> Requirement:
    """The requirement that a node type with these values of a key can satisfy."""
    if ANY in values:
        return Requirement(complement=True)
    return Requirement(complement=False, values=frozenset(values))


def _words(key: str, requirement: Requirement) -> str:
    return " and ".join(
        f"{entry['operator']} {', '.join(entry.get('values', ()))}".strip() for entry in requirement.entries(key)
    )
