"""Bind waiting claims to node types: load, choose, write with conditions, and again for what others took meanwhile.

Any number of schedulers may run on the same claims. A claim is bound by a write on the version that was read, and a
place of a limited type is taken by the same transaction, so that neither can be had twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from stockyard.domain.month_budgets import BUDGET_REACHED
from stockyard.domain.nodes.disks import price_with_disk
from stockyard.domain.platform import is_shared, use_of
from stockyard.domain.pools.bids import ABOVE_BID
from stockyard.domain.pools.records import cluster_claim
from stockyard.domain.records import Fact, LaunchGroup, NodeClaim, Placement, PlacementOption
from stockyard.domain.values import times
from stockyard.errors import Conflict
from stockyard.lifecycle.nodes.node_claim import MOVES
from stockyard.lifecycle.nodes.node_phases import CREATE_NODE
from stockyard.operations.costs.announce import announce
from stockyard.operations.engine.advance import WORKFLOW_ACTOR, start_message
from stockyard.operations.engine.tell import in_one_item, tell
from stockyard.operations.node_claims import launch_groups
from stockyard.operations.node_providers.allowed_types import allowed_types
from stockyard.operations.node_providers.catalog import Catalog, availability, load
from stockyard.operations.scheduler.begin import start, tell_bound
from stockyard.operations.scheduler.budgets import RoundBudgets
from stockyard.operations.scheduler.claim_reader import ClaimReader, Refused, unnamed_cluster
from stockyard.operations.services import Services
from stockyard.ports import Add, Create, Put, Replace, Write
from stockyard.scheduling.explain import FULL, REFUSED, Evaluation, explain
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import OPTIONS, Availability, SchedulingRequest, SelectedOffering, choose_all
from stockyard.scheduling.order import by_priority_and_age
from stockyard.scheduling.verdict import excluded, of_interest

CLOCKS_APART = timedelta(minutes=1)
"""How far the clock of who wrote a claim may be ahead of ours."""
ROUNDS = 6
"""How often a pass chooses anew for claims whose slot was taken meanwhile. What is left waits for the next pass."""
WRITES_A_CLAIM = 3
MOST_WRITES = 96
"""Of a batch; what is left to DynamoDB's limit is for the records of launch groups."""
TRANSACTION = 100
NAMED = 3
"""Types that a message names of those that were refused."""
EXPLAINED = 64
"""Different requests that one pass explains, of those placed and of those that wait: it looks at every node type."""


@dataclass(slots=True)
class Report:
    """Report of one pass. ``lost``: bound, changed or deleted by somebody else meanwhile."""

    bound: int = 0
    waiting: int = 0
    lost: int = 0
    unplaced: int = 0


@dataclass(frozen=True, slots=True)
class _Selection:
    claim: NodeClaim
    request: SchedulingRequest
    choice: SelectedOffering
    considered: Mapping[str, int]


@dataclass(slots=True)
class _Round:
    """One look at the catalogue and the budgets, and what was explained from it."""

    services: Services
    catalog: Catalog
    availability: Availability
    budgets: RoundBudgets
    explained: dict[Any, Mapping[str, int]] = field(default_factory=dict)
    refused: dict[Any, tuple[str, str]] = field(default_factory=dict)
    """Reason and message by what was asked for in vain."""


def schedule(services: Services, claims: Iterable[NodeClaim]) -> Report:
    """Bind what can be bound of ``claims``, the fair order first; say of the others why not."""
    report = Report()
    soon = times.to_text(services.clock.now() + CLOCKS_APART)
    # One that was told when there will be room for it is not looked at before.
    due_claims = (claim for claim in claims if claim.due_at is not None and claim.due_at <= soon)
    waiting = [claim for claim in by_priority_and_age(due_claims) if not claim.deleting]
    if not waiting:
        return report
    catalog = load(services)
    reader = ClaimReader(services, catalog, allowed_types(services))
    pending: list[tuple[NodeClaim, SchedulingRequest]] = []
    for claim in waiting:
        request = reader.read(claim)
        for entered in _entered(services, claim, reader.cluster_id(claim), report):
            if isinstance(request, Refused):
                _wait(services, entered, request.reason, request.message, report)
            else:
                pending.append((entered, request))
    for _ in range(ROUNDS):
        if not pending:
            break
        budgets = RoundBudgets.read(services, catalog, [claim for claim, _ in pending])
        current = _Round(services, catalog, availability(services, catalog, services.clock.now()), budgets)
        pending = _round(current, pending, report)
        announce(services, budgets.sums.budgets, budgets.refused)
    report.unplaced += len(pending)
    return report


