"""Masks of one key and of one resource, against a scan of the rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stockyard.domain.requirements import Requirement
from stockyard.scheduling.table import Amounts, Column, mask_of

values = st.one_of(
    st.just(()),
    st.just(("*",)),
    st.lists(st.sampled_from(["1", "2", "3", "04", "x"]), min_size=1, max_size=2, unique=True).map(tuple),
)
entries = st.one_of(
    st.builds(
        Requirement.of, st.sampled_from(["In", "NotIn"]), st.lists(st.sampled_from(["1", "2", "x", "9"]), min_size=1)
    ),
    st.builds(Requirement.of, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(Requirement.of, st.sampled_from(["Gt", "Gte", "Lt", "Lte"]), st.tuples(st.integers(0, 5).map(str))),
)


def numbers(mask: int) -> list[int]:
    return [number for number in range(mask.bit_length()) if mask >> number & 1]


@given(st.sets(st.integers(0, 300)))
def test_a_mask_has_the_bits_of_its_numbers(wanted):
    assert numbers(mask_of(wanted, 301)) == sorted(wanted)


@given(st.lists(values, max_size=20), st.lists(entries, min_size=1, max_size=3))
def test_a_column_allows_what_the_algebra_does(rows, several):
    asked = several[0]
    for one in several[1:]:
        asked = asked.intersection(one)
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(row, []).append(number)
    has = [Requirement(complement=True) if row == ("*",) else Requirement(False, frozenset(row)) for row in rows]
    expected = [number for number, own in enumerate(has) if own.overlaps(asked)]
    assert numbers(Column(groups, len(rows)).allowing(asked)) == expected


@given(st.lists(st.integers(-2, 5), max_size=20), st.integers(-3, 7))
def test_amounts(rows, asked):
    by_amount: dict[int, list[int]] = {}
    for number, amount in enumerate(rows):
        by_amount.setdefault(amount, []).append(number)
    found = Amounts(by_amount, len(rows)).at_least(asked)
    assert numbers(found) == [number for number, amount in enumerate(rows) if amount >= asked]
