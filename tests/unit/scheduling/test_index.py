"""The index: tables per provider, and names that must differ."""

from __future__ import annotations

import pytest

from stockyard.scheduling.index import Index


def test_a_table_has_the_rows_of_one_provider_in_its_order(kind):
    index = Index.build([kind("p.a", 3.0, cost=1, cost_given=True), kind("p.b", 2.0), kind("q.c", 1.0)])
    assert [row.kind.name for row in index.table(None).rows] == ["q.c", "p.b", "p.a"]
    assert [row.kind.name for row in index.table("p").rows] == ["p.a", "p.b"]
    assert index.table("p") is index.table("p")
    assert index.table("x").rows == ()


def test_two_kinds_of_one_name_are_refused(kind):
    with pytest.raises(ValueError, match=r"p\.a is there twice"):
        Index.build([kind("p.a"), kind("p.a")])


def test_an_unknown_provider_leaves_nothing_behind(kind):
    index = Index.build([kind("p.a")], [None, "p"])
    before = dict(index._tables)
    index.table("x")
    assert index._tables == before
    assert set(before) == {None, "p"}