def _entered(services: Services, claim: NodeClaim, cluster_id: str, report: Report) -> list[NodeClaim]:
    """The claim with its entry in its cluster, even if the entry came later; none when it was changed meanwhile."""
    if claim.cluster_id == cluster_id:
        return [claim]
    entered = replace(claim, cluster_id=cluster_id, version=claim.version + 1)
    entry = cluster_claim(cluster_id, claim.pool, claim.id, services.now())
    try:
        services.store.commit(Replace(entered), Create(entry))
    except Conflict:
        report.lost += 1
        return []
    return [entered]


def _round(
    current: _Round, pending: Sequence[tuple[NodeClaim, SchedulingRequest]], report: Report
) -> list[tuple[NodeClaim, SchedulingRequest]]:
    """Choose for all and write; returned are those whose slot was gone when it came to writing."""
    choices = choose_all(
        current.catalog.index, [request for _, request in pending], current.availability, candidates=OPTIONS
    )
    selections: list[_Selection] = []
    without: list[tuple[NodeClaim, SchedulingRequest]] = []
    free = dict(current.availability.free)
    remaining = Availability(free, current.availability.refused)
    refusals: list[tuple[NodeClaim, str]] = []
    for (claim, request), choice in zip(pending, choices, strict=True):
        if choice is None:
            without.append((claim, request))
            continue
        admitted = current.budgets.admitted(claim, choice)
        if isinstance(admitted, str):
            refusals.append((claim, admitted))
            continue
        node_type = admitted.node_type
        selections.append(_Selection(claim, request, admitted, _considered(current, remaining, request)))
        if node_type.limited:
            free[node_type.name] = free.get(node_type.name, 0) - 1
    again: list[tuple[NodeClaim, SchedulingRequest]] = []
    for batch in _batches(_with_options(current, selections)):
        again += _write(current, batch, report)
    for claim, text in refusals:
        _wait(current.services, claim, BUDGET_REACHED, text, report)
    # To tell why takes longer than to place: whoever has a node type does not wait for that.
    for claim, request in without:
        _wait(current.services, claim, *_why_not(current, remaining, claim, request), report)
    return again


def _with_options(current: _Round, selections: Sequence[_Selection]) -> list[_Selection]:
    """The selections with those options that budgets have room for."""
    choices = current.budgets.with_options([(selection.claim, selection.choice) for selection in selections])
    return [replace(selection, choice=choice) for selection, choice in zip(selections, choices, strict=True)]


def _batches(selections: Sequence[_Selection]) -> Iterable[list[_Selection]]:
    """Claims by transaction: three writes each, and one for each limited type and each provider among them."""
    batch: list[_Selection] = []
    shared_writes: set[tuple[str, str]] = set()
    for selection in selections:
        node_type = selection.choice.node_type
        its = {("provider", node_type.provider), *([("type", node_type.name)] if node_type.limited else [])}
        if batch and WRITES_A_CLAIM * (len(batch) + 1) + len(shared_writes | its) > MOST_WRITES:
            yield batch
            batch, shared_writes = [], set()
        shared_writes |= its
        batch.append(selection)
    if batch:
        yield batch


