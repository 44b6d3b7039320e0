"""Bind waiting claims to node types: load, choose, write with conditions, and again for what others took meanwhile.

Any number of schedulers may run on the same claims. A claim is bound by a write on the version that was read, and a
place of a limited type is taken by the same transaction, so that neither can be had twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stockyard.domain.platform import is_shared, use_of
from stockyard.domain.records import Fact, LaunchGroup, NodeClaim, Placement
from stockyard.errors import Conflict
from stockyard.lifecycle import claim as lifecycle
from stockyard.operations import launch_groups
from stockyard.operations.allowed_types import allowed_types
from stockyard.operations.claims import WORKFLOW_ACTOR, claim_writes, start_message
from stockyard.operations.node_catalog import Catalog, load, state
from stockyard.operations.services import Services
from stockyard.operations.wishes import Refused, Wishes
from stockyard.ports import Add, Create, Put, Replace, Write
from stockyard.scheduling.explain import FULL, PROVIDER, REFUSED, explain, reasons
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Candidate, Choice, State, Wanted, choose_all
from stockyard.scheduling.order import fair

OPTIONS = 30
"""Ways besides the chosen one that are kept for the launch: what one call may try."""
ROUNDS = 6
"""How often a pass chooses anew for claims whose place was taken meanwhile. What is left waits for the next pass."""
MOST_WRITES = 96
"""Of a batch; what is left to DynamoDB's limit is for the records of launch groups."""
TRANSACTION = 100
EXPLAINED = 64
"""Different wishes that one pass explains, of those placed and of those that wait: it looks at every node type."""


@dataclass(slots=True)
class Report:
    """What one pass did. ``lost``: bound, changed or deleted by somebody else meanwhile."""

    bound: int = 0
    waiting: int = 0
    lost: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True)
class _Chosen:
    claim: NodeClaim
    wanted: Wanted
    choice: Choice
    considered: Mapping[str, int]


@dataclass(slots=True)
class _Pass:
    """One look at the catalogue, and what was explained from it."""

    services: Services
    catalog: Catalog
    state: State
    explained: dict[Any, Mapping[str, int]] = field(default_factory=dict)
    refused: dict[Any, tuple[str, str]] = field(default_factory=dict)
    """Reason and message by what was asked for in vain."""


def schedule(services: Services, claims: Iterable[NodeClaim]) -> Report:
    """Bind what can be bound of ``claims``, the fair order first; say of the others why not."""
    report = Report()
    waiting = [claim for claim in fair(claims) if claim.due_at is not None and not claim.deleting]
    if not waiting:
        return report
    catalog = load(services)
    wishes = Wishes(services, catalog, allowed_types(services))
    told: list[tuple[NodeClaim, Wanted]] = []
    for claim in waiting:
        found = wishes.read(claim)
        if isinstance(found, Refused):
            _wait(services, claim, found.reason, found.message, report)
        else:
            told.append((replace(claim, cluster_id=wishes.cluster_id(claim)), found))
    for _ in range(ROUNDS):
        if not told:
            break
        one = _Pass(services, catalog, state(services, catalog, services.clock.now()))
        told = _round(one, told, report)
    report.left += len(told)
    return report


def _round(one: _Pass, told: Sequence[tuple[NodeClaim, Wanted]], report: Report) -> list[tuple[NodeClaim, Wanted]]:
    """Choose for all and write; returned are those whose place was gone when it came to writing."""
    choices = choose_all(one.catalog.index, [wanted for _, wanted in told], one.state, candidates=OPTIONS)
    chosen: list[_Chosen] = []
    without: list[tuple[NodeClaim, Wanted]] = []
    free = dict(one.state.free)
    turn = State(free, one.state.refused)
    for (claim, wanted), choice in zip(told, choices, strict=True):
        if choice is None:
            without.append((claim, wanted))
            continue
        chosen.append(_Chosen(claim, wanted, choice, _considered(one, turn, wanted)))
        if choice.kind.limited:
            free[choice.kind.name] = free.get(choice.kind.name, 0) - 1
    again: list[tuple[NodeClaim, Wanted]] = []
    for batch in _batches(chosen):
        again += _write(one, batch, report)
    # To tell why takes longer than to place: whoever has a node type does not wait for that.
    for claim, wanted in without:
        _wait(one.services, claim, *_why_not(one, turn, claim, wanted), report)
    return again


