"""Requests that wait for news, and ``If-None-Match``."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from stockyard.edge.contract import Answer
from stockyard.edge.http.etag import digest_of, matches, tag, version_of
from stockyard.edge.http.query import Query
from stockyard.edge.route import HttpFunction, Roles
from stockyard.errors import NotFound, StoreUnavailable


class Waits:
    """A route of one resource and one of a list, whose answers are given in advance: the last one stays."""

    def __init__(self, world, *, allowed=True):
        self.world, self.asked, self.turns, self.probes = world, 0, [], 0

        @contextmanager
        def turn(tenant, seconds):
            self.turns.append((tenant, seconds))
            try:
                yield allowed
            finally:
                self.turns.append("back")

        world.__dict__["http"] = HttpFunction(
            "waits", page_key=lambda: b"k" * 32, clock=lambda: world.now, sleep=world.wait, turns=turn
        )

    def serve(self, *answers, after=0.0):
        """The first answer for ``after`` seconds, then one with each look."""
        start = self.world.now

        def look(_):
            self.asked += 1
            passed = (self.world.now - start).total_seconds()
            answer = answers[0] if passed < after or len(answers) == 1 else answers[1]
            if isinstance(answer, Exception):
                raise answer
            return answer

        settings = {"roles": Roles.READERS, "answers": {200: None}, "waits": True}
        self.world.http.route("GET /v1/clusters/{id}", **settings)(look)
        self.world.http.route("GET /v1/events", paged=True, query=(Query("after", "From."),), **settings)(look)
        return self

    def get(self, wait=None, tag='"1"', path="/v1/clusters/one"):
        headers = {"if-none-match": tag} if tag else {}
        event_query = f"wait={wait}" if wait is not None else ""
        return raw(self.world, path, event_query, headers)

    def follow(self, wait):
        return raw(self.world, "/v1/events", f"after=x&wait={wait}", {})


def raw(world, path, query, headers):
    from tests.unit.edge.conftest import event

    template = "/v1/clusters/{id}" if path.startswith("/v1/clusters") else path
    return world.http.handle({**event("GET", path, query=query, headers=headers), "routeKey": f"GET {template}"}, None)


FIRST = Answer(200, {"id": "clu_1"}, version=1)
SECOND = Answer(200, {"id": "clu_1"}, version=2)


def test_a_known_version_is_304_without_a_body(world):
    answer = Waits(world).serve(FIRST).get()
    assert (answer["statusCode"], answer["body"], answer["headers"]["ETag"]) == (304, "", '"1"')


@pytest.mark.parametrize("sent", ['"2"', 'W/"2"', "", None, "2", '"1-0123456789ab"'])
def test_another_version_or_none_is_200(world, sent):
    assert Waits(world).serve(FIRST).get(tag=sent)["statusCode"] == 200


@pytest.mark.parametrize("sent", ['W/"1"', '"7", "1"', "*"])
def test_weak_tags_lists_and_any_match(world, sent):
    assert Waits(world).serve(FIRST).get(tag=sent)["statusCode"] == 304


def test_it_waits_until_something_has_changed(world):
    waits = Waits(world).serve(FIRST, SECOND, after=7)
    before = world.now
    answer = waits.get(wait=20)
    assert (answer["statusCode"], answer["headers"]["ETag"]) == (200, '"2"')
    assert 7 <= (world.now - before).total_seconds() <= 8
    assert waits.turns == [("acme", 20), "back"]


def test_it_waits_no_longer_than_it_was_asked_to(world):
    waits, before = Waits(world).serve(FIRST), world.now
    assert waits.get(wait=3)["statusCode"] == 304
    assert (world.now - before).total_seconds() == 3
    assert waits.asked == 4


def test_news_is_answered_at_once_and_takes_no_turn(world):
    waits, before = Waits(world).serve(SECOND), world.now
    assert waits.get(wait=20)["statusCode"] == 200
    assert (world.now, waits.turns) == (before, [])


def test_what_is_gone_meanwhile_is_404_and_the_turn_is_given_back(world):
    waits = Waits(world).serve(FIRST, NotFound("It is gone."), after=2)
    assert waits.get(wait=20)["statusCode"] == 404
    assert waits.turns[-1] == "back"


def test_a_table_that_does_not_answer_is_told(world):
    assert Waits(world).serve(FIRST, StoreUnavailable("no"), after=2).get(wait=20)["statusCode"] == 503


def test_one_too_many_is_answered_at_once_and_told_when_to_ask_again(world):
    waits, before = Waits(world, allowed=False).serve(FIRST), world.now
    answer = waits.get(wait=20)
    assert (answer["statusCode"], answer["headers"]["Retry-After"], world.now) == (304, "5", before)


def test_a_list_waits_for_its_first_item(world):
    empty, full = Answer.listing([], None, "c1"), Answer.listing([{"id": "evt_1"}], None, "c2")
    waits = Waits(world).serve(empty, full, after=4)
    answer = waits.follow(20)
    assert answer["body"] == '{"items":[{"id":"evt_1"}],"next_page_token":null,"cursor":"c2"}'


def test_a_list_without_news_is_empty_and_has_a_cursor(world):
    answer = Waits(world).serve(Answer.listing([], None, "c1")).follow(2)
    assert (answer["statusCode"], answer["body"]) == (200, '{"items":[],"next_page_token":null,"cursor":"c1"}')


def test_where_little_tells_of_a_change_the_answer_is_not_made_for_each_look(world):
    states = iter([1, 1, 1, 1, 2, 2])
    with_probe = Answer(200, {"id": "clu_1"}, version=1, probe=lambda: next(states))
    waits = Waits(world).serve(with_probe, SECOND, after=4.5)
    assert waits.get(wait=20)["statusCode"] == 200
    # the first one, one with the first look, which knows no state yet, and the one of the change
    assert waits.asked == 3


@pytest.mark.parametrize(
    ("path", "query", "text"),
    [
        ("/v1/clusters/one", "wait=5", "If-None-Match"),
        ("/v1/events", "wait=5", "after"),
        ("/v1/events", "after=x&wait=21", "from 0 to 20"),
        ("/v1/events", "after=x&wait=-1", "from 0 to 20"),
    ],
)
def test_a_wait_for_nothing_or_for_too_long_is_refused(world, path, query, text):
    Waits(world).serve(FIRST)
    answer = raw(world, path, query, {})
    assert answer["statusCode"] == 422
    assert text in answer["body"]


def test_a_digest_is_part_of_the_tag_and_not_of_the_version():
    digest = digest_of({"claims": 1})
    assert digest != digest_of({"claims": 2})
    assert version_of(tag(7, digest)) == 7
    assert matches(tag(7, digest), tag(7, digest))
    assert not matches(tag(7), tag(7, digest))