def _write(current: _Round, batch: list[_Selection], report: Report) -> list[tuple[NodeClaim, SchedulingRequest]]:
    """Bind a batch in one transaction; what stands in the way is taken out and the rest written."""
    again: list[tuple[NodeClaim, SchedulingRequest]] = []
    while batch:
        node_types = [selection.choice.node_type for selection in batch]
        slots = Counter(node_type.name for node_type in node_types if node_type.limited)
        limits = current.catalog.limits
        adds: list[Write] = [Add(limits[name].counter, n, limit=limits[name].total) for name, n in slots.items()]
        guards = current.budgets.guarding(selection.claim for selection in batch)
        uses = [*guards, *_uses(current, batch)]
        placed, groups = _placed(current, batch, TRANSACTION - len(adds) - len(uses) - WRITES_A_CLAIM * len(batch))
        bound = [_bound(current, claim, placement) for claim, placement in placed]
        new = (Create(group) for group in groups)
        try:
            current.services.store.commit(*adds, *(write for _, writes in bound for write in writes), *uses, *new)
        except Conflict as conflict:
            index = conflict.index if conflict.index is not None else len(adds)
            of_claims = len(adds) + WRITES_A_CLAIM * len(batch)
            if of_claims <= index < of_claims + len(guards):
                # Somebody has bought under these budgets meanwhile: what is left of them is read anew.
                return [*again, *((selection.claim, selection.request) for selection in batch)]
            if index >= of_claims:
                raise
            if index < len(adds):
                # Somebody took the slot: those who wanted it choose again from what is left by then.
                full = list(slots)[index]
                again += [(c.claim, c.request) for c in batch if c.choice.node_type.name == full]
                batch = [c for c in batch if c.choice.node_type.name != full]
            else:
                report.lost += 1
                del batch[(index - len(adds)) // WRITES_A_CLAIM]
            continue
        report.bound += len(batch)
        current.budgets.bound(selection.claim for selection in batch)
        start(current.services, [claim for claim, _ in bound])
        tell_bound(current.services, (claim for claim, _ in bound))
        break
    return again


def _uses(current: _Round, batch: Sequence[_Selection]) -> list[Put]:
    """The message to the platform about the tenants with nodes of its providers, or None if nothing is new."""
    store, now = current.services.store, current.services.now()
    names = sorted({selection.choice.node_type.provider for selection in batch})
    shared = [provider for name in names if is_shared(provider := current.catalog.providers[name])]
    uses = [use_of(provider.id, store.tenant) for provider in shared]
    return [Put(Fact(use, store.tenant, now)) for use in uses if store.get(Fact, use) is None]


def _placed(
    current: _Round, batch: Sequence[_Selection], room: int
) -> tuple[list[tuple[NodeClaim, Placement]], list[LaunchGroup]]:
    """The claims of a batch with their placements, and the groups of those that one call will launch."""
    now = current.services.now()
    placed = [(selection.claim, _placement(current, selection, now)) for selection in batch]
    by_id = {provider.id: provider for provider in current.catalog.providers.values()}
    groups = launch_groups.form(current.services, by_id, placed, room)
    group_of = {member: group.id for group in groups for member in group.members}
    return [(claim, replace(to, group=group_of.get(claim.id, ""))) for claim, to in placed], groups


def _bound(current: _Round, waiting: NodeClaim, placement: Placement) -> tuple[NodeClaim, list[Write]]:
    """One bound claim and its three writes."""
    services, now = current.services, current.services.now()
    claim, transition = MOVES.bind(waiting, placement, now)
    claim = replace(claim, sequence=claim.sequence + 1)
    start = start_message(services, services.procedure(CREATE_NODE), claim, str(claim.execution))
    return claim, in_one_item([Replace(claim), *tell(services, WORKFLOW_ACTOR, claim, transition), start])


def _placement(current: _Round, selection: _Selection, now: str) -> Placement:
    choice, properties = selection.choice, selection.claim.properties
    options = _options(choice, properties)
    return Placement(
        provider_id=current.catalog.providers[choice.node_type.provider].id,
        type=choice.node_type.name,
        capacity_type=choice.capacity_type,
        zones=choice.zones,
        cost=choice.cost,
        decided_at=now,
        usd_hour=options[0].usd_hour,
        counted=choice.node_type.limited,
        options=options,
        considered=dict(selection.considered),
        owned=choice.node_type.owned,
    )


def _options(choice: SelectedOffering, properties: Mapping[str, str]) -> tuple[PlacementOption, ...]:
    """The selected offering and the next ones of the same provider that need no other counted slot, each at the price
    of a node with the disk of the claim's properties."""
    usable = [
        offering
        for offering in choice.alternatives
        if offering.node_type.provider == choice.node_type.provider
        and (not offering.node_type.limited or offering.node_type is choice.node_type)
    ]
    return tuple(
        PlacementOption(
            offering.node_type.name,
            offering.capacity_type,
            offering.zones,
            price_with_disk(offering.usd_hour, offering.node_type, properties),
            offering.cost,
        )
        for offering in (choice, *usable)
    )


def _considered(current: _Round, remaining: Availability, request: SchedulingRequest) -> Mapping[str, int]:
    """Node types by the first rule that ruled them out when it was the claim's turn; empty once a pass has explained
    enough different requests."""
    full = frozenset(name for name, free in remaining.free.items() if free <= 0)
    key = (*_shape(request), full)
    if key not in current.explained:
        if len(current.explained) >= EXPLAINED:
            return {}
        evaluations = explain(current.catalog.index, request, remaining)
        current.explained[key] = Counter(evaluation.rule or "Fits" for evaluation in evaluations)
    return current.explained[key]


def _shape(request: SchedulingRequest) -> tuple[Any, ...]:
    """Key that tells the requests of one pass apart."""
    requirements, resources = frozenset(request.requirements.items()), frozenset(request.resources.items())
    zone_ids = frozenset((name, frozenset(ids.items())) for name, ids in request.zone_ids.items())
    images = frozenset(request.images.items()), frozenset(request.likely.items())
    return requirements, resources, request.provider, request.out_of_reach, request.bid, zone_ids, images


def _why_not(
    current: _Round, availability: Availability, claim: NodeClaim, request: SchedulingRequest
) -> tuple[str, str]:
    """Reason and message of a claim that nothing fits. Once a pass has explained enough different requests: what was
    said of it before."""
    index, shape = current.catalog.index, _shape(request)
    if not index.node_types:
        return "NoNodeTypes", "There is no node type yet. Register a node provider that has some."
    if request.provider is not None and request.provider not in index.providers:
        return "NoNodeTypes", f"Node provider {request.provider} has no node types."
    if shape not in current.refused:
        if len(current.refused) >= EXPLAINED:
            known_reason = claim.reason == _NEVER or claim.reason in _PASSING.values()
            return (claim.reason, claim.message) if known_reason else (_NEVER, _UNEXPLAINED)
        current.refused[shape] = _reason(index, availability, request)
    reason, message = current.refused[shape]
    return reason, " ".join(filter(None, (unnamed_cluster(claim), message)))


def _reason(index: Index, availability: Availability, request: SchedulingRequest) -> tuple[str, str]:
    evaluations = explain(index, request, availability)
    relevant = of_interest(evaluations, request)
    rules = {evaluation.rule for evaluation in relevant}
    reason = next((_PASSING[rule] for rule in _PASSING if rule in rules), _NEVER)
    if len(relevant) == 1:
        return reason, f"{relevant[0].node_type.name} does not fit: {relevant[0].message}."
    text = "; ".join(group.sentence for group in excluded(relevant))
    if reason == ABOVE_BID:
        text = f"{text}; {_least_seen(evaluations)}"
    if reason == _PASSING[REFUSED]:
        refused = [evaluation.node_type.name for evaluation in relevant if evaluation.rule == REFUSED]
        text = f"{text}; refused of late: {', '.join(refused[:NAMED])}"
    return reason, f"No node type fits: {text}."


def _least_seen(evaluations: Sequence[Evaluation]) -> str:
    """Words for the price of the cheapest type that costs more than the bid."""
    above = [evaluation for evaluation in evaluations if evaluation.rule == ABOVE_BID]
    cheapest = min(above, key=lambda each: (each.least_price is None, each.least_price or 0.0, each.node_type.name))
    return f"{cheapest.node_type.name}: {cheapest.message}"


_NEVER, _UNEXPLAINED = "NoMatchingNodeType", "No node type fits now. The claim's explanation names the rules."
_PASSING: Mapping[str, str] = {REFUSED: "InsufficientCapacity", FULL: "NoCapacity", ABOVE_BID: ABOVE_BID}
"""What passes by itself is the reason to name, before what never fits."""


def _wait(services: Services, claim: NodeClaim, reason: str, message: str, report: Report) -> None:
    report.waiting += 1
    waiting = MOVES.wait(claim, reason, message, services.now())
    if waiting is None:
        return
    changed, transition = waiting
    changed = replace(changed, sequence=changed.sequence + 1)
    try:
        services.store.commit(Replace(changed), *tell(services, WORKFLOW_ACTOR, changed, transition))
    except Conflict:
        report.waiting -= 1
        report.lost += 1
