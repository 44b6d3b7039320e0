"""The search for the nodes that a cluster would do better without.

Candidates are ordered by what they waste (``worth``), and sets of the most wasteful ones are tried by packing their
pods anew: onto the room that other nodes have, and onto new nodes where that is cheaper. Sets grow until one saves
nearly all that can be saved. Then parts of it are left out, and others taken in, while that is better. So every set is
judged by the price of a real packing, by all rules, and never by the order alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import chain, combinations, product

from stockyard.domain.nodes.node_types import SPOT
from stockyard.domain.pools.budgets import EMPTY, UNBOUNDED, UNDERUTILIZED
from stockyard.scheduling.consolidation import model
from stockyard.scheduling.consolidation.arrivals import Arrivals
from stockyard.scheduling.consolidation.balance import balanced_score, least_balanced
from stockyard.scheduling.consolidation.model import Decision, Fleet, Replacement, RunningNode
from stockyard.scheduling.consolidation.places import is_easy, pods_of
from stockyard.scheduling.consolidation.singles import DELETE, REPLACE, Verdict, verdicts
from stockyard.scheduling.consolidation.worth import wastes
from stockyard.scheduling.packing.alternatives import keeps_least_values
from stockyard.scheduling.packing.model import Problem
from stockyard.scheduling.packing.model import Settings as PackingSettings
from stockyard.scheduling.packing.plan import Claim, Plan, pack
from stockyard.scheduling.packing.price.model import Meter

PACKING_STEPS, PACKING_STEPS_A_POD = 30_000, 90
"""The work that one set of nodes may take."""
VERY_FEW = 5
"""Of up to so many candidates every set is tried."""
FEW = 16
"""Up to so many candidates each number of them is tried; of more, some numbers."""
SHARES = (1 / 8, 1 / 4, 1 / 2, 3 / 4, 1)
BLOCKS = 16
"""Into so many parts the candidates are divided that are taken in or left out of a set."""
PLAYS, HALVES = 12, 6
"""How many sets are played, and how often the gap between one that fits and one that does not is halved."""
EPSILON = 1e-9


def empty_nodes(fleet: Fleet, rolled: Set[str] = frozenset()) -> Decision | None:
    """All empty nodes that may go now; None when there is none. Where a budget does not allow all, those that have
    drifted go first, then the dearest.

    ``rolled`` are pools whose drifted nodes are going to be replaced: their other nodes are what comes in the place of
    these.
    """
    remaining = {name: rules.empty for name, rules in fleet.rules.items()}
    going = []
    for node in sorted(fleet.nodes, key=lambda node: (not node.drifted, -node.price, node.name)):
        if node.blocker or not node.empty or remaining.get(node.pool, UNBOUNDED) < 1:
            continue
        if node.pool in rolled and not node.drifted:
            continue
        remaining[node.pool] = remaining.get(node.pool, UNBOUNDED) - 1
        going.append(node)
    return Decision(EMPTY, tuple(going)) if going else None


def candidates_of(fleet: Fleet) -> list[RunningNode]:
    """The nodes with pods that may be disrupted for their price."""
    return [
        node
        for node in fleet.nodes
        if not (node.blocker or node.empty)
        and fleet.rules_of(node).policy != model.WHEN_EMPTY
        and fleet.rules_of(node).underutilized > 0
    ]


def consolidate(fleet: Fleet, settings: model.Settings | None = None) -> Decision | None:
    """The set of nodes that is worth most to be emptied now; None when nothing saves enough.

    A decision keeps the budgets of all pools, every pod of the nodes that go has a place in it, and it costs less
    afterwards by the margin of the settings and by what the pools ask for. The same fleet has the same answer.

    A packing that a search has found may be so tight that nobody finds it again: neither the check before the nodes
    leave, nor the cluster's scheduler. Such a set of nodes does not go; the best of those that are less tight does.
    """
    return Search(fleet, settings or model.Settings()).decide()


def own_weight(nodes: Iterable[RunningNode]) -> float:
    """Weight of the owned machines among the nodes. That they are left saves no money, so pods do not move for it."""
    return sum(node.price for node in nodes if node.own_usd_hour is not None)


@dataclass(frozen=True, slots=True)
class Trial:
    """A set of nodes that would go, and the packing of their pods; without one, some pod has no place."""

    nodes: tuple[RunningNode, ...]
    plan: Plan | None

    @property
    def saving(self) -> float:
        """USD an hour; below zero when the set cannot go."""
        return sum(node.price for node in self.nodes) - self.plan.price if self.plan is not None else -1.0

    @property
    def cost(self) -> float:
        """Cost of the disruption of the nodes."""
        return sum(node.cost for node in self.nodes)


class Search:
    """Everything the steps of one search share."""

    def __init__(self, fleet: Fleet, settings: model.Settings) -> None:
        self.fleet, self.settings = fleet, settings
        self.candidates = candidates_of(fleet)
        pods = sum(count for node in fleet.nodes for _, count in node.pods)
        self.meter = Meter(settings.budget(pods), settings.expired)
        self._checks = Meter(0)
        """The work of checks that no budget bounds: whether pods will find the places that a packing has for them."""
        self._searched = 0
        self.verdicts: list[Verdict] = []
        self.possible: float | None = None
        """What could be saved at best by the candidates, if it is known."""
        self._trials: dict[frozenset[str], Trial] = {}
        self._most = 0.0
        """What the best set saves that may go."""

    @property
    def tried(self) -> int:
        """Number of sets of nodes that have been tried."""
        return len(self._trials)

    @property
    def spent(self) -> int:
        """All work so far, in the packer's steps."""
        return self._searched + self.meter.spent + self._checks.spent

    def decide(self) -> Decision | None:
        """See ``consolidate``."""
        if not self.candidates:
            return None
        self.verdicts = verdicts(self.fleet, self.candidates, self.meter)
        ordered = self._ordered()
        if len(ordered) <= VERY_FEW:
            every = chain.from_iterable(combinations(ordered, size) for size in range(1, len(ordered) + 1))
            best = self._lightest(self.trial(nodes) for nodes in every if self._affordable(len(nodes)))
            return self._settled(best, ordered)
        allowed = self._within_budgets(ordered)
        best = self._lightest(self.trial(allowed[:size]) for size in self._sizes(allowed))
        for verdict in self._hopeful():
            if (best is None or verdict.saving > best.saving) and self._affordable(1):
                best = self._lightest([self.trial([verdict.node]), *([best] if best is not None else [])])
        return self._settled(self._improved(best, ordered), allowed)

    def _settled(self, best: Trial | None, ordered: Sequence[RunningNode]) -> Decision | None:
        """The decision of the best set whose pods will have a place: one that was tried, or one between the best of
        these and the next that has not."""
        if best is None or best.plan is None:
            return None
        arrivals = Arrivals(self.fleet) if self.settings.careful else None
        pods = sum(count for node in self.fleet.nodes for _, count in node.pods)
        self._searched += self.meter.spent
        self.meter = Meter(self.settings.budget(pods), self.settings.expired)
        failed = best
        if not self._fits(best, arrivals):
            sets = [trial for trial in self._trials.values() if trial is not failed and self._allows(trial)]
            sets.sort(key=lambda trial: (-trial.saving, trial.cost))
            best = next((trial for trial in sets[:PLAYS] if self._fits(trial, arrivals)), None)
        fewest, most = len(best.nodes) if best is not None else 0, min(len(failed.nodes), len(ordered))
        for _ in range(HALVES):
            size = (fewest + most) // 2
            if failed is best or not fewest < size < most or not self._affordable(size):
                break
            trial = self.trial(ordered[:size])
            better = best is None or trial.saving > best.saving
            if better and trial.plan is not None and self._allows(trial) and self._fits(trial, arrivals):
                best, fewest = trial, size
            else:
                most = size
        return self._decision(best) if best is not None else None

    def _fits(self, trial: Trial, arrivals: Arrivals | None) -> bool:
        """Whether the check before nodes leave will find places for the pods; with ``arrivals``, also however they
        come."""
        if trial.plan is None or not is_easy(self.fleet, self._decision(trial), self._checks):
            return False
        if arrivals is None:
            return True
        before = arrivals.spent
        fits = arrivals.fit(trial.nodes, trial.plan)
        self._checks.spent += arrivals.spent - before
        return fits

    def _ordered(self) -> list[RunningNode]:
        """The candidates by their waste, or by their price where that is not known."""
        waste = wastes(self.fleet, self.candidates)
        if waste is not None:
            self.possible = sum(max(amount, 0.0) for amount in waste)
        by_node = zip(waste or [node.price for node in self.candidates], self.candidates, strict=True)
        return [node for _, node in sorted(by_node, key=lambda entry: (-entry[0], entry[1].cost, entry[1].name))]

    def _within_budgets(self, ordered: Sequence[RunningNode]) -> list[RunningNode]:
        """As many of the first candidates of each pool as its budget lets go."""
        remaining = Counter({node.pool: self.fleet.rules_of(node).underutilized for node in ordered})
        allowed = []
        for node in ordered:
            if remaining[node.pool] > 0:
                remaining[node.pool] -= 1
                allowed.append(node)
        return allowed

    def _sizes(self, ordered: Sequence[RunningNode]) -> Iterable[int]:
        """Numbers of first candidates to try together, until nearly all is saved that can be."""
        count = len(ordered)
        sizes = range(1, count + 1) if count <= FEW else sorted({max(1, round(count * share)) for share in SHARES})
        goal = None if self.possible is None or count < len(self.candidates) else self.settings.share * self.possible
        for size in sizes:
            if not self._affordable(size):
                return
            yield size
            if count > FEW and goal is not None and self.trial(ordered[:size]).saving >= goal:
                return

    def _hopeful(self) -> Sequence[Verdict]:
        """Candidates with savings of their own, the largest savings first."""
        hopeful = [verdict for verdict in self.verdicts if verdict.outcome in (DELETE, REPLACE)]
        return sorted(hopeful, key=lambda verdict: (-verdict.saving, verdict.node.name))[:FEW]

    def _affordable(self, size: int) -> bool:
        """Whether there are the steps to try a set of this size."""
        return self.meter.remaining >= PACKING_STEPS // 10 + len(self.fleet.nodes) // 4 + 10 * size

    def trial(self, nodes: Sequence[RunningNode]) -> Trial:
        """The packing of the pods of some nodes without these nodes; made once for each set."""
        names = frozenset(node.name for node in nodes)
        trial = self._trials.get(names)
        if trial is None:
            trial = self._trials[names] = Trial(tuple(nodes), self._plan(nodes, names))
        return trial

    def _plan(self, nodes: Sequence[RunningNode], names: frozenset[str]) -> Plan | None:
        groups = pods_of(nodes)
        pods = sum(len(group.names) for group in groups)
        there = tuple(running.node for running in self.fleet.nodes if running.name not in names)
        steps = max(1, min(self.meter.remaining, PACKING_STEPS + PACKING_STEPS_A_POD * pods))
        own = self.settings
        settings = PackingSettings(preferences=False, steps=steps, expired=own.expired, answers=own.answers)
        fleet = self.fleet
        plan = pack(Problem(groups, fleet.pools, there, fleet.daemons, settings, fleet.places))
        self.meter.spent += plan.steps + len(there) // 4 + pods
        return plan if self._suits(nodes, plan) else None

    def _suits(self, nodes: Sequence[RunningNode], plan: Plan) -> bool:
        """Whether every pod has a place, and all that come may come in the place of what goes."""
        if plan.left_out:
            return False
        if len(plan.claims) > self.fleet.most_new:
            return False
        slack, choices = self._slack(nodes, plan), self.settings.spot_choices
        if not all(keeps_least_values(claim, claim.price + slack) for claim in plan.claims):
            return False
        if not any(node.spot for node in nodes):
            return True
        return all(
            claim.row.capacity_type != SPOT or len(_types(claim, claim.price + slack)) >= choices
            for claim in plan.claims
        )

    def _slack(self, nodes: Sequence[RunningNode], plan: Plan) -> float:
        """Amount by which each new node may become dearer than planned, in USD an hour: the set still saves what it has
        to save by every rule."""
        before = sum(node.price for node in nodes)
        least = [sum(self.fleet.rules_of(node).minimum_saving for node in nodes), self.settings.margin * before]
        for part in self._balanced_parts(nodes):
            least.append(least_balanced(part.cost, part.pool_price, part.pool_cost) / part.share if part.share else 0.0)
        return max(0.0, before - plan.price - max(least)) / max(1, len(plan.claims))

    # --- which set is best ------------------------------------------------------------------------------------------

    def _lightest(self, trials: Iterable[Trial]) -> Trial | None:
        """Least disruptive of the sets that save nearly as much as the best one so far."""
        suitable = [trial for trial in trials if trial.plan is not None and self._allows(trial)]
        self._most = max([self._most, *(trial.saving for trial in suitable)])
        near = [trial for trial in suitable if trial.saving >= self.settings.share * self._most - EPSILON]
        return min(near, key=lambda trial: (trial.cost, -trial.saving), default=None)

    def _improved(self, best: Trial | None, ordered: Sequence[RunningNode]) -> Trial | None:
        """Leave parts of the set out, take others in, or both, while that is better and there are steps for it."""
        if best is None:
            return None
        width = max(1, -(-len(ordered) // BLOCKS))
        blocks = [ordered[start : start + width] for start in range(0, len(ordered), width)]
        changed = True
        while changed:
            changed = False
            # First those that go are asked whether they have to, the least wasteful first.
            names = {node.name for node in best.nodes}
            inside = [block for block in reversed(blocks) if block[0].name in names]
            outside = [block for block in blocks if block[0].name not in names]
            moves = [*((block, ()) for block in inside), *(((), block) for block in outside)]
            if len(ordered) <= FEW:
                moves += product(inside, outside)
            for without, besides in moves:
                better = self._changed(best, without, besides)
                if better is not best:
                    best, changed = better, True
        return best

    def _changed(self, best: Trial, without: Sequence[RunningNode], besides: Sequence[RunningNode]) -> Trial:
        """The better one of a set, and of the set without some nodes and with others."""
        excluded = {node.name for node in without}
        nodes = [node for node in best.nodes if node.name not in excluded]
        names = {node.name for node in nodes}
        nodes += [node for node in besides if node.name not in names]
        if not nodes or not self._affordable(len(nodes)) or not self._is_budgeted(nodes):
            return best
        return self._lightest([best, self.trial(nodes)]) or best

    def _is_budgeted(self, nodes: Iterable[RunningNode]) -> bool:
        counts = Counter(node.pool for node in nodes)
        rules, default = self.fleet.rules, model.PoolRules()
        return all(count <= rules.get(name, default).underutilized for name, count in counts.items())

    def _allows(self, trial: Trial) -> bool:
        """Whether the set saves enough for everybody, within all budgets."""
        fleet, saving = self.fleet, trial.saving
        before = sum(node.price for node in trial.nodes)
        least = sum(fleet.rules_of(node).minimum_saving for node in trial.nodes)
        margin = self.settings.margin * (before if trial.plan is not None and trial.plan.claims else 0.0)
        if saving < max(least, margin, EPSILON + own_weight(trial.nodes)):
            return False
        return self._is_budgeted(trial.nodes) and all(
            balanced_score(saving * part.share, part.cost, part.pool_price, part.pool_cost).approved
            for part in self._balanced_parts(trial.nodes)
        )

    def _balanced_parts(self, nodes: Sequence[RunningNode]) -> list[_Part]:
        """The parts of a set that are of pools with the policy ``Balanced``."""
        before, parts = sum(node.price for node in nodes), []
        for pool in {node.pool for node in nodes if self.fleet.rules_of(node).policy == model.BALANCED}:
            of_pool = [node for node in self.fleet.nodes if node.pool == pool]
            going = [node for node in nodes if node.pool == pool]
            parts.append(
                _Part(
                    sum(node.price for node in going) / before,
                    sum(node.cost for node in going),
                    sum(node.price for node in of_pool),
                    sum(node.cost for node in of_pool),
                )
            )
        return parts

    def _decision(self, trial: Trial) -> Decision:
        plan = trial.plan
        if plan is None:
            raise ValueError("a set without a packing is no decision")
        slack = self._slack(trial.nodes, plan)
        replacements = tuple(Replacement(claim, claim.price + slack) for claim in plan.claims)
        return Decision(UNDERUTILIZED, trial.nodes, replacements, plan.placements, self.possible)


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a set of nodes that is of one pool: its share of the set's price, what it costs to disrupt it, and
    price and cost of the whole pool."""

    share: float
    cost: float
    pool_price: float
    pool_cost: float


def _types(claim: Claim, ceiling: float) -> Sequence[str]:
    """The types that the claim may become as the spot node that the plan has, at this price at most."""
    return list(
        {
            row.node_type.name: None
            for row in claim.rows
            if (row.capacity_type, row.zone) == (SPOT, claim.row.zone) and row.price <= ceiling
        }
    )
