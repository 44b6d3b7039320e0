"""Masks of one key and of one resource, against a scan of the rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stockyard.domain.values.requirements import Requirement
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
def test_mask_has_bits_of_its_row_numbers(asking):
    assert numbers(mask_of(asking, 301)) == sorted(asking)


@given(st.lists(values, max_size=20), st.lists(entries, min_size=1, max_size=3))
def test_column_allows_same_rows_as_requirement_algebra(rows, several):
    requirement = several[0]
    for entry in several[1:]:
        requirement = requirement.intersection(entry)
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(row, []).append(number)
    has = [Requirement(complement=True) if row == ("*",) else Requirement(False, frozenset(row)) for row in rows]
    expected = [number for number, own in enumerate(has) if own.overlaps(requirement)]
    assert numbers(Column(groups, len(rows)).allowing(requirement)) == expected


@given(st.lists(st.integers(-2, 5), max_size=20), st.integers(-3, 7))
def test_amounts_at_least_returns_rows_with_enough(rows, requested):
    by_amount: dict[int, list[int]] = {}
    for number, amount in enumerate(rows):
        by_amount.setdefault(amount, []).append(number)
    mask = Amounts(by_amount, len(rows)).at_least(requested)
    assert numbers(mask) == [number for number, amount in enumerate(rows) if amount >= requested]
