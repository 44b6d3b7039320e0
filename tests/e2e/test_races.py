"""Many callers at once: with one idempotency key, for one name, on one record."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from local.testing.serving import Answer, Served

pytestmark = pytest.mark.timeout(1800)

CLIENTS = 16

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def racers(soaking: bool) -> int:
    """The number of callers that start at once."""
    return 50 if soaking else 16


def at_once(count: int, work: Callable[[int], Answer]) -> list[Answer]:
    """The answers of ``count`` callers that start together."""
    gate = threading.Barrier(count)

    def wait_and_work(number: int) -> Answer:
        gate.wait(120)
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(wait_and_work, range(count)))


def named(served: Served, name: str) -> list[dict[str, Any]]:
    items = served.call("GET", "/v1/clusters?page_size=200").body["items"]
    return [cluster for cluster in items if cluster["name"] == name]


KEY = {"Idempotency-Key": "race-one-key"}


@pytest.fixture(scope="module")
def by_one_key(
    served: Served, body: Callable[..., dict[str, Any]], remove: Callable[[str], dict[str, Any]], racers: int
) -> Iterator[list[Answer]]:
    """The answers to creations with one idempotency key. The created cluster is deleted at the end."""
    request = body(name="one-key")
    yield at_once(racers, lambda _: served.call("POST", "/v1/clusters", request, headers=KEY))
    for cluster in named(served, "one-key"):
        assert remove(cluster["id"])["status"] == "succeeded"


def test_one_idempotency_key_creates_one_cluster(
    served: Served,
    body: Callable[..., dict[str, Any]],
    by_one_key: list[Answer],
    racers: int,
    record_property: Record,
) -> None:
    clusters = {cluster["id"] for cluster in named(served, "one-key")}
    statuses = Counter(str(answer.status) for answer in by_one_key)
    record_property("figure:races_key", {"callers": racers, "clusters": len(clusters), "statuses": dict(statuses)})
    accepted = [answer for answer in by_one_key if answer.status == 202]
    refused = [answer for answer in by_one_key if answer.status != 202]
    assert accepted
    assert {answer.body["id"] for answer in accepted} == clusters
    assert len(clusters) == 1
    assert all(answer.body == accepted[0].body for answer in accepted)
    assert {(a.status, a.body["error_type"]) for a in refused} <= {(409, "RequestInProgress")}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    again = served.call("POST", "/v1/clusters", body(name="one-key"), headers=KEY)
    assert (again.status, again.body) == (202, accepted[0].body)
    conflict = served.call("POST", "/v1/clusters", body(name="another"), headers=KEY)
    assert (conflict.status, conflict.body["error_type"]) == (422, "IdempotencyConflict")


def test_one_name_creates_one_cluster(
    served: Served,
    body: Callable[..., dict[str, Any]],
    remove: Callable[[str], dict[str, Any]],
    racers: int,
    record_property: Record,
) -> None:
    request = body(name="one-name")
    answers = at_once(racers, lambda _: served.call("POST", "/v1/clusters", request))
    clusters = [cluster["id"] for cluster in named(served, "one-name")]
    statuses = Counter(str(answer.status) for answer in answers)
    record_property("figure:races_name", {"callers": racers, "clusters": len(clusters), "statuses": dict(statuses)})
    outcomes = Counter((answer.status, answer.body.get("error_type")) for answer in answers)
    assert outcomes == {(202, None): 1, (409, "ClusterNameInUse"): racers - 1}
    (cluster_id,) = [answer.body["id"] for answer in answers if answer.status == 202]
    assert clusters == [cluster_id]
    assert remove(cluster_id)["status"] == "succeeded"


KINDS = (("description",),)
"""The fields that one change sets. The event of the change names them. Tags are left out: what stands in the cloud is
tagged by an operation then, which writes the record too."""


@dataclass
class Changes:
    """The results of the clients: the statuses of all answers, and the accepted changes by version."""

    statuses: Counter[int] = field(default_factory=Counter)
    accepted: dict[int, dict[str, Any]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, values: dict[str, Any], answer: Answer) -> None:
        """Records the answer to a change to ``values``."""
        with self.lock:
            self.statuses[answer.status] += 1
            if answer.status == 200:
                assert {name: answer.body[name] for name in values} == values
                assert answer.body["version"] not in self.accepted, "two changes got one version"
                self.accepted[answer.body["version"]] = values


def change_at_once(served: Served, path: str, tag: str, total: int, seed: int) -> Changes:
    """Sends ``total`` PATCH requests from all clients together, each with the ETag that its client read last."""
    changes, turns = Changes(), iter(range(total))

    def client(number: int) -> None:
        chance, etag = random.Random(f"{seed}-{number}"), tag
        while True:
            with changes.lock:
                turn = next(turns, None)
            if turn is None:
                return
            values: dict[str, Any] = {"description": f"change {turn}"}
            change = {name: values[name] for name in chance.choice(KINDS)}
            answer = served.call("PATCH", path, change, headers={"If-Match": etag})
            changes.note(change, answer)
            # A refused client reads again. An accepted client has the version in its answer, and reads only sometimes.
            if answer.status == 200 and chance.random() < 0.5:
                etag = answer.headers["etag"]
            else:
                etag = served.call("GET", path).headers["etag"]

    with ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(client, number) for number in range(CLIENTS)]:
            done.result()
    return changes


def listed(served: Served, kind: str, subject: str) -> list[dict[str, Any]]:
    """All events or audit records of a subject, read page by page."""
    items: list[dict[str, Any]] = []
    token: str | None = ""
    while token is not None:
        more = f"&page_token={token}" if token else ""
        page = served.call("GET", f"/v1/{kind}?subject={subject}&page_size=200{more}").body
        items += page["items"]
        token = page["next_page_token"]
    return items


STILL_SECONDS = 3
"""For so long nothing has been written when the changes begin."""


def is_still(served: Served, path: str) -> bool:
    before = served.call("GET", path).headers["etag"]
    time.sleep(STILL_SECONDS)
    return bool(served.call("GET", path).headers["etag"] == before)


def test_no_change_is_lost(
    served: Served, by_one_key: list[Answer], soaking: bool, seed: int, record_property: Record
) -> None:
    total = 1000 if soaking else 64
    created = next(answer.body for answer in by_one_key if answer.status == 202)
    assert served.operation(created["operation_id"])["status"] == "succeeded"
    path = f"/v1/clusters/{created['id']}"

    def pools_are_ready() -> bool:
        conditions = served.call("GET", path).body["conditions"]
        return any((each["type"], each["status"]) == ("PoolsReady", "True") for each in conditions)

    # What passes over its pools and its agent lead to is written before anybody changes it here.
    served.wait("the conditions of its pools", pools_are_ready, 60)
    served.wait("a record that nothing in the background changes", lambda: is_still(served, path), 60)
    first = served.call("GET", path)
    before = len(listed(served, "events", created["id"]))
    changes = change_at_once(served, path, first.headers["etag"], total, seed)
    last = served.call("GET", path).body
    history = listed(served, "events", created["id"])[before:]
    audit = [record for record in listed(served, "audit", created["id"]) if record["action"] == "ChangeCluster"]
    done = [record for record in audit if record["outcome"] == "done"]
    rise, accepted = last["version"] - first.body["version"], changes.accepted
    figure = {
        "clients": CLIENTS,
        "patches": total,
        "statuses": {str(status): count for status, count in sorted(changes.statuses.items())},
        "version_rise": rise,
        "in_history": len(history),
        "in_audit": len(done),
    }
    record_property("figure:races_etag", figure)
    assert set(changes.statuses) <= {200, 412}, changes.statuses
    assert sum(changes.statuses.values()) == total
    assert rise == changes.statuses[200] == len(accepted) > 0
    assert sorted(accepted) == list(range(first.body["version"] + 1, last["version"] + 1))
    for name in ("description",):
        final = next(
            (accepted[v][name] for v in sorted(accepted, reverse=True) if name in accepted[v]), first.body[name]
        )
        assert last[name] == final
    # Each accepted change is one event, in order and without a gap, and one audit record.
    assert {event["reason"] for event in history} == {"Changed"}
    assert [event["sequence"] for event in history] == list(range(before + 1, before + 1 + rise))
    messages = [f"Changed: {', '.join(accepted[version])}." for version in sorted(accepted)]
    assert [event["message"] for event in history] == messages
    assert len(done) == rise
