"""The index: tables per provider, and names that must differ."""

from __future__ import annotations

import pytest

from stockyard.scheduling.index import Index


def test_index_table_has_rows_of_one_provider_by_cost(node_type):
    index = Index.build([node_type("p.a", 3.0, cost=1, cost_given=True), node_type("p.b", 2.0), node_type("q.c", 1.0)])
    assert [row.node_type.name for row in index.table(None).rows] == ["q.c", "p.b", "p.a"]
    assert [row.node_type.name for row in index.table("p").rows] == ["p.a", "p.b"]
    assert index.table("p") is index.table("p")
    assert index.table("x").rows == ()


def test_index_refuses_duplicate_node_type_names(node_type):
    with pytest.raises(ValueError, match=r"p\.a is there twice"):
        Index.build([node_type("p.a"), node_type("p.a")])


def test_index_does_not_keep_table_of_unknown_provider(node_type):
    index = Index.build([node_type("p.a")], [None, "p"])
    before = dict(index._tables)
    index.table("x")
    assert index._tables == before
    assert set(before) == {(None, False), ("p", False)}
