"""Long polls as a caller meets them: 304, news within two seconds, cursors, the newest first, filters."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")
FIRST = "evt_" + "0" * 26


class Caller:
    """Somebody of a tenant, who sends requests and reads JSON."""

    def __init__(self, api, tenant):
        self.api, self.headers = api, {"Authorization": f"Bearer {api.token(tenant, *ROLES)}"}

    def get(self, path, **headers):
        return self.api.send("GET", path, {**self.headers, **headers})

    def items(self, path):
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    def claim(self, name):
        manifest = {"apiVersion": "management.loft.sh/v1", "kind": "NodeClaim", "metadata": {"name": name}}
        answer = self.api.send("POST", "/v1/apply", self.headers, {**manifest, "spec": {"desiredCapacity": {"cpu": 1}}})
        assert answer.status_code < 300, answer.text

    def delete(self, name):
        assert self.api.send("DELETE", f"/v1/node-claims/{name}", self.headers).status_code == 202

    def label(self, name, value):
        etag = self.get(f"/v1/node-claims/{name}").headers["etag"]
        answer = self.api.send(
            "PATCH", f"/v1/node-claims/{name}", {**self.headers, "If-Match": etag}, {"labels": {"x": value}}
        )
        return answer.status_code


def quiet(caller, path):
    """The tag of a resource that nothing changes any more."""
    before, current = "", caller.get(path).headers["etag"]
    while before != current:
        time.sleep(1.5)
        before, current = current, caller.get(path).headers["etag"]
    return current


def test_a_resource_that_is_known_is_304_and_news_of_it_comes_at_once(api):
    caller = Caller(api, "waiting")
    caller.claim("w")
    path = "/v1/node-claims/w"
    etag = quiet(caller, path)
    answer = caller.get(path, **{"If-None-Match": etag})
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag)
    started = time.monotonic()
    assert caller.get(f"{path}?wait=1", **{"If-None-Match": etag}).status_code == 304
    assert time.monotonic() - started >= 1
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(caller.get, f"{path}?wait=20", **{"If-None-Match": etag})
        time.sleep(0.5)
        started = time.monotonic()
        assert caller.label("w", "new") == 200
        answer = waiting.result()
    assert (answer.status_code, answer.json()["labels"]["x"]) == (200, "new")
    assert time.monotonic() - started < 5
    caller.delete("w")


def test_a_follower_by_cursors_is_told_everything_once_and_at_once(api):
    caller, writers = Caller(api, "cursors"), [Caller(api, "cursors") for _ in range(3)]
    written = threading.Event()

    def write(writer):
        for number in range(3):
            writers[writer].claim(f"c{writer}-{number}")
            writers[writer].delete(f"c{writer}-{number}")

    def follow():
        events, cursor, ends = [], FIRST, time.monotonic() + 60
        while not written.is_set() or len(events) < len(caller.items("/v1/events?page_size=200")):
            page = caller.get(f"/v1/events?after={cursor}&wait=2").json()
            events, cursor = [*events, *page["items"]], page["cursor"]
            assert page["next_page_token"] is None
            assert time.monotonic() < ends
        return events

    with ThreadPoolExecutor(4) as pool:
        following = pool.submit(follow)
        for writing in [pool.submit(write, writer) for writer in range(3)]:
            writing.result()
        written.set()
        events = following.result()
    listed = caller.items("/v1/events?page_size=200")
    assert sorted(event["id"] for event in events) == [event["id"] for event in listed]
    sequences = [
        [event["sequence"] for event in events if event["subject"] == s] for s in {e["subject"] for e in events}
    ]
    assert len(sequences) >= 9
    assert all(numbers == sorted(numbers) for numbers in sequences)


def test_the_newest_come_first_page_by_page_and_a_follower_goes_on_from_there(api):
    caller = Caller(api, "newest")
    for name in ("a", "b", "c"):
        caller.claim(name)
        caller.delete(name)
    listed = [event["id"] for event in caller.items("/v1/events?page_size=200")]
    pages, token = [], ""
    while token is not None:
        more = f"&page_token={token}" if token else ""
        page = caller.get(f"/v1/events?order=desc&page_size=2{more}").json()
        pages, token = [*pages, *(event["id"] for event in page["items"])], page["next_page_token"]
    assert pages[-len(listed) :] == listed[::-1]
    first = caller.get("/v1/events?order=desc&page_size=50").json()
    caller.claim("d")
    news = caller.get(f"/v1/events?after={first['cursor']}&wait=5").json()["items"]
    assert news
    assert {event["id"] for event in news}.isdisjoint(event["id"] for event in first["items"])
    token = caller.get("/v1/events?order=desc&page_size=1").json()["next_page_token"]
    assert caller.get(f"/v1/events?page_token={token}").status_code == 422
    caller.delete("d")


def test_lists_are_filtered(api):
    caller = Caller(api, "filters")
    caller.claim("f")
    subject = caller.get("/v1/node-claims/f").json()["id"]
    caller.delete("f")
    for path, field, values in (
        ("/v1/events?reason=DeletionRequested", "reason", {"DeletionRequested"}),
        ("/v1/events?detail_type=NodeClaim&order=desc", "detail_type", {"NodeClaim"}),
        (f"/v1/events?subject={subject}&order=desc", "subject", {subject}),
        (f"/v1/operations?subject={subject}", "subject", {subject}),
        ("/v1/operations?kind=create_node", "kind", {"create_node"}),
        ("/v1/audit?actor=user:somebody", "actor", set()),
        ("/v1/events?since=2099-01-01T00:00:00Z", "id", set()),
        ("/v1/node-claims?pool=none", "id", set()),
    ):
        assert {item[field] for item in caller.items(path)} == values, path
    assert caller.items("/v1/events?since=2020-01-01T00:00:00Z&order=desc")
    assert caller.items("/v1/node-types?phase=Unavailable") == []


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        ("/v1/cloud-accounts?provider=aws", "provider", "aws"),
        ("/v1/cloud-accounts?verification=verified", "verification", "verified"),
        ("/v1/node-providers?phase=Available", "phase", "Available"),
        ("/v1/node-types?phase=Available", "phase", "Available"),
    ],
)
def test_other_lists_have_what_a_filter_names_and_nothing_else(api, path, field, value):
    caller = Caller(api, "acme")
    name, _, filters = path.partition("?")
    query = f"{name}?page_size=200"
    everything, matching = caller.items(query), caller.items(f"{query}&{filters}")
    assert matching == [item for item in everything if item[field] == value]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/v1/events?order=up", "order must be one of asc, desc"),
        ("/v1/events?since=yesterday", "since is malformed"),
        ("/v1/events?reason=no-word", "reason is malformed"),
        ("/v1/clusters?phase=nope", "phase must be one of access, account, "),
        ("/v1/operations?status=done", "status must be one of queued, running"),
        (f"/v1/events?order=desc&after={FIRST}", "after goes on in order of time"),
        ("/v1/events?after=op_1", "after must be the cursor"),
        ("/v1/node-claims?reason=", "reason must have"),
        ("/v1/node-providers?phase=Gone", "phase must be one of"),
        ("/v1/clusters/x?wait=5", "wait needs If-None-Match"),
        ("/v1/operations?wait=5", "wait needs after"),
        ("/v1/operations?wait=x", "wait must be a whole number"),
        ("/v1/events?page_token=x", "page_token is not one"),
    ],
)
def test_what_a_list_cannot_do_is_refused_by_name(api, path, text):
    answer = Caller(api, "filters").get(path)
    assert answer.status_code == 422
    problem = answer.json()
    assert text in problem["detail"]
    name, _, detail = problem["detail"].partition(" ")
    assert [(fault["pointer"], fault["detail"]) for fault in problem["errors"]] == [(f"/{name}", detail)]
