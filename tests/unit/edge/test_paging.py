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
def test_what_goes_in_comes_out(after, key):
    codec = PageCodec(key)
    token = codec.encode(after, now=NOW, **PLACE)
    assert codec.decode(token, now=NOW + timedelta(minutes=59), **PLACE) == after
    assert token.isascii()
    assert "=" not in token


@pytest.mark.parametrize(
    "other",
    [
        {"tenant": "globex"},
        {"route": "/v1/events"},
        {"query": {"status": "failed", "full": True}},
        {"query": {"status": "ready"}},
        {"query": {}},
    ],
)
def test_a_token_belongs_to_its_tenant_route_and_query(other):
    codec = PageCodec(b"k" * 16)
    token = codec.encode("clu_1", now=NOW, **PLACE)
    with pytest.raises(InvalidInput):
        codec.decode(token, now=NOW, **{**PLACE, **other})


def test_a_token_lives_an_hour():
    codec = PageCodec(b"k" * 16)
    token = codec.encode("clu_1", now=NOW, **PLACE)
    with pytest.raises(InvalidInput, match="expired"):
        codec.decode(token, now=NOW + timedelta(hours=1), **PLACE)


def test_another_key_makes_other_tokens():
    token = PageCodec(b"k" * 16).encode("clu_1", now=NOW, **PLACE)
    with pytest.raises(InvalidInput):
        PageCodec(b"l" * 16).decode(token, now=NOW, **PLACE)
    with pytest.raises(ValueError, match="16 bytes"):
        PageCodec(b"short")


@given(st.data())
def test_no_changed_character_is_accepted(data):
    codec = PageCodec(b"k" * 16)
    token = codec.encode("clu_1", now=NOW, **PLACE)
    place = data.draw(st.integers(0, len(token) - 1))
    changed = data.draw(st.characters(codec="ascii").filter(lambda c: c != token[place]))
    with pytest.raises(InvalidInput):
        codec.decode(token[:place] + changed + token[place + 1 :], now=NOW, **PLACE)


@given(st.text(max_size=200))
def test_any_text_is_refused_and_nothing_else_happens(text):
    with pytest.raises(InvalidInput):
        PageCodec(b"k" * 16).decode(text, now=NOW, **PLACE)


@dataclass
class Item:
    id: str
    shown: bool


@dataclass
class Part:
    items: list[Item]
    next_id: str | None


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 5), st.integers(1, 7))
def test_pages_of_a_filtered_list_are_the_whole_list_in_order(shown, size, most):
    everything = [Item(f"{number:03}", keep) for number, keep in enumerate(shown)]
    asked = []

    def read(after, limit):
        asked.append(limit)
        rest = [item for item in everything if after is None or item.id > after]
        part = rest[: min(limit, most)]
        return Part(part, part[-1].id if len(part) < len(rest) else None)

    found, after, pages = [], None, 0
    while pages == 0 or after is not None:
        page, after = filtered(read, lambda item: item.shown, after=after, size=size)
        assert len(page) == size or after is None
        found += page
        pages += 1
    assert found == [item for item in everything if item.shown]
    assert pages == max(1, -(-len(found) // size))
    assert min(asked) >= 50
