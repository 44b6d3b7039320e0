"""Page tokens cannot be made, changed, moved or kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.edge.paging import PageCodec, filtered
from stockyard.errors import InvalidInput

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLACE = {"tenant": "acme", "route": "/v1/clusters", "query": {"status": "ready", "full": True}}


@given(st.text(max_size=300), st.binary(min_size=16, max_size=64))
def test_token_round_trip(after, key):
    codec = PageCodec(key)
    token = codec.encode(after, now=NOW, **PLACE)
    assert codec.decode(token, now=NOW + timedelta(minutes=59), **PLACE) == after
    assert token.isascii()
    assert "=" not in token


@pytest.mark.parametrize(
    "other_place",
    [
        {"tenant": "globex"},
        {"route": "/v1/events"},
        {"query": {"status": "failed", "full": True}},
        {"query": {"status": "ready"}},
        {"query": {}},
    ],
)
def test_token_is_valid_for_its_tenant_route_and_query_only(other_place):
    codec = PageCodec(b"k" * 16)
    token = codec.encode("clu_1", now=NOW, **PLACE)
    with pytest.raises(InvalidInput):
        codec.decode(token, now=NOW, **{**PLACE, **other_place})


def test_token_expires_after_an_hour():
    codec = PageCodec(b"k" * 16)
    token = codec.encode("clu_1", now=NOW, **PLACE)
    with pytest.raises(InvalidInput, match="expired"):
        codec.decode(token, now=NOW + timedelta(hours=1), **PLACE)


def test_tokens_depend_on_key():
    token = PageCodec(b"k" * 16).encode("clu_1", now=NOW, **PLACE)
    with pytest.raises(InvalidInput):
        PageCodec(b"l" * 16).decode(token, now=NOW, **PLACE)
    with pytest.raises(ValueError, match="16 bytes"):
        PageCodec(b"short")


@given(st.data())
def test_changed_token_is_refused(data):
    codec = PageCodec(b"k" * 16)
    token = codec.encode("clu_1", now=NOW, **PLACE)
    place = data.draw(st.integers(0, len(token) - 1))
    changed = data.draw(st.characters(codec="ascii").filter(lambda c: c != token[place]))
    with pytest.raises(InvalidInput):
        codec.decode(token[:place] + changed + token[place + 1 :], now=NOW, **PLACE)


@given(st.text(max_size=200))
def test_any_other_text_is_refused(text):
    with pytest.raises(InvalidInput):
        PageCodec(b"k" * 16).decode(text, now=NOW, **PLACE)


@dataclass
class Item:
    id: str
    visible: bool


@dataclass
class Part:
    items: list[Item]
    next_id: str | None


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 5), st.integers(1, 7))
def test_pages_of_filtered_list_are_complete_and_in_order(shown_items, size, most):
    everything = [Item(f"{number:03}", keep) for number, keep in enumerate(shown_items)]
    limits = []

    def read(after, limit):
        limits.append(limit)
        following = [item for item in everything if after is None or item.id > after]
        part = following[: min(limit, most)]
        return Part(part, part[-1].id if len(part) < len(following) else None)

    items, after, pages = [], None, 0
    while pages == 0 or after is not None:
        page, after = filtered(read, lambda item: item.visible, after=after, size=size)
        assert len(page) == size or after is None
        items += page
        pages += 1
    assert items == [item for item in everything if item.visible]
    assert pages == max(1, -(-len(items) // size))
    assert min(limits) >= 50
