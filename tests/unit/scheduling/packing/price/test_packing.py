"""The parts of the search: aligned packing, Karpenter's rule, subsets, bounds by whole nodes, wishes."""

from __future__ import annotations

from random import Random

from stockyard.scheduling.packing.price import solve
from stockyard.scheduling.packing.price.aligned import Guideline, Slot, pack
from stockyard.scheduling.packing.price.bounds import cover_bound, reachable
from stockyard.scheduling.packing.price.greedy import first_fit, greedy
from stockyard.scheduling.packing.price.market import Market
from stockyard.scheduling.packing.price.model import EVERY, Meter
from stockyard.scheduling.packing.price.shapes_bound import shapes_bound
from stockyard.scheduling.packing.price.subsets import cheapest_split
from tests.properties import price_problems

GIB = 1024


def slots(market, *rooms, shapes=EVERY):
    return [Slot(market.pack(market.reduce(room)) | market.guard, shapes, {}) for room in rooms]


def packed(market, nodes, pods):
    room = [sum(amounts) for amounts in zip(*(market.unpack(slot.state) for slot in nodes), strict=True)]
    return pack(market, nodes, pods, Guideline(market, market.load(pods), room), Meter(10**6))


def test_pods_go_where_the_free_room_leans_their_way(problem):
    market = Market(problem((1000, GIB, 20), (1000, 7 * GIB, 20)))
    nodes = slots(market, (20_000, 20 * GIB, 99), (20_000, 140 * GIB, 99))
    assert packed(market, nodes, market.count) == {}
    assert [slot.counts for slot in nodes] == [{0: 20}, {1: 20}]


def test_a_mix_fills_a_node_in_both_resources(problem):
    market = Market(problem((1000, GIB, 24), (1000, 7 * GIB, 24)))
    nodes = slots(market, *[(16_000, 64 * GIB, 99)] * 3)
    assert packed(market, nodes, market.count) == {}


def test_what_has_no_room_comes_back(problem):
    market = Market(problem((1000, GIB, 9), (3000, GIB, 1)))
    nodes = slots(market, (2500, 99 * GIB, 99), (2500, 99 * GIB, 99), (9000, 99 * GIB, 2), shapes=0b01)
    assert packed(market, nodes, market.count) == {0: 3, 1: 1}
    assert sum(slot.counts.get(0, 0) for slot in nodes) == 6


def test_first_fit_fills_spaces_in_order(problem):
    market = Market(problem((1000, GIB, 5), (2000, GIB, 1)))
    rooms = [market.reduce(room) for room in ((3000, 99 * GIB, 9), (9000, 99 * GIB, 9))]
    assert first_fit(market, rooms, [EVERY, 0b10], market.count) == [{0: 3}, {1: 1, 0: 2}]


def test_the_rule_fills_the_node_with_the_fewest_pods(problem):
    market = Market(problem((9000, GIB, 2), (1000, GIB, 4)))
    assert greedy(market, market.count, Meter(10**6)) == [{0: 1, 1: 2}, {0: 1, 1: 2}]


def test_subsets_find_the_split_that_is_cheapest(problem, catalogue):
    market = Market(problem((1000, 2 * GIB, 2), (1000, 8 * GIB, 2)))
    nodes = cheapest_split(market, market.count, Meter(10**6))
    assert sum(market.prices[market.cheapest(counts)] for counts in nodes) == 2 * 40 + 2 * 66
    assert cheapest_split(Market(problem((99_000, GIB, 1))), {0: 1}, Meter(10**6)) is None


def test_rooms_are_rounded_down_to_what_pods_can_sum_up_to(problem):
    market = Market(problem((300, 700, 2), (500, 900, 1)))
    assert market.units == (100, 100, 1)
    rounded = reachable(market, market.count, [(7, 15, 9), (10, 16, 2), (99, 99, 1)])
    assert rounded == [(6, 14, 3), (8, 16, 2), (11, 23, 1)]


def test_whole_nodes_cost_more_than_a_liquid(problem, catalogue):
    offers = [catalogue[3], catalogue[4]]
    market = Market(problem((1000, 2 * GIB, 25), offers=offers))
    assert cover_bound(market, market.count, [0, 0, 0], 1280, Meter(0), 10_000) == (1280, True)
    assert cover_bound(market, market.count, [0, 0, 0], 1600, Meter(0), 10_000) == (1280, False)
    assert cover_bound(market, market.count, [0, 0, 0], 1600, Meter(0), 0) is None
    assert cover_bound(market, market.count, [market.load({0: 9})[0], 99, 99], 1600, Meter(0), 10_000) == (640, False)
    assert cover_bound(market, market.count, [99, 99, 99], 5, Meter(0), 10_000) == (0, False)


def test_equal_pods_cannot_use_two_families_to_the_full(problem):
    """Three GiB a cpu: a liquid mixes c and m; whole pods leave memory of the one or cpu of the other."""
    whole = problem((1000, 3 * GIB, 200))
    market = Market(whole)
    assert shapes_bound(whole, market, market.count, 0, Meter(0)) == 200 * 50
    answer = solve(whole)
    assert (answer.price, answer.kind) == (200 * 50, "shapes")
    assert answer.linear < 0.95 * answer.bound


def test_no_split_is_cheaper_than_the_bound_by_shapes(seed):
    chance, positive = Random(seed), 0
    for _ in range(60):
        data = price_problems.small(chance)
        whole = price_problems.read(data)
        market = Market(whole)
        pods = {shape: count for shape, count in market.count.items() if market.holders[shape]}
        nodes = cheapest_split(market, pods, Meter(0))
        bound = shapes_bound(whole, market, pods, 0, Meter(0)) if pods else 0
        assert bound <= sum(market.prices[market.cheapest(counts)] for counts in nodes)
        positive += bound > 0
    assert positive > 30