def _batches(chosen: Sequence[_Chosen]) -> Iterable[list[_Chosen]]:
    """Claims by transaction: four writes each, and one for each limited type and each provider among them."""
    batch: list[_Chosen] = []
    others: set[tuple[str, str]] = set()
    for one in chosen:
        kind = one.choice.kind
        its = {("provider", kind.provider), *([("type", kind.name)] if kind.limited else [])}
        if batch and 4 * (len(batch) + 1) + len(others | its) > MOST_WRITES:
            yield batch
            batch, others = [], set()
        others |= its
        batch.append(one)
    if batch:
        yield batch


def _write(one: _Pass, batch: list[_Chosen], report: Report) -> list[tuple[NodeClaim, Wanted]]:
    """Bind a batch in one transaction; what stands in the way is taken out and the rest written."""
    again: list[tuple[NodeClaim, Wanted]] = []
    while batch:
        taken: dict[str, int] = {}
        for chosen in batch:
            if chosen.choice.kind.limited:
                taken[chosen.choice.kind.name] = taken.get(chosen.choice.kind.name, 0) + 1
        limits = one.catalog.limits
        adds: list[Write] = [Add(limits[name].counter, n, limit=limits[name].total) for name, n in taken.items()]
        uses = _uses(one, batch)
        placed, groups = _placed(one, batch, TRANSACTION - len(adds) - len(uses) - 4 * len(batch))
        claims = [_bound(one, claim, placement) for claim, placement in placed]
        new = (Create(group) for group in groups)
        try:
            one.services.store.commit(*adds, *(write for writes in claims for write in writes), *uses, *new)
        except Conflict as conflict:
            index = conflict.index if conflict.index is not None else len(adds)
            if index >= len(adds) + 4 * len(batch):
                raise
            if index < len(adds):
                # Somebody took the place: those who wanted it choose again from what is left by then.
                full = list(taken)[index]
                again += [(c.claim, c.wanted) for c in batch if c.choice.kind.name == full]
                batch = [c for c in batch if c.choice.kind.name != full]
            else:
                report.lost += 1
                del batch[(index - len(adds)) // 4]
            continue
        report.bound += len(batch)
        break
    return again


def _uses(one: _Pass, batch: Sequence[_Chosen]) -> list[Put]:
    """What tells the platform who has nodes of its providers, unless it knows."""
    store, now = one.services.store, one.services.now()
    names = sorted({chosen.choice.kind.provider for chosen in batch})
    shared = [provider for name in names if is_shared(provider := one.catalog.providers[name])]
    uses = [use_of(provider.id, store.tenant) for provider in shared]
    return [Put(Fact(use, store.tenant, now)) for use in uses if store.get(Fact, use) is None]


def _placed(
    one: _Pass, batch: Sequence[_Chosen], room: int
) -> tuple[list[tuple[NodeClaim, Placement]], list[LaunchGroup]]:
    """The claims of a batch with their placements, and the groups of those that one call will launch."""
    now = one.services.now()
    placed = [(chosen.claim, _placement(one, chosen, now)) for chosen in batch]
    by_id = {provider.id: provider for provider in one.catalog.providers.values()}
    groups = launch_groups.form(one.services, by_id, placed, room)
    group_of = {member: group.id for group in groups for member in group.members}
    return [(claim, replace(to, group=group_of.get(claim.id, ""))) for claim, to in placed], groups


def _bound(one: _Pass, waiting: NodeClaim, placement: Placement) -> list[Write]:
    """The four writes of one bound claim."""
    services, now = one.services, one.services.now()
    claim, what = lifecycle.bind(waiting, placement, now)
    claim = replace(claim, sequence=claim.sequence + 1)
    start = start_message(services, "provision_node", claim, str(claim.operation_id), claim.attempt)
    return [Replace(claim), *claim_writes(services, WORKFLOW_ACTOR, claim, what), Create(start)]


def _placement(one: _Pass, chosen: _Chosen, now: str) -> Placement:
    choice = chosen.choice
    return Placement(
        provider_id=one.catalog.providers[choice.kind.provider].id,
        type=choice.kind.name,
        capacity_type=choice.capacity_type,
        zones=choice.zones,
        cost=choice.cost,
        decided_at=now,
        usd_hour=choice.usd_hour,
        counted=choice.kind.limited,
        options=_options(choice),
        considered=dict(chosen.considered),
    )


def _options(choice: Choice) -> tuple[dict[str, Any], ...]:
    """The chosen way and the next ones of the same provider that need no other counted place."""
    usable = [
        other
        for other in choice.alternatives
        if other.kind.provider == choice.kind.provider and (not other.kind.limited or other.kind is choice.kind)
    ]
    return tuple(_option(way) for way in (choice, *usable))


def _option(way: Candidate) -> dict[str, Any]:
    return {
        "type": way.kind.name,
        "capacity_type": way.capacity_type,
        "zones": list(way.zones),
        "usd_hour": way.usd_hour,
        "cost": way.cost,
    }


def _considered(one: _Pass, turn: State, wanted: Wanted) -> Mapping[str, int]:
    """Node types by the first rule that ruled them out when it was the claim's turn; empty once a pass has explained
    enough different wishes."""
    full = frozenset(name for name, free in turn.free.items() if free <= 0)
    key = (*_asked(wanted), full)
    if key not in one.explained:
        if len(one.explained) >= EXPLAINED:
            return {}
        counts: dict[str, int] = {}
        for verdict in explain(one.catalog.index, wanted, turn):
            rule = verdict.rule or "Fits"
            counts[rule] = counts.get(rule, 0) + 1
        one.explained[key] = counts
    return one.explained[key]


def _asked(wanted: Wanted) -> tuple[Any, ...]:
    """What tells the wishes of one pass apart."""
    return wanted.requirements, tuple(sorted(wanted.resources.items())), wanted.provider, wanted.out_of_reach


def _why_not(one: _Pass, left: State, claim: NodeClaim, wanted: Wanted) -> tuple[str, str]:
    """Reason and message of a claim that nothing fits. Once a pass has explained enough different wishes: what was
    said of it before."""
    index, asked = one.catalog.index, _asked(wanted)
    if not index.kinds:
        return "NoNodeTypes", "There is no node type yet. Register a node provider that has some."
    if wanted.provider is not None and wanted.provider not in index.providers:
        return "NoNodeTypes", f"Node provider {wanted.provider} has no node types."
    if asked not in one.refused:
        if len(one.refused) >= EXPLAINED:
            told = claim.reason == _NEVER or claim.reason in _PASSING.values()
            return (claim.reason, claim.message) if told else (_NEVER, _UNEXPLAINED)
        one.refused[asked] = _reason(index, left, wanted)
    return one.refused[asked]


def _reason(index: Index, left: State, wanted: Wanted) -> tuple[str, str]:
    found = reasons(explain(index, wanted, left))
    others = [one for one in found if one.rule != PROVIDER]
    rules = {one.rule for one in others}
    reason = next((_PASSING[rule] for rule in _PASSING if rule in rules), _NEVER)
    return reason, "No node type fits: " + "; ".join(one.message for one in others) + "."


_NEVER, _UNEXPLAINED = "NoMatchingNodeType", "No node type fits now. The claim's explanation names the rules."
_PASSING: Mapping[str, str] = {REFUSED: "InsufficientCapacity", FULL: "NoCapacity"}
"""What passes by itself is the reason to name, before what never fits."""


def _wait(services: Services, claim: NodeClaim, reason: str, message: str, report: Report) -> None:
    report.waiting += 1
    changed = lifecycle.wait(claim, reason, message, services.now())
    if changed is None:
        return
    told = lifecycle.told_to_wait(changed)
    changed = replace(changed, sequence=changed.sequence + 1)
    try:
        services.store.commit(Replace(changed), *claim_writes(services, WORKFLOW_ACTOR, changed, told))
    except Conflict:
        report.waiting -= 1
        report.lost += 1
