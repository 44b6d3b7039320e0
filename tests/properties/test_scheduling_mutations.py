"""Removing any one rule from the core is caught by the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.pools.bids import ABOVE_BID
from stockyard.domain.values.requirements import CAPACITY_TYPE, Requirement
from stockyard.scheduling import match, order, rules
from stockyard.scheduling.index import Index
from stockyard.scheduling.table import Amounts, Column
from tests.properties import problems
from tests.properties.test_scheduling import mismatch

MOST = 20_000
"""Problems after which a mutant counts as not noticed; most need fewer than ten."""
Patch = pytest.MonkeyPatch


def without_rule(name: str) -> Callable[[Patch], None]:
    """The rule leaves every row."""
    return lambda patch: patch.setattr(rules, name, lambda table, *_: table.every)


def without_provider(patch: Patch) -> None:
    table = Index.table
    patch.setattr(Index, "table", lambda self, _, **__: table(self, None))


def without_capacity_type(patch: Patch) -> None:
    rule = rules.requirement
    patch.setattr(
        rules,
        "requirement",
        lambda table, key, requirement: table.every if key == CAPACITY_TYPE else rule(table, key, requirement),
    )


def requirements_without_the_others(patch: Patch) -> None:
    rule = rules.requirement
    patch.setattr(
        rules,
        "requirement",
        lambda table, key, requirement: rule(table, key, requirement) if key == CAPACITY_TYPE else table.every,
    )


def undefined_is_fine(patch: Patch) -> None:
    rule = rules.requirement
    patch.setattr(
        rules,
        "requirement",
        lambda table, key, requirement: (
            rule(table, key, requirement) | (table.columns[key].absent if key in table.columns else 0)
        ),
    )


def unknown_key_is_fine(patch: Patch) -> None:
    rule = rules.requirement
    patch.setattr(
        rules,
        "requirement",
        lambda table, key, requirement: rule(table, key, requirement) if key in table.columns else table.every,
    )


def absence_never_fits(patch: Patch) -> None:
    patch.setattr(Requirement, "absence_fits", property(lambda self: False))
    allowing = Column.allowing
    patch.setattr(Column, "allowing", lambda self, requirement: allowing(self, requirement) & ~self.absent)


def no_bounds(patch: Patch) -> None:
    patch.setattr(Requirement, "within", lambda self, value: True)
    patch.setattr(Column, "_between", lambda self, requirement: self._every & ~self.absent)


def exclusive_lower_bound(patch: Patch) -> None:
    patch.setitem(Requirement.of.__globals__["_BOUNDS"], "Gte", (True, 1))


def several_entries_the_last_wins(patch: Patch) -> None:
    patch.setattr(Requirement, "intersection", lambda self, second: second)


def least_min_values(patch: Patch) -> None:
    joined = Requirement.intersection

    def smaller(self: Requirement, second: Requirement) -> Requirement:
        both = joined(self, second)
        minimums = [minimum for minimum in (self.min_values, second.min_values) if minimum is not None]
        return Requirement(both.complement, both.values, both.gte, both.lte, min(minimums, default=None))

    patch.setattr(Requirement, "intersection", smaller)


def only_canonical_names(patch: Patch) -> None:
    rule = rules.named
    patch.setattr(
        rules,
        "named",
        lambda table, key, requirement: rule(
            replace(table, spellings=dict.fromkeys(table.spellings, table.node_types)), key, requirement
        ),
    )


def refusals_forgotten(patch: Patch) -> None:
    patch.setattr(rules, "not_refused", lambda table, refused: dict(table.zones))


def refusal_of_every_zone_forgotten(patch: Patch) -> None:
    rule = rules.not_refused
    patch.setattr(
        rules, "not_refused", lambda table, refused: rule(table, [refusal for refusal in refused if refusal[2] != "*"])
    )


def refusal_of_each_named_zone_forgotten(patch: Patch) -> None:
    patch.setattr(rules, "refused_everywhere", lambda *_: 0)


def zones_never_named(patch: Patch) -> None:
    patch.setattr(rules, "named_zones", lambda requirement: frozenset())


def zones_not_asked(patch: Patch) -> None:
    patch.setattr(rules, "zones_of", lambda zones, requirement: frozenset(zones))


def offering_not_asked(patch: Patch) -> None:
    patch.setattr(rules, "offered", lambda zones, requested_zones: -1)


def variety_not_asked(patch: Patch) -> None:
    patch.setattr(rules, "satisfies_min_values", lambda *_: True)


def kinds_counted_by_row(patch: Patch) -> None:
    patch.setattr(rules, "_count_types", lambda table, rows, enough: rows.bit_count())


def nothing_is_taken(patch: Patch) -> None:
    patch.setattr(match._Batch, "take", lambda self, name: None)


def only_one_is_ever_taken(patch: Patch) -> None:
    def take(self, name):
        self._free[name] = 0
        for matcher in self._matchers.values():
            matcher.close(name)

    patch.setattr(match._Batch, "take", take)


def by_money_within_a_provider(patch: Patch) -> None:
    patch.setattr(order, "_within", order._over_all)


def by_cost_over_all(patch: Patch) -> None:
    patch.setattr(order, "_over_all", order._within)


def priceless_is_not_last(patch: Patch) -> None:
    over_all = order._over_all
    patch.setattr(order, "_over_all", lambda row: over_all(row)[1:])


def explicit_cost_is_ignored(patch: Patch) -> None:
    patch.setattr(
        NodeType, "rank", lambda self, offering: self.cost if offering.usd_hour is None else offering.usd_hour
    )


def unit_price_is_ignored(patch: Patch) -> None:
    patch.setattr(NodeType, "money", lambda self, offering: offering.usd_hour)


def ties_by_index(patch: Patch) -> None:
    patch.setattr(
        order, "_over_all", lambda row: (row.usd_hour is None, row.cost if row.usd_hour is None else row.usd_hour)
    )
    patch.setattr(order, "_within", lambda row: row.cost)


def one_amount_short(patch: Patch) -> None:
    patch.setattr(Amounts, "at_least", lambda self, amount: AT_LEAST(self, amount - 500))


def nobody_means_it(patch: Patch) -> None:
    patch.setattr(match.SchedulingRequest, "names_type", property(lambda self: False))


def nobody_takes_small(patch: Patch) -> None:
    patch.setattr(match.SchedulingRequest, "takes_small", property(lambda self: False))


def nothing_is_unlikely(patch: Patch) -> None:
    patch.setattr(match.SchedulingRequest, "unlikely", property(lambda self: {}))


def an_architecture_that_is_named_is_unlikely(patch: Patch) -> None:
    patch.setattr(match.SchedulingRequest, "unlikely", property(lambda self: self.likely))


AT_LEAST = Amounts.at_least


def images_are_everywhere(patch: Patch) -> None:
    """Whoever matches, and whoever explains, takes every architecture for one with an image."""
    patch.setattr(rules, "with_image", lambda table, _images: table.every)
    patch.setattr(rules, "lacks_image", lambda _node_type, _images: False)


def nobody_is_kept_from_the_rest(patch: Patch) -> None:
    """Whoever matches, and whoever explains, takes what nobody asks for."""
    patch.setattr(rules, "by_default", lambda table, _key, _value: table.every)


def types_that_tell_no_architecture_do_not_fit(patch: Patch) -> None:
    rule = rules.by_default
    patch.setattr(
        rules,
        "by_default",
        lambda table, key, value: rule(table, key, value) & ~(table.columns[key].absent if key in table.columns else 0),
    )


MUTANTS: dict[str, Callable[[Patch], None]] = {
    "Provider": without_provider,
    "OutOfReach": without_rule("in_reach"),
    "NotAllowed": without_rule("allowed"),
    "Unavailable": without_rule("available"),
    "Requirement": requirements_without_the_others,
    "Requirement: a key that is not there": undefined_is_fine,
    "Requirement: a key that no kind has": unknown_key_is_fine,
    "Requirement: absence": absence_never_fits,
    "Requirement: bounds": no_bounds,
    "Requirement: inclusive bound": exclusive_lower_bound,
    "Requirement: several entries": several_entries_the_last_wins,
    "Requirement: names": only_canonical_names,
    "ExtendedResource": without_rule("extended"),
    "ExtendedResource: a type that is named": nobody_means_it,
    "Small": without_rule("large_enough"),
    "Unserved": without_rule("served"),
    "Image": images_are_everywhere,
    "Image: not known yet": nothing_is_unlikely,
    "Image: an architecture that is named": an_architecture_that_is_named_is_unlikely,
    "Small: types that are named": nobody_takes_small,
    "Resource": without_rule("resource"),
    "Resource: amount": one_amount_short,
    "Resource: overhead": without_rule("sound"),
    "NotAskedFor": nobody_is_kept_from_the_rest,
    "NotAskedFor: no architecture": types_that_tell_no_architecture_do_not_fit,
    "Offering": offering_not_asked,
    "Offering: zone": zones_not_asked,
    "Offering: capacity type": without_capacity_type,
    "Full": without_rule("with_free_nodes"),
    "Full: taken in the call": nothing_is_taken,
    "Full: as many as there are": only_one_is_ever_taken,
    "RefusedRecently": refusals_forgotten,
    "RefusedRecently: every zone": refusal_of_every_zone_forgotten,
    "RefusedRecently: each named zone": refusal_of_each_named_zone_forgotten,
    "RefusedRecently: names of zones": zones_never_named,
    "MinValues": variety_not_asked,
    "MinValues: the larger one": least_min_values,
    "MinValues: kinds": kinds_counted_by_row,
    "Order: cost within a provider": by_money_within_a_provider,
    "Order: money over all": by_cost_over_all,
    "Order: without a price last": priceless_is_not_last,
    "Order: explicit cost": explicit_cost_is_ignored,
    "Order: price of a cost unit": unit_price_is_ignored,
    "Order: ties": ties_by_index,
}


def noticed(seed: int) -> int | None:
    """The number of the first problem that the core now answers otherwise than the oracle, or breaks on."""
    chance = Random(seed)
    for number in range(MOST):
        data = problems.problem(chance)
        try:
            if mismatch(data):
                return number
        except (KeyError, IndexError):  # what a rule guards against can break what relies on it
            return number
    return None


@pytest.mark.parametrize("rule", MUTANTS)
def test_oracle_detects_every_mutant(monkeypatch, seed, rule):
    MUTANTS[rule](monkeypatch)
    assert noticed(seed) is not None, f"nobody noticed that the rule {rule} is gone"


def test_every_rule_of_explain_has_a_mutant():
    from stockyard.scheduling.explain import RULES

    # The oracle knows no bids: those have problems of their own.
    assert {name.partition(":")[0] for name in MUTANTS} >= set(RULES) - {ABOVE_BID}


def test_every_mask_function_has_a_mutant(seed):
    """A new rule cannot come without a mutant: each public function of ``rules`` is changed by one."""
    functions = {
        name
        for name, rule in vars(rules).items()
        if callable(rule) and getattr(rule, "__module__", "") == rules.__name__
    }
    touched = set()
    for mutate in MUTANTS.values():
        with pytest.MonkeyPatch.context() as patch:
            before = dict(vars(rules))
            mutate(patch)
            touched |= {name for name in functions if vars(rules)[name] is not before[name]}
    assert touched == functions


def test_records_how_many_rules_were_removed(record_property):
    record_property("figure:scheduling_mutants", len(MUTANTS))
