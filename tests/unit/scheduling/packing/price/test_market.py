"""The worthwhile offers, and which of them hold what."""

from __future__ import annotations

import itertools
from random import Random

from stockyard.scheduling.packing.price import Offer
from stockyard.scheduling.packing.price.market import Market, Thresholds, lowest, units


def test_offers_that_another_beats_are_left_out(problem, catalogue):
    market = Market(problem((500, 1024, 3)))
    names = [catalogue[number].name for number in market.offers]
    assert "dear" not in names
    assert len(names) == len(catalogue) - 1
    assert market.prices == sorted(market.prices)


def test_an_offer_is_worthwhile_where_the_better_one_may_not_be_used(problem, catalogue):
    only_dear = 1 << len(catalogue) - 1
    market = Market(problem((500, 1024, 3), (500, 1024, 1, only_dear)))
    assert catalogue[market.offers[lowest(market.holders[1])]].name == "dear"


def test_an_offer_of_which_there_are_few_beats_nothing(problem):
    offers = [Offer("few", (4000, 8192, 20), 1, limit=1), Offer("plenty", (4000, 8192, 20), 100)]
    assert len(Market(problem((500, 1024, 3), offers=offers)).offers) == 2


def test_cheapest_column_is_the_cheapest_of_all_offers(problem, catalogue):
    chance = Random(3)
    whole = problem(*((chance.randint(50, 2000), chance.randint(64, 9000), 9) for _ in range(6)))
    market = Market(whole)
    for _ in range(200):
        counts = {shape: chance.randint(1, 3) for shape in chance.sample(range(6), chance.randint(1, 4))}
        load = [sum(whole.shapes[s].requests[n] * c for s, c in counts.items()) for n in range(3)]
        prices = [o.price for o in catalogue if all(a <= b for a, b in zip(load, o.room, strict=True))]
        column = market.cheapest(counts)
        assert (market.prices[column] if column >= 0 else None) == min(prices, default=None)


def test_reduced_units_keep_what_fits(problem):
    whole = problem((500, 1024, 3), (750, 1536, 1))
    assert units(whole) == (250, 512, 1)
    market = Market(whole)
    assert market.requests == [(2, 2, 1), (3, 3, 1)]
    assert market.unpack(market.pack((7, 3, 5))) == [7, 3, 5]


def test_most_counts_the_pods_that_fit(problem):
    market = Market(problem((500, 1024, 30)))
    state = market.pack(market.reduce((2600, 100 * 1024, 20))) | market.guard
    assert market.most(state, 0, 30) == 5
    assert market.most(state, 0, 3) == 3


def test_thresholds_hold_what_is_not_larger_in_any_resource():
    rooms = list(itertools.product((1, 3, 5), (2, 4), (0, 7)))
    thresholds = Thresholds(rooms)
    for load in itertools.product(range(7), range(6), range(9)):
        fitting = [n for n, room in enumerate(rooms) if all(a <= b for a, b in zip(load, room, strict=True))]
        assert thresholds.holding(load) == sum(1 << n for n in fitting)
