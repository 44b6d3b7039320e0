"""A caller that follows the events by the last id gets every event once and in order, also under parallel writes."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")
WRITERS, CLAIMS = 4, 3
FIRST = "evt_" + "0" * 26
LONGEST = 60


def test_a_follower_gets_every_event_once_and_in_order(api):
    headers = {"Authorization": f"Bearer {api.token('following', *ROLES)}"}
    written = threading.Event()

    def write(writer):
        for number in range(CLAIMS):
            name = f"c{writer}-{number}"
            manifest = {"apiVersion": "management.loft.sh/v1", "kind": "NodeClaim", "metadata": {"name": name}}
            answer = api.send("POST", "/v1/apply", headers, {**manifest, "spec": {"desiredCapacity": {"cpu": "1"}}})
            assert answer.status_code < 300, answer.text
            assert api.send("DELETE", f"/v1/node-claims/{name}", headers).status_code == 202

    def listed(after):
        answer = api.send("GET", f"/v1/events?page_size=200&after={after}", headers)
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    def all_events():
        events, token = [], ""
        while token is not None:
            query = f"&page_token={token}" if token else ""
            page = api.send("GET", f"/v1/events?page_size=200{query}", headers).json()
            events, token = [*events, *page["items"]], page["next_page_token"]
        return events

    def follow():
        events, after, ends = [], FIRST, time.monotonic() + LONGEST
        while not written.is_set() or len(events) < len(all_events()):
            events.extend(listed(after))
            after = events[-1]["id"] if events else after
            written.wait(0.2)
            assert time.monotonic() < ends, "the follower did not get all events in time"
        return events

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        following = pool.submit(follow)
        for writing in [pool.submit(write, writer) for writer in range(WRITERS)]:
            writing.result()
        written.set()
        followed = following.result()
    assert [event["id"] for event in followed] == [event["id"] for event in all_events()]
    assert len(followed) >= WRITERS * CLAIMS * 2
    sequences = defaultdict(list)
    for event in followed:
        sequences[event["subject"]].append(event["sequence"])
    assert all(numbers == sorted(numbers) for numbers in sequences.values())


def test_a_new_event_is_listed_at_once_and_given_to_followers_a_little_later(api):
    headers = {"Authorization": f"Bearer {api.token('settling', *ROLES)}"}
    manifest = {"apiVersion": "management.loft.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"}, "spec": {}}
    assert api.send("POST", "/v1/apply", headers, manifest).status_code < 300
    assert api.send("GET", "/v1/events", headers).json()["items"]
    assert api.send("GET", f"/v1/events?after={FIRST}", headers).json()["items"] == []
    assert api.send("DELETE", "/v1/node-claims/c", headers).status_code == 202
