"""Decisions of consolidation obey Kubernetes' rules and every pool's, whatever the cluster.

The checker knows nothing of the packer. ``STOCKYARD_SOAK`` raises the count of clusters to 5,000.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import Any

from local.testing.packing_checker import faults
from local.testing.prefix_rule import prefix_decision
from stockyard.domain.pools.budgets import UNDERUTILIZED
from stockyard.domain.values.requirements import HOSTNAME
from stockyard.scheduling.consolidation.model import (
    BALANCED,
    WHEN_EMPTY,
    Decision,
    Fleet,
    RunningNode,
    Settings,
)
from stockyard.scheduling.consolidation.places import homeless_pods
from stockyard.scheduling.consolidation.search import Search, Trial, consolidate, empty_nodes
from stockyard.scheduling.consolidation.worth import wastes
from stockyard.scheduling.packing.model import Node
from stockyard.scheduling.packing.plan import Claim
from tests.harness.stories.fleets import moved, random_fleet

FEW, MANY = 60, 5_000
SMALL = 6


def searched(fleet: Fleet, **settings: Any) -> tuple[Search, Decision | None]:
    search = Search(fleet, Settings(**settings))
    return search, search.decide()


def plan_of(search: Search, decision: Decision) -> Any:
    return search.trial(decision.nodes).plan


def test_decisions_obey_the_rules(seed: int, soaking: bool, record_property: Callable[[str, object], None]) -> None:
    chance, decided, saved, paid = Random(seed), 0, 0.0, 0.0
    count = MANY if soaking else FEW
    for _ in range(count):
        number = chance.getrandbits(48)
        document, fleet = random_fleet(number)
        paid += sum(node.price for node in fleet.nodes)
        search, decision = searched(fleet, spot_choices=1)
        if decision is None:
            continue
        decided, saved = decided + 1, saved + decision.saving
        assert faults(*moved(document, decision, plan_of(search, decision))) == [], number
        assert not _broken_rules(fleet, decision), number
    assert decided > count / 5
    figures = {"fleets": count, "decisions": decided, "saved": round(saved / paid, 3), "invalid": 0}
    record_property("figure", ("consolidation", figures))


def _broken_rules(fleet: Fleet, decision: Decision) -> list[str]:
    """Rules of the fleet's pools that a decision breaks."""
    assert decision.reason == UNDERUTILIZED
    broken = [f"{node.name} has a hindrance" for node in decision.nodes if node.blocker]
    broken += [f"{node.name} is empty" for node in decision.nodes if node.empty]
    for pool, count in Counter(node.pool for node in decision.nodes).items():
        rules = fleet.rules[pool]
        if count > rules.underutilized:
            broken.append(f"{count} nodes of {pool}")
        if rules.policy == WHEN_EMPTY:
            broken.append(f"{pool} only lets empty nodes go")
        nodes = [node for node in fleet.nodes if node.pool == pool]
        going = [node for node in decision.nodes if node.pool == pool]
        saved = decision.saving / decision.price_before * sum(node.price for node in going)
        money = saved / sum(node.price for node in nodes)
        disturbed = sum(node.cost for node in going) / sum(node.cost for node in nodes)
        if rules.policy == BALANCED and money < disturbed / 2 - 1e-9:
            broken.append(f"{pool} disturbs {disturbed:.0%} to save {money:.0%}")
    least = sum(fleet.rules[node.pool].minimum_saving for node in decision.nodes)
    at_worst = decision.price_before - sum(replacement.ceiling for replacement in decision.replacements)
    if at_worst < least - 1e-9 or decision.saving <= 0:
        broken.append(f"it saves {decision.saving}, and {at_worst} at worst")
    return broken


def test_the_same_cluster_has_the_same_answer() -> None:
    for number in range(10):
        fleet = random_fleet(number)[1]
        turned = Fleet(fleet.nodes[::-1], fleet.pools[::-1], fleet.rules, fleet.daemons[::-1])
        (_, first), (_, second) = searched(fleet), searched(turned)
        assert _names(first) == _names(second), number


def _names(decision: Decision | None) -> set[str]:
    return {node.name for node in decision.nodes} if decision else set()


