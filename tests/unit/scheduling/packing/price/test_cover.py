"""Covers against every multiset of columns."""

from __future__ import annotations

from itertools import combinations_with_replacement
from random import Random

from stockyard.scheduling.packing.price.cover import Covers, rows_of
from stockyard.scheduling.packing.price.market import Market, Thresholds
from stockyard.scheduling.packing.price.model import Meter


def brute(prices, rooms, rows, depth):
    covers = []
    for size in range(1, depth + 1):
        for columns in combinations_with_replacement(range(len(prices)), size):
            if all(
                sum(rooms[column][n] for column in columns if mask >> column & 1) >= amount
                for mask, missing in rows
                for n, amount in enumerate(missing)
            ):
                covers.append(sum(prices[column] for column in columns))
    return min(covers, default=None)


def test_cheapest_cover_is_found():
    chance = Random(5)
    for _ in range(60):
        prices = sorted(chance.randint(5, 60) for _ in range(6))
        rooms = [(chance.randint(1, 9), chance.randint(1, 9)) for _ in prices]
        rows = (
            (63, (chance.randint(3, 20), chance.randint(3, 20))),
            (chance.randint(1, 62), (chance.randint(0, 6), 2)),
        )
        worth = min(price / (a + b) for price, (a, b) in zip(prices, rooms, strict=True)) * 0.999
        covers = Covers(prices, rooms, Thresholds(rooms), (worth, worth), rows, Meter(0), 30, 10**6)
        found_covers = covers.search(4, 10**9)
        best = brute(prices, rooms, rows, 4)
        assert (found_covers[0][0] if found_covers else None) == best
        assert found_covers == sorted(found_covers)


def test_an_unfinished_search_says_so():
    prices, rooms = [5, 6, 7], [(3, 1), (2, 2), (1, 3)]
    covers = Covers(prices, rooms, Thresholds(rooms), (1.0, 1.0), ((7, (30, 30)),), Meter(0), 30, 10)
    covers.search(20, 10**9)
    assert not covers.complete


def test_rows_name_what_only_some_columns_hold(problem):
    market = Market(problem((500, 1024, 4), (6000, 1024, 2)))
    (every, whole), (able, large) = rows_of(market, market.count, 3)
    assert whole == tuple(market.load(market.count))
    assert large == tuple(market.load({1: 2}))
    assert able == market.holders[1]
    assert able & every == able != every
