"""Garbage is looked for again behind whatever was made without, and nowhere that it was not before."""

from __future__ import annotations

import gc

import pytest

from stockyard.garbage import without_garbage_collection


@without_garbage_collection()
def _is_looked_for(fails: bool = False) -> bool:
    if fails:
        raise ValueError(gc.isenabled())
    return gc.isenabled()


def test_nobody_looks_for_garbage_inside():
    assert gc.isenabled()
    assert not _is_looked_for()
    assert gc.isenabled()


def test_a_failure_lets_it_be_looked_for_again():
    with pytest.raises(ValueError, match="False"):
        _is_looked_for(fails=True)
    assert gc.isenabled()


def test_the_outer_one_goes_on_behind_an_inner_one():
    with without_garbage_collection():
        assert not _is_looked_for()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_stays_off_where_it_was():
    gc.disable()
    try:
        assert not _is_looked_for()
        assert not gc.isenabled()
    finally:
        gc.enable()