def test_the_pods_of_a_decision_are_found_places_again_once_what_comes_is_there(seed: int, soaking: bool) -> None:
    """The check is the one that is made before nodes leave, which knows nothing of the packing; and little is lost for
    it."""
    chance, saved, at_most = Random(seed + 4), 0.0, 0.0
    for _ in range(500 if soaking else 25):
        fleet = random_fleet(chance.getrandbits(48))[1]
        best, decision = searched(fleet, spot_choices=1)[1], consolidate(fleet, Settings(spot_choices=1))
        at_most += best.saving if best is not None else 0.0
        if decision is None:
            continue
        saved += decision.saving
        coming = [_coming(f"a-{number}", entry.claim) for number, entry in enumerate(decision.replacements)]
        assert homeless_pods(replace(fleet, nodes=(*coming, *fleet.nodes)), decision.nodes) == 0
    assert saved >= 0.9 * at_most > 0


EQUAL_ROOM = 62847870434402
"""A cluster in which what comes has the room of a node that is there, and other labels."""


def test_a_check_does_not_depend_on_what_nodes_are_called(seed: int, soaking: bool) -> None:
    """A decision is checked before the nodes that come have their names, and again when they have."""
    chance, compared = Random(seed + 5), 0
    for number in [EQUAL_ROOM, *(chance.getrandbits(48) for _ in range(200 if soaking else 10))]:
        fleet = random_fleet(number)[1]
        decision = consolidate(fleet, Settings(spot_choices=1))
        if decision is None or not decision.replacements:
            continue
        compared += 1
        answers = set()
        for stem in ("a", "m", "z"):
            coming = [_coming(f"{stem}-{each}", entry.claim) for each, entry in enumerate(decision.replacements)]
            answers.add(homeless_pods(replace(fleet, nodes=(*coming, *fleet.nodes)), decision.nodes))
        assert answers == {0}, number
    assert compared


def _coming(name: str, claim: Claim) -> RunningNode:
    node = Node(name, {**claim.labels, HOSTNAME: name}, dict(claim.row.room), claim.pool.taints)
    return RunningNode(node, (), claim.pool.name, claim.price)


def test_what_is_saved_is_near_the_best_of_all_sets(seed: int, soaking: bool) -> None:
    """Against every set of the candidates of small clusters."""
    chance, best_of_all, saved = Random(seed + 1), 0.0, 0.0
    for _ in range(500 if soaking else 15):
        fleet = random_fleet(chance.getrandbits(48))[1]
        search, decision = searched(fleet, share=1.0, steps=10**7)
        if not 1 <= len(search.candidates) <= SMALL:
            continue
        trials = [
            search.trial(nodes)
            for size in range(1, len(search.candidates) + 1)
            for nodes in combinations(search.candidates, size)
        ]
        best_of_all += max((_allowed_saving(search, trial) for trial in trials), default=0.0)
        saved += decision.saving if decision is not None else 0.0
    assert saved >= 0.97 * best_of_all > 0


def _allowed_saving(search: Search, trial: Trial) -> float:
    return trial.saving if trial.plan is not None and search._allows(trial) else 0.0


def test_it_saves_no_less_than_the_prefix_rule(seed: int, soaking: bool) -> None:
    chance, saved, by_prefix = Random(seed + 2), 0.0, 0.0
    for _ in range(500 if soaking else 25):
        fleet = random_fleet(chance.getrandbits(48))[1]
        free = Fleet(fleet.nodes, fleet.pools, {}, fleet.daemons)
        prefix = prefix_decision(free)
        decision = searched(free, spot_choices=1, share=1.0, margin=0.0)[1]
        saved += decision.saving if decision is not None else 0.0
        by_prefix += prefix.saving if prefix is not None else 0.0
    assert saved >= by_prefix > 0


def test_no_set_saves_more_than_the_nodes_waste() -> None:
    """Free room on the nodes that stay is worth something too; so only sets of all nodes are bounded."""
    looked_at = 0
    for number in range(30):
        fleet = random_fleet(number)[1]
        amounts = wastes(fleet, fleet.nodes)
        if amounts is None or not fleet.nodes:
            continue
        looked_at += 1
        trial = Search(fleet, Settings()).trial(fleet.nodes)
        assert trial.plan is None or trial.saving <= sum(amounts) + 1e-6, number
    assert looked_at > 10


def test_empty_nodes_go_within_their_budget() -> None:
    went = 0
    for number in range(40):
        fleet = random_fleet(number)[1]
        decision = empty_nodes(fleet)
        going = decision.nodes if decision else ()
        went += len(going)
        assert all(node.empty and not node.blocker for node in going)
        for pool, rules in fleet.rules.items():
            could = sum(node.empty and not node.blocker and node.pool == pool for node in fleet.nodes)
            assert sum(node.pool == pool for node in going) == min(could, rules.empty)
    assert went > 4
