"""The linear bound: known optima, classes, and a proof that holds whatever the values are."""

from __future__ import annotations

from fractions import Fraction

import pytest

from stockyard.scheduling.packing.price import Offer, Space
from stockyard.scheduling.packing.price.relaxation import Relaxation, certify

ROOMS, PRICES = [(1, 1), (1, 3)], [10, 14]
OFFERS = [Offer("a", (1, 1), 10), Offer("b", (1, 3), 14)]


@pytest.mark.parametrize(
    ("demand", "price", "amounts"),
    [
        ((4, 4), 40, {0: 4.0}),
        ((4, 12), 56, {1: 4.0}),
        ((4, 8), 48, {0: 2.0, 1: 2.0}),
        ((4, 0), 40, {0: 4.0}),
        ((1, 30), 140, {1: 10.0}),
    ],
)
def test_a_liquid_buys_what_covers_it_for_the_least_money(demand, price, amounts):
    guide = Relaxation(ROOMS, PRICES, [1, 1], 1).solve([demand])
    assert {column: round(amount, 6) for column, amount in guide.amounts.items() if amount > 1e-6} == amounts
    proof = certify(guide.values, [demand], OFFERS, [1, 1], (), (0,))
    assert price - Fraction(1, 1000) <= proof.bound <= price


def test_each_class_is_carried_by_what_it_may_use():
    """Class 0 may use both offers, class 1 the dear one alone: its spare room carries some of class 0."""
    offers = [Offer("a", (1, 1), 10), Offer("b", (1, 3), 30)]
    demand = [(4, 4), (2, 2)]
    guide = Relaxation([offer.room for offer in offers], [10, 30], [1, 3], 2).solve(demand)
    proof = certify(guide.values, demand, offers, [1, 3], (), (0, 1))
    assert 100 - Fraction(1, 1000) <= proof.bound <= 100


@pytest.mark.parametrize("values", [(1.0, 1.0), (100.0, 3.0), (0.0, 0.0), (3.0, 0.1)])
def test_any_values_prove_a_bound_that_holds(values):
    proof = certify([values], [(4, 8)], OFFERS, [1, 1], (), (0,))
    assert 0 <= proof.bound <= 48
    worth = [sum(Fraction(v, proof.scale) * a for v, a in zip(proof.values[0], o.room, strict=True)) for o in OFFERS]
    assert all(value <= proof.worst * offer.price for value, offer in zip(worth, OFFERS, strict=True))


def test_room_that_is_there_lowers_the_bound():
    guide = Relaxation(ROOMS, PRICES, [1, 1], 1).solve([(2, 4)])
    proof = certify(guide.values, [(4, 8)], OFFERS, [1, 1], (Space("there", (2, 4)),), (0,))
    assert 24 - Fraction(1, 1000) <= proof.bound <= 24


def test_what_is_free_of_charge_proves_nothing():
    offers = [Offer("gift", (5, 5), 0)]
    guide = Relaxation([(5, 5)], [0], [1], 1).solve([(4, 8)])
    assert certify(guide.values, [(4, 8)], offers, [1], (), (0,)).bound == 0
