"""Followers get everything once: through lost answers, throttling, pages, and APIs that cannot wait."""

from __future__ import annotations

import json
import random

import httpx
import pytest

from stockyard_client import ApiError, Client, ConnectionFailed
from stockyard_client.following import PATIENCE_SECONDS, QUIET_PAUSE, QUIET_SECONDS

URL = "https://api.test"


def event(number):
    return {"id": f"evt_{number:026}", "subject": "clu_01", "sequence": number, "reason": "PhaseDone", "message": "m"}


class EventApi:
    """Events on a fake transport. ``trouble`` is raised, or answered, in turn before each good answer."""

    def __init__(self, clock, *, waits=True, old=False, page=200):
        self.clock, self.waits, self.old, self.page = clock, waits, old, page
        self.events, self.requests, self.trouble = [], [], []
        self.due = {}
        """Events by the time at which they come."""

    def handle(self, request):
        query = dict(request.url.params)
        self.requests.append((self.clock.time, query))
        names = {"after", "page_size", "page_token", "subject"} | (set() if self.old else {"wait", "order", "since"})
        for name in query.keys() - names:
            return problem(422, "InvalidInput", f"There is no query parameter '{name}' here.")
        if self.trouble:
            answer = self.trouble.pop(0)
            if isinstance(answer, Exception):
                raise answer
            if answer is not None:
                return answer
        answer = self._old(query) if self.old else self._answer(query)
        if self.lost_answers and self.chance.random() < 0.3:
            # the API has done its work, and nobody hears of it
            raise httpx.ReadError("connection reset")
        return answer

    lost_answers = False
    chance = random.Random(3)

    def _come(self):
        for moment in sorted(self.due):
            if moment <= self.clock.time:
                self.events += self.due.pop(moment)

    def _answer(self, query):
        self._come()
        if query.get("order") == "desc":
            return self._page(self.events[::-1][: int(query["page_size"])], len(self.events))
        index = int(query.get("after", "c0~")[1:-1])
        end = self.clock.time + int(query.get("wait", 0)) * self.waits
        while len(self.events) == index and self.clock.time < end:
            self.clock.time += 1
            self._come()
        items = self.events[index : index + self.page]
        headers = {} if self.waits or items else {"Retry-After": "5"}
        return self._page(items, index + len(items), headers)

    def _page(self, items, index, headers=None):
        body = {"items": items, "next_page_token": None, "cursor": f"c{index}~"}
        return httpx.Response(200, json=body, headers=headers)

    def _old(self, query):
        self._come()
        behind = [entry for entry in self.events if entry["id"] > query.get("after", "")]
        start = int(query.get("page_token", 0))
        items = behind[start : start + self.page]
        token = str(start + self.page) if start + self.page < len(behind) else None
        return httpx.Response(200, json={"items": items, "next_page_token": token})


