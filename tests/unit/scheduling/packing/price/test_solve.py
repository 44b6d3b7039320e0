"""Whole answers: what is bought, what is left out, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.scheduling.packing.price import FreeProblem, Offer, Preferences, Shape, Space, solve

GIB = 1024


def names(problem, answer):
    return [problem.offers[node.offer].name for node in answer.bins if node.offer is not None]


def test_few_pods_get_the_cheapest_nodes_there_are(problem):
    whole = problem((1000, 2 * GIB, 3))
    answer = solve(whole)
    assert (answer.price, answer.bound, answer.kind, answer.gap) == (120, 120, "linear", 0.0)
    assert sum(int(name.removeprefix("c-")) for name in names(whole, answer)) == 3


def test_mixed_pods_share_nodes_of_two_families(problem):
    whole = problem((1000, 2 * GIB, 40), (1000, 4 * GIB, 40))
    answer = solve(whole)
    assert answer.price == 40 * 40 + 40 * 50
    assert answer.gap < 0.02
    assert answer.greedy > answer.price


def test_alternatives_could_carry_the_same_pods_in_order_of_price(problem, catalogue):
    whole = problem((1000, 2 * GIB, 2), (500, 1 * GIB, 1))
    for node in solve(whole).bins:
        load = [sum(whole.shapes[s].requests[n] * count for s, count in node.counts) for n in range(3)]
        able = [
            (offer.price, offer.name)
            for number, offer in enumerate(catalogue)
            if number != node.offer and all(a <= b for a, b in zip(load, offer.room, strict=True))
        ]
        assert [catalogue[number].name for number in node.alternatives] == [name for _, name in sorted(able)]


def test_pods_that_nothing_holds_are_left_out(problem):
    answer = solve(problem((1000, 2 * GIB, 3), (99_000, GIB, 2)))
    assert answer.unplaced == ((1, 2),)
    assert answer.price == answer.bound == 120


def test_room_that_is_there_is_used_first(problem):
    whole = problem((1000, 2 * GIB, 30), spaces=(Space("here", (10_000, 20 * GIB, 50)),))
    answer = solve(whole)
    assert answer.bins[0].space == 0
    assert dict(answer.bins[0].counts) == {0: 10}
    assert answer.price == 20 * 40
    assert answer.bound == answer.price


def test_a_pod_that_only_a_space_holds_gets_its_room(problem):
    whole = problem((1000, 2 * GIB, 30), (4000, 2 * GIB, 1, 0, 1), spaces=(Space("here", (4000, 20 * GIB, 50)),))
    answer = solve(whole)
    assert answer.bins[0].counts == ((1, 1),)
    assert not answer.unplaced


def test_no_more_is_bought_of_an_offer_than_there_is(problem, catalogue):
    gift = Offer("owned", (16_000, 64 * GIB, 100), 1, limit=2)
    whole = problem((1000, 2 * GIB, 60), offers=(*catalogue, gift))
    answer = solve(whole)
    assert names(whole, answer).count("owned") == 2
    assert answer.price == 2 + 28 * 40
    assert not answer.unplaced


def test_a_wish_for_more_nodes_does_not_buy_more_of_an_offer_than_there_is(problem, catalogue):
    gift = Offer("owned", (16_000, 64 * GIB, 100), 1, limit=2)
    whole = problem((1000, 2 * GIB, 60), offers=(*catalogue, gift), preferences=Preferences(least_nodes=40))
    answer = solve(whole)
    assert names(whole, answer).count("owned") <= 2
    assert len(answer.bins) >= 40
    assert not answer.unplaced


def test_classes_use_what_they_may(problem, catalogue):
    c, m = 0b11111, 0b11111 << 5
    whole = problem((1000, 2 * GIB, 33, c), (1000, 2 * GIB, 21, m), (500, GIB, 40))
    answer = solve(whole)
    for node in answer.bins:
        for shape, _ in node.counts:
            assert whole.shapes[shape].offers >> node.offer & 1
    assert answer.price <= 1.03 * answer.bound


def test_pods_of_many_places_share_what_is_left_of_nodes(problem, catalogue):
    """Three zones at different prices: a third of the pods is pinned to one, the others may be anywhere."""
    zones = [
        Offer(f"{zone}-{offer.name}", offer.room, offer.price * price)
        for zone, price in (("a", 10), ("b", 11), ("c", 12))
        for offer in catalogue
    ]
    masks = [((1 << len(catalogue)) - 1) << index * len(catalogue) for index in range(3)]
    whole = problem(
        *((500 * n, 1024 * n, 25, mask) for n in (1, 2, 3) for mask in masks),
        *((700 * n, 3 * 512 * n, 60) for n in (1, 2, 3)),
        offers=zones,
    )
    answer = solve(whole)
    assert not answer.unplaced
    assert all(whole.shapes[shape].offers >> node.offer & 1 for node in answer.bins for shape, _ in node.counts)
    assert answer.price <= 1.03 * answer.linear
    assert answer.price < answer.greedy


@pytest.mark.parametrize("most", [2000, 4000])
def test_a_largest_size_has_a_price(problem, most):
    whole = problem((1300, 2 * GIB, 40), preferences=Preferences(largest=(most, None, None)))
    answer = solve(whole)
    assert all(whole.offers[node.offer].room[0] <= most for node in answer.bins)
    assert all(whole.offers[number].room[0] <= most for node in answer.bins for number in node.alternatives)
    assert answer.without_preferences <= answer.linear <= answer.price
    assert not answer.unplaced


@pytest.mark.parametrize("least", [3, 8, 30, 50])
def test_at_least_so_many_nodes(problem, least):
    answer = solve(problem((1000, 2 * GIB, 30), preferences=Preferences(least_nodes=least)))
    assert len(answer.bins) >= min(least, 30)
    assert not answer.unplaced
    assert answer.price == 30 * 40


@pytest.mark.parametrize(
    ("preferences", "nodes", "placed"),
    [
        (Preferences(nodes=2), 2, 32),
        (Preferences(money=700), None, 16),
        (Preferences(amounts=(20_000, None, None)), None, 16),
        (Preferences(nodes=0), 0, 0),
    ],
)
def test_limits_leave_pods_out(problem, preferences, nodes, placed):
    whole = problem((1000, 2 * GIB, 40), preferences=preferences)
    answer = solve(whole)
    pods = sum(count for node in answer.bins for _, count in node.counts)
    assert pods >= placed
    assert pods + sum(count for _, count in answer.unplaced) == 40
    assert nodes is None or len(answer.bins) == nodes
    assert preferences.money is None or answer.price <= preferences.money
    assert not preferences.amounts or sum(whole.offers[node.offer].room[0] for node in answer.bins) <= 20_000


def test_fewer_steps_give_an_answer_too(problem):
    whole = problem(*((100 * n, (37 * n % 11 + 1) * 256, 20) for n in range(1, 12)))
    hasty, thorough = solve(whole, steps=1), solve(whole)
    assert not hasty.unplaced
    assert thorough.price <= hasty.price <= hasty.greedy
    assert hasty.linear == thorough.linear


def test_a_problem_without_pods_costs_nothing(catalogue):
    answer = solve(FreeProblem((), catalogue))
    assert (answer.bins, answer.price, answer.bound, answer.gap) == ((), 0, 0, 0.0)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"shapes": (Shape((1, 2), 1),)}, "requests"),
        ({"shapes": (Shape((1, 2, 3), 0),)}, "shapes"),
        ({"shapes": (Shape((0, 0, 0), 1),)}, "shapes"),
        ({"shapes": (Shape((-1, 0, 3), 1),)}, "shapes"),
        ({"offers": (Offer("a", (1, 1, 1), -1),)}, "offers"),
        ({"offers": (Offer("a", (1, 1, 1), 1), Offer("a", (1, 1, 1), 1))}, "offers"),
        ({"offers": (Offer("a", (1, 1, 1), 1, limit=-1),)}, "offers"),
        ({"spaces": (Space("a", (1, 1)),)}, "room"),
        ({"preferences": Preferences(least_nodes=-1)}, "least_nodes"),
    ],
)
def test_bad_input_is_refused_by_name(problem, change, field):
    with pytest.raises(ValueError, match=field):
        replace(problem((1000, 2 * GIB, 3)), **change)
