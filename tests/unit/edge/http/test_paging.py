"""Page tokens cannot be made, changed, moved or kept."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.edge.http.paging import PageCodec, counted, filtered, total_of
from stockyard.edge.route import Answer, HttpFunction, Query, Roles
from stockyard.errors import InvalidInput

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
BINDING = {"tenant": "acme", "route": "/v1/clusters", "query": {"status": "ready", "full": True}}


@given(st.text(max_size=300), st.binary(min_size=16, max_size=64))
def test_token_round_trip(after, key):
    codec = PageCodec(key)
    token = codec.encode(after, now=NOW, **BINDING)
    assert codec.decode(token, now=NOW + timedelta(minutes=59), **BINDING) == after
    assert token.isascii()
    assert "=" not in token


@pytest.mark.parametrize(
    "other_binding",
    [
        {"tenant": "globex"},
        {"route": "/v1/events"},
        {"query": {"status": "failed", "full": True}},
        {"query": {"status": "ready"}},
        {"query": {}},
    ],
)
def test_token_is_valid_for_its_tenant_route_and_query_only(other_binding):
    codec = PageCodec(b"k" * 16)
    token = codec.encode("clu_1", now=NOW, **BINDING)
    with pytest.raises(InvalidInput):
        codec.decode(token, now=NOW, **{**BINDING, **other_binding})


def test_token_expires_after_an_hour():
    codec = PageCodec(b"k" * 16)
    token = codec.encode("clu_1", now=NOW, **BINDING)
    with pytest.raises(InvalidInput, match="expired"):
        codec.decode(token, now=NOW + timedelta(hours=1), **BINDING)


def test_tokens_depend_on_key():
    token = PageCodec(b"k" * 16).encode("clu_1", now=NOW, **BINDING)
    with pytest.raises(InvalidInput):
        PageCodec(b"l" * 16).decode(token, now=NOW, **BINDING)
    with pytest.raises(ValueError, match="16 bytes"):
        PageCodec(b"short")


@given(st.data())
def test_changed_token_is_refused(data):
    codec = PageCodec(b"k" * 16)
    token = codec.encode("clu_1", now=NOW, **BINDING)
    index = data.draw(st.integers(0, len(token) - 1))
    changed = data.draw(st.characters(codec="ascii").filter(lambda c: c != token[index]))
    with pytest.raises(InvalidInput):
        codec.decode(token[:index] + changed + token[index + 1 :], now=NOW, **BINDING)


@given(st.text(max_size=200))
def test_any_other_text_is_refused(text):
    with pytest.raises(InvalidInput):
        PageCodec(b"k" * 16).decode(text, now=NOW, **BINDING)


@dataclass
class Item:
    id: str
    visible: bool


@dataclass
class Part:
    items: list[Item]
    next_id: str | None
    read: int = 0


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


@pytest.mark.parametrize(("most", "read", "pages"), [(1000, 1000, 3), (50, 0, 8)])
def test_a_page_ends_when_enough_was_looked_at_and_the_next_goes_on_there(most, read, pages):
    """Few of very many match: the table looks at 1,000 for each page, or 400 are looked at here."""
    everything = [Item(f"{number:04}", number in (7, 2500)) for number in range(3000)]

    def part(after, _):
        begin = int(after or -1) + 1
        looked_at = everything[begin : begin + most]
        visible = [item for item in looked_at if item.visible] if read else looked_at
        return Part(visible, looked_at[-1].id if begin + most < len(everything) else None, read)

    items, after, count = [], None, 0
    while count == 0 or after is not None:
        page, after = filtered(part, lambda item: item.visible, after=after, size=50)
        items += page
        count += 1
    assert ([item.id for item in items], count) == (["0007", "2500"], pages)


def test_pages_go_on_where_they_ended(world):
    def listing(request):
        return Answer.listing([{"after": request.page.after, "size": request.page.size}], "clu_9")

    kind = Query("status", "Only this status.", values=("ready", "failed"))
    world.http.route(
        "GET /v1/clusters",
        summary="List",
        action="ListClusters",
        roles=Roles.READERS,
        answers={200: None},
        query=(kind,),
        paged=True,
    )(listing)
    first = world.call("GET", "/v1/clusters", query="status=ready&page_size=2")
    assert first.json["items"] == [{"after": None, "size": 2}]
    token = first.json["next_page_token"]
    second = world.call("GET", "/v1/clusters", query=f"status=ready&page_token={token}")
    assert second.json["items"] == [{"after": "clu_9", "size": 50}]
    other_claims = {"sub": "u", "organization": "globex", "realm_access": {"roles": ["stockyard-viewer"]}}
    for query, claims in (
        (f"status=failed&page_token={token}", None),
        (f"status=ready&page_token={token}", other_claims),
    ):
        more = {} if claims is None else {"claims": claims}
        refused = world.call("GET", "/v1/clusters", query=query, **more)
        assert (refused.status, "items" in refused.json) == (422, False)
    world.wait(3600)
    assert world.call("GET", "/v1/clusters", query=f"status=ready&page_token={token}").status == 422


def test_a_door_that_pages_needs_a_key(make_event, capsys):
    http = HttpFunction("no-key")
    http.route("GET /v1/clusters", summary="", action="L", roles=Roles.READERS, answers={200: None}, paged=True)(
        lambda _: Answer.listing([], "clu_1")
    )
    answer = http.handle(make_event("GET", "/v1/clusters"), None)
    assert (answer["statusCode"], json.loads(answer["body"])["error_type"]) == (500, "Internal")
    assert "TypeError" in capsys.readouterr().out


def test_the_last_page_has_no_token(world):
    world.http.route("GET /v1/clusters", summary="", action="L", roles=Roles.READERS, answers={200: None}, paged=True)(
        lambda _: Answer.listing([], None)
    )
    assert world.call("GET", "/v1/clusters").json == {"items": [], "next_page_token": None}


def test_a_count_ends_at_its_limit_and_reads_no_more_than_it_needs():
    reads = []

    def part(size, every, after, limit, *, consistent):
        assert not consistent
        reads.append(limit)
        start = int(after or 0)
        end = min(size, start + limit)
        items = [Item(str(number), number % every == 0) for number in range(start, end)]
        return Part(items, str(end) if end < size else None)

    for size, every, number, more, read_count in (
        (0, 1, 0, False, 1),
        (999, 1, 999, False, 5),
        (1000, 1, 1000, False, 5),
        (1001, 1, 1000, True, 5),
        (90_000, 1, 1000, True, 5),
        (90_000, 100, 20, True, 10),
    ):
        reads.clear()
        total = counted(partial(part, size, every), lambda item: item.visible)
        assert (total, len(reads)) == (total_of(number, more=more), read_count), (size, every)