def problem(status, error_type, detail, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {"status": status, "error_type": error_type, "detail": detail, "retryable": status in (429, 503)}
    return httpx.Response(
        status, content=json.dumps(body).encode(), headers={"Content-Type": "application/json", **named}
    )


@pytest.fixture
def following(clock):
    def make(**options):
        api = EventApi(clock, **options)
        transport = httpx.MockTransport(api.handle)
        return api, Client(URL, "t", transport=transport, sleep=clock.sleep, clock=clock)

    return make


def first_sequences(iterator, count):
    return [next(iterator).sequence for _ in range(count)]


def test_a_follower_begins_now_and_is_told_of_each_event_once(following):
    api, client = following()
    api.events = [event(1), event(2)]
    api.due = {5: [event(3)], 6: [event(4), event(5)], 60: [event(6)]}
    assert first_sequences(client.events.follow(), 4) == [3, 4, 5, 6]


def test_it_begins_with_the_newest_or_since_a_time_or_after_a_cursor(following):
    api, client = following()
    api.events = [event(number) for number in range(1, 6)]
    assert first_sequences(client.events.follow(newest=2), 2) == [4, 5]
    assert first_sequences(client.events.follow(since="2026-01-01T00:00:00Z"), 5) == [1, 2, 3, 4, 5]
    assert first_sequences(client.events.follow(after="c3~"), 2) == [4, 5]


def test_a_quiet_minute_costs_three_requests(following, clock):
    api, client = following()
    feed = client.events.feed()
    while clock.time < 60:
        assert feed.poll() == []
    assert len(api.requests) == 1 + 3


def test_a_long_quiet_follower_lets_no_request_wait_and_asks_seldom(following, clock):
    api, client = following()
    api.due = {QUIET_SECONDS + 500: [event(1)], QUIET_SECONDS + 520: [event(2)]}
    feed = client.events.feed()
    while clock.time < QUIET_SECONDS + 400:
        feed.poll()
    late = [query for moment, query in api.requests if moment > QUIET_SECONDS + 30]
    assert all("wait" not in query for query in late)
    assert len(late) <= 370 / QUIET_PAUSE + 1
    items = []
    while not items:
        items = feed.poll()
    assert clock.time <= QUIET_SECONDS + 500 + QUIET_PAUSE
    while not feed.poll():
        pass
    assert clock.time <= QUIET_SECONDS + 522


@pytest.mark.parametrize("options", [{}, {"page": 2}, {"waits": False}, {"old": True}, {"old": True, "page": 2}])
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_missed_or_repeated_whatever_happens(following, clock, options, seed):
    api, client = following(**options)
    chance = random.Random(seed)
    count, moment = 40, 0.0
    for number in range(1, count + 1):
        moment += chance.choice((0, 0.1, 3, 25))
        api.due.setdefault(moment, []).append(event(number))
    faults = (
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        httpx.ReadTimeout("slow"),
        problem(429, "Throttled", "Too many.", Retry_After="3"),
        httpx.Response(503, json={"message": "Service Unavailable"}),
        httpx.Response(502, text="bad gateway"),
    )
    api.trouble = [chance.choice((*[None] * 6, *faults)) for _ in range(40)]
    api.lost_answers, api.chance = True, random.Random(seed)
    sequences = []
    events = client.events.follow(after=f"evt_{'0' * 26}" if options.get("old") else "c0~")
    while len(sequences) < count:
        sequences.append(next(events).sequence)
    assert sequences == list(range(1, count + 1))


def test_retry_after_is_kept_to_and_trouble_is_told(following, clock):
    api, client = following()
    api.trouble = [None, problem(429, "Throttled", "Too many.", Retry_After="7")]
    api.due = {1: [event(1)]}
    troubles = []
    events = client.events.follow(on_trouble=lambda error, seconds: troubles.append((str(error), seconds)))
    assert first_sequences(events, 1) == [1]
    assert troubles == [("429 Throttled: Too many.", 7.0)]
    assert 7.0 in clock.slept


def test_an_api_that_is_gone_for_good_ends_it(following, clock):
    api, client = following()
    api.trouble = [None, *[httpx.ConnectError("refused")] * 100]
    with pytest.raises(ConnectionFailed):
        first_sequences(client.events.follow(), 1)
    assert PATIENCE_SECONDS < clock.time < PATIENCE_SECONDS + 60


def test_a_refusal_ends_it_at_once(following, clock):
    api, client = following()
    api.trouble = [problem(403, "Forbidden", "No.")]
    with pytest.raises(ApiError, match="Forbidden"):
        first_sequences(client.events.follow(), 1)
    assert clock.slept == []


def test_where_too_many_wait_already_it_asks_as_often_as_it_is_told(following, clock):
    api, client = following(waits=False)
    feed = client.events.feed()
    while clock.time < 60:
        feed.poll()
    assert len(api.requests) <= 12


class ClusterApi:
    """One cluster, whose versions come at given times."""

    def __init__(self, clock, versions, *, waits=True, gone_at=None):
        self.clock, self.versions, self.waits, self.gone_at, self.requests = clock, versions, waits, gone_at, []

    def handle(self, request):
        wait = request.url.params.get("wait")
        self.requests.append(wait)
        if wait and not self.waits:
            return problem(422, "InvalidInput", "There is no query parameter 'wait' here.")
        etag, end = request.headers.get("If-None-Match"), self.clock.time + int(wait or 0)
        while True:
            if self.gone_at is not None and self.clock.time >= self.gone_at:
                return problem(404, "NotFound", "There is no cluster demo.")
            version = max(number for moment, number in self.versions.items() if moment <= self.clock.time)
            if f'"{version}"' != etag:
                body = {"id": "clu_01", "name": "demo", "status": "ready", "version": version}
                return httpx.Response(200, json=body, headers={"ETag": f'"{version}"'})
            if self.clock.time >= end:
                return httpx.Response(304, headers={"ETag": etag})
            self.clock.time += 1


@pytest.mark.parametrize("waits", [True, False])
def test_a_resource_is_watched_until_it_is_gone(clock, waits):
    api = ClusterApi(clock, {0: 1, 10: 2, 100: 3}, waits=waits, gone_at=150)
    with Client(URL, "t", transport=httpx.MockTransport(api.handle), sleep=clock.sleep, clock=clock) as client:
        versions = []
        with pytest.raises(ApiError, match="NotFound"):
            versions.extend(record.version for record in client.clusters.watch("demo"))
    assert versions == [1, 2, 3]
    assert clock.time < 150 + 16
    assert len(api.requests) < (14 if waits else 40)


def test_an_operation_is_waited_for_by_few_requests(clock, operation_document):
    requests = []

    def handle(request):
        requests.append(dict(request.url.params))
        wait = int(request.url.params.get("wait", 0))
        if clock.time + wait < 90:
            clock.time += wait
            if wait:
                return httpx.Response(304, headers={"ETag": '"1"'})
            return httpx.Response(200, json=operation_document(), headers={"ETag": '"1"'})
        clock.time = max(clock.time, 90)
        document = operation_document("succeeded", "succeeded", "succeeded", "succeeded", version=2)
        return httpx.Response(200, json=document, headers={"ETag": '"2"'})

    with Client(URL, "t", transport=httpx.MockTransport(handle), sleep=clock.sleep, clock=clock) as client:
        assert client.wait_operation("op_01", timeout=600).status == "succeeded"
    assert (len(requests), clock.time) == (6, 90)
