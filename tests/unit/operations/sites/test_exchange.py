"""A connector is told how soon to come, gives answers, and is given each request again that nobody answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from benchmarks import site_cost
from stockyard.domain.records import Site, SiteAnswer, SiteRequest
from stockyard.operations.sites.exchange import ConnectorMessage, Exchange
from tests.harness.worlds.site_world import Killed, SiteWorld, no_turn

NOTHING = ConnectorMessage("1", (), (), 10)
DIED = ("before the round", "before the exchange", "after the exchange", "before the host", "after the host")


@pytest.fixture
def world() -> SiteWorld:
    return SiteWorld.make()


def message(*answers: dict[str, Any], wants: int = 10) -> dict[str, Any]:
    return {"version": "1", "allowed": ["GET /things/*"], "answers": list(answers), "wants": wants}


def test_the_first_answer_comes_within_65_seconds_when_idle_and_2_seconds_when_busy(world: SiteWorld):
    world.host.things["/things/a"] = b"one"
    world.pass_time(1.0)  # the connector has just been here
    client, begin = world.client(), world.clock.now()
    while True:
        try:
            assert client.get("/things/a").text == "one"
            break
        except httpx.ConnectTimeout:
            assert (world.clock.now() - begin).total_seconds() < 65
    assert (world.clock.now() - begin).total_seconds() <= 65
    for _ in range(20):
        world.pass_time(3.0)
        begin = world.clock.now()
        assert client.get("/things/a").text == "one"
        assert (world.clock.now() - begin).total_seconds() <= 2


def test_the_interval_follows_what_is_done_at_the_site(world: SiteWorld):
    assert world.exchange(message())["interval_seconds"] == 60
    world.write()
    batch = world.exchange(message())
    assert (len(batch["requests"]), batch["interval_seconds"]) == (1, 0)
    assert world.exchange(message())["interval_seconds"] == 1  # no turn to wait here
    world.clock.advance(121)
    assert world.exchange(message())["interval_seconds"] == 60


def test_it_waits_here_for_the_next_request_while_requests_follow_each_other(world: SiteWorld):
    world.write()
    slept = []

    def sleep(seconds: float) -> None:
        world.clock.advance(seconds)
        slept.append(seconds)
        if len(slept) == 3:
            world.write()

    @contextmanager
    def turn(_seconds: int) -> Iterator[bool]:
        yield True

    exchange = Exchange(world.services, world.secrets, world.site, turn, sleep)
    assert len(exchange.answer(NOTHING)[0]) == 1
    batch, interval = exchange.answer(NOTHING)
    assert (len(batch), interval, len(slept)) == (1, 0, 3)
    assert exchange.answer(NOTHING) == ([], 1)
    assert sum(slept[3:]) == 15


def test_a_request_is_given_out_again_after_30_seconds_and_until_its_end(world: SiteWorld):
    request_id = world.write()
    assert len(world.exchange(message())["requests"]) == 1
    world.clock.advance(29)
    assert world.exchange(message())["requests"] == []
    world.clock.advance(1)
    assert len(world.exchange(message())["requests"]) == 1
    request = world.services.store.get(SiteRequest, request_id)
    assert request is not None
    assert request.attempts == 2
    world.clock.advance(31)  # 61 seconds: it ended after 40
    assert world.exchange(message())["requests"] == []


def test_the_first_answer_is_kept_and_a_second_one_changes_nothing(world: SiteWorld):
    request_id = world.write()
    answer = {"id": request_id.partition("/")[2], "status": 200, "body": "b25l"}
    world.exchange(message(answer))
    first = world.services.store.get(SiteAnswer, request_id)
    world.exchange(message({**answer, "body": "dHdv"}))
    assert world.services.store.get(SiteAnswer, request_id) == first
    request = world.services.store.get(SiteRequest, request_id)
    assert request is not None
    assert (request.answered_at is not None, request.sealed) == (True, None)
    world.exchange(message({**answer, "id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}))  # of no request


def test_it_notes_contact_version_and_allow_list_and_writes_seldom(world: SiteWorld):
    for _ in range(11):
        world.exchange(message())
        world.clock.advance(60)
    site = world.services.store.get(Site, world.site.id)
    assert site is not None
    assert (site.connector_version, site.allowed, site.version) == ("1", ("GET /things/*",), 3)


@pytest.mark.parametrize("point", DIED)
def test_the_connector_dies_at_each_point_and_every_request_ends(world: SiteWorld, point: str, soaking: bool):
    for number in range(1, 9 if soaking else 4):
        world.host.things.clear()
        count = 0

        def kill(here: str, number: int = number) -> None:
            nonlocal count
            count += here == point
            if here == point and count == number:
                raise Killed

        world.kill = kill
        client, begin = world.client(), world.clock.now()
        for method in ("PUT", "GET", "DELETE"):
            for _ in range(5):
                try:
                    response = client.request(method, "/things/a", content=b"one" if method == "PUT" else None)
                    break
                except httpx.ConnectTimeout:
                    continue
            else:
                pytest.fail(f"{method} never ended")
            assert response.status_code == (404 if method == "DELETE" else 200)
        assert world.host.things == {}
        assert (world.clock.now() - begin).total_seconds() < 200
        world.clock.advance(300)


def test_stockyard_away_for_a_while_costs_a_back_off_and_no_answer(world: SiteWorld):
    world.pass_time(1.0)
    world.lost = True
    for _ in range(40):
        world.pass_time(5.0)
    world.lost = False
    for _ in range(70):
        world.pass_time(5.0)
    assert any("failure" in line for line in world.logs)
    assert world.logs[-1] == "well again"


def test_an_idle_exchange_reads_what_the_costs_say_and_a_month_is_within_its_goal(world: SiteWorld):
    world.exchange(message())
    listed, store = [], world.services.store

    class Counting:
        def __getattr__(self, name: str) -> Any:
            listed.append(name)
            return getattr(store, name)

    counted = replace(world.services, store=Counting())
    site = store.get(Site, world.site.id)
    assert site is not None
    exchange = Exchange(counted, world.secrets, site, no_turn, world.clock.advance)
    assert exchange.answer(replace(NOTHING, allowed=site.allowed)) == ([], 60)
    assert len(listed) + 1 == site_cost.SITE_READS, listed  # the route reads the site itself
    assert sum(site_cost.idle_site().values()) <= site_cost.SITE_GOAL == 0.10
