"""Who follows the events by the last id misses none, however many are written at once, and gets them in order."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")
WRITERS, CLAIMS = 4, 6
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
        found, token = [], ""
        while token is not None:
            query = f"&page_token={token}" if token else ""
            page = api.send("GET", f"/v1/events?page_size=200{query}", headers).json()
            found, token = [*found, *page["items"]], page["next_page_token"]
        return found

    def follow():
        found, after, ends = [], FIRST, time.monotonic() + LONGEST
        while not written.is_set() or len(found) < len(all_events()):
            found.extend(listed(after))
            after = found[-1]["id"] if found else after
            assert time.monotonic() < ends, "the follower comes to no end"
        return found

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        following = pool.submit(follow)
        for writing in [pool.submit(write, writer) for writer in range(WRITERS)]:
            writing.result()
        written.set()
        found = following.result()
    assert [one["id"] for one in found] == [one["id"] for one in all_events()]
    assert len(found) >= WRITERS * CLAIMS * 2
    sequences = defaultdict(list)
    for one in found:
        sequences[one["subject"]].append(one["sequence"])
    assert all(numbers == sorted(numbers) for numbers in sequences.values())


def test_what_has_just_happened_is_told_by_a_list_at_once_and_to_followers_a_little_later(api):
    headers = {"Authorization": f"Bearer {api.token('settling', *ROLES)}"}
    manifest = {"apiVersion": "management.loft.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"}, "spec": {}}
    assert api.send("POST", "/v1/apply", headers, manifest).status_code < 300
    assert api.send("GET", "/v1/events", headers).json()["items"]
    assert api.send("GET", f"/v1/events?after={FIRST}", headers).json()["items"] == []
    assert api.send("DELETE", "/v1/node-claims/c", headers).status_code == 202
