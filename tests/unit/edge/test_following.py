"""A list is followed by cursors: everything is told once, whatever is stored late."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from stockyard.domain.values import ids
from stockyard.edge.following import MOST_YOUNG, Cursor, cursor_after, first_of, news, read_cursor, settled_bound
from stockyard.edge.http.query import moment_of
from stockyard.errors import InvalidInput
from stockyard.ports import Page

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Item:
    id: str


def item(seconds_ago, number=0, now=NOW):
    return Item(ids.make("evt", now - timedelta(seconds=seconds_ago), number.to_bytes(10, "big")))


def reader(items):
    def read(after, limit):
        behind = sorted((entry for entry in items if entry.id > after), key=lambda entry: entry.id)
        return Page(behind[:limit], behind[limit - 1].id if len(behind) > limit else None)

    return read


def test_young_items_are_told_at_once_and_once():
    items = [item(60), item(3, 1), item(1, 2)]
    settled = settled_bound("evt", NOW)
    first, cursor = news(reader(items), Cursor("evt_0000000000"), settled, 50)
    assert first == items
    assert news(reader(items), cursor, settled, 50)[0] == []
    late = item(2, 3)
    assert news(reader([*items, late]), cursor, settled, 50)[0] == [late]


def test_a_cursor_forgets_what_is_settled():
    items = [item(3, number) for number in range(20)]
    _, cursor = news(reader(items), Cursor("evt_0000000000"), settled_bound("evt", NOW), 50)
    assert len(cursor.tails) == 20
    later = settled_bound("evt", NOW + timedelta(seconds=10))
    assert news(reader(items), cursor, later, 50) == ([], Cursor(later))


def test_more_young_items_than_a_cursor_remembers_wait_until_the_first_are_settled():
    items = [item(3, number) for number in range(MOST_YOUNG + 30)]
    first, cursor = news(reader(items), Cursor("evt_0000000000"), settled_bound("evt", NOW), 200)
    assert (first, len(str(cursor)) < 1024) == (items[:MOST_YOUNG], True)
    assert news(reader(items), cursor, settled_bound("evt", NOW), 200)[0] == []
    later = settled_bound("evt", NOW + timedelta(seconds=3))
    assert news(reader(items), cursor, later, 200)[0] == items[MOST_YOUNG:]


@pytest.mark.parametrize("seed", range(30))
def test_a_follower_gets_everything_once_though_writes_come_late(seed):
    """Ids are made up to four seconds before they are stored, answers are lost, pages are small."""
    chance = random.Random(seed)
    stored, pending, followed, count = [], [], [], 0
    cursor, now = Cursor("evt_0000000000"), NOW
    for step in range(400):
        now += timedelta(seconds=chance.choice((0, 0.01, 0.2, 1)))
        for _ in range(chance.choice((0, 0, 1, 1, 5)) if step < 250 else 0):
            count += 1
            pending.append((now + timedelta(seconds=chance.random() * 4), item(0, count, now)))
        stored += [entry for due, entry in pending if due <= now]
        pending = [(due, entry) for due, entry in pending if due > now]
        size = chance.choice((1, 3, 50)) if step < 250 else 50
        batch, next_cursor = news(reader(stored), cursor, settled_bound("evt", now), size)
        if chance.random() < 0.8:
            followed += batch
            cursor = read_cursor(str(next_cursor), "evt")
    assert not pending
    assert sorted(followed, key=lambda entry: entry.id) == sorted(stored, key=lambda entry: entry.id)
    assert len(followed) == count > 100


def test_a_list_of_the_newest_gives_a_cursor_behind_all_of_it():
    items = [item(60, 1), item(3, 2), item(1, 3)]
    settled = settled_bound("evt", NOW)
    newest = first_of(items[::-1][:2], settled)
    cursor = cursor_after(newest, None, settled)
    assert newest == [items[2], items[1]]
    assert news(reader(items), cursor, settled, 50)[0] == []


@pytest.mark.parametrize("text", ["", "evt_1", "op_" + "0" * 26, "op_0000000000~", "evt_0000000000~x", "evt_~"])
def test_what_is_no_cursor_of_the_list_is_refused(text):
    with pytest.raises(InvalidInput, match="after must be the cursor"):
        read_cursor(text, "evt")


def test_an_id_is_no_cursor_but_taken():
    assert read_cursor("evt_" + "0" * 26, "evt") is None


def test_since_names_a_moment():
    assert moment_of("2026-01-31T12:00:00.5Z") == datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)
    assert moment_of("2026-02-30T00:00:00Z") == datetime(2026, 3, 2, tzinfo=UTC)


def test_who_follows_what_is_rare_goes_on_where_enough_was_looked_at():
    """A page of a filtered list may end before the first item that matches."""
    items = [item(100 - number, number) for number in range(50)]

    def read(after, _):
        behind = [entry for entry in items if entry.id > after][:10]
        return Page([entry for entry in behind if entry == items[35]], behind[-1].id if len(behind) == 10 else None)

    cursor, items_read, settled = Cursor("evt_0000000000"), [], settled_bound("evt", NOW)
    for _ in range(8):
        more, cursor = news(read, cursor, settled, 50)
        items_read += more
    assert items_read == [items[35]]
    assert cursor == Cursor(settled)
