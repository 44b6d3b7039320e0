"""Many callers at once: one key, one name, one record."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from local.serving import Answer, Served

pytestmark = pytest.mark.timeout(1800)

CLIENTS = 16

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def racers(soaking: bool) -> int:
    """How many callers start at once."""
    return 50 if soaking else 16


def at_once(count: int, work: Callable[[int], Answer]) -> list[Answer]:
    """The answers of ``count`` callers that start together."""
    gate = threading.Barrier(count)

    def one(number: int) -> Answer:
        gate.wait(120)
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def named(served: Served, name: str) -> list[dict[str, Any]]:
    items = served.call("GET", "/v1/clusters?page_size=200").body["items"]
    return [one for one in items if one["name"] == name]


KEY = {"Idempotency-Key": "race-one-key"}


@pytest.fixture(scope="module")
def by_one_key(
    served: Served, body: Callable[..., dict[str, Any]], remove: Callable[[str], dict[str, Any]], racers: int
) -> Iterator[list[Answer]]:
    """The answers to creations with one key; what they made is removed in the end."""
    wanted = body(name="one-key")
    yield at_once(racers, lambda _: served.call("POST", "/v1/clusters", wanted, headers=KEY))
    for one in named(served, "one-key"):
        assert remove(one["id"])["status"] == "succeeded"


def test_one_key_makes_one_cluster(
    served: Served,
    body: Callable[..., dict[str, Any]],
    by_one_key: list[Answer],
    racers: int,
    record_property: Record,
) -> None:
    clusters = {one["id"] for one in named(served, "one-key")}
    statuses = Counter(str(answer.status) for answer in by_one_key)
    record_property("figure:races_key", {"callers": racers, "clusters": len(clusters), "statuses": dict(statuses)})
    made = [answer for answer in by_one_key if answer.status == 202]
    others = [answer for answer in by_one_key if answer.status != 202]
    assert made
    assert {answer.body["id"] for answer in made} == clusters
    assert len(clusters) == 1
    assert all(answer.body == made[0].body for answer in made)
    assert {(a.status, a.body["error_type"]) for a in others} <= {(409, "RequestInProgress")}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in others)
    again = served.call("POST", "/v1/clusters", body(name="one-key"), headers=KEY)
    assert (again.status, again.body) == (202, made[0].body)
    other = served.call("POST", "/v1/clusters", body(name="another"), headers=KEY)
    assert (other.status, other.body["error_type"]) == (422, "IdempotencyConflict")


def test_one_name_makes_one_cluster(
    served: Served,
    body: Callable[..., dict[str, Any]],
    remove: Callable[[str], dict[str, Any]],
    racers: int,
    record_property: Record,
) -> None:
    wanted = body(name="one-name")
    answers = at_once(racers, lambda _: served.call("POST", "/v1/clusters", wanted))
    clusters = [one["id"] for one in named(served, "one-name")]
    statuses = Counter(str(answer.status) for answer in answers)
    record_property("figure:races_name", {"callers": racers, "clusters": len(clusters), "statuses": dict(statuses)})
    outcomes = Counter((answer.status, answer.body.get("error_type")) for answer in answers)
    assert outcomes == {(202, None): 1, (409, "ClusterNameInUse"): racers - 1}
    (made,) = [answer.body["id"] for answer in answers if answer.status == 202]
    assert clusters == [made]
    assert remove(made)["status"] == "succeeded"


KINDS = (("description",), ("tags",), ("description", "tags"))
"""What a change may change; the history names it."""


@dataclass
class Changes:
    """What the clients did: statuses of their answers, and by version what was accepted."""

    statuses: Counter[int] = field(default_factory=Counter)
    accepted: dict[int, dict[str, Any]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, wanted: dict[str, Any], answer: Answer) -> None:
        """One answer to a change to ``wanted``."""
        with self.lock:
            self.statuses[answer.status] += 1
            if answer.status == 200:
                assert {name: answer.body[name] for name in wanted} == wanted
                assert answer.body["version"] not in self.accepted, "two changes got one version"
                self.accepted[answer.body["version"]] = wanted


def change_at_once(served: Served, path: str, tag: str, total: int, seed: int) -> Changes:
    """``total`` PATCHes by all clients together, each with the ETag that it has read last."""
    changes, turns = Changes(), iter(range(total))

    def client(number: int) -> None:
        chance, known = random.Random(f"{seed}-{number}"), tag
        while True:
            with changes.lock:
                turn = next(turns, None)
            if turn is None:
                return
            values: dict[str, Any] = {"description": f"change {turn}", "tags": {"change": str(turn)}}
            wanted = {name: values[name] for name in chance.choice(KINDS)}
            answer = served.call("PATCH", path, wanted, headers={"If-Match": known})
            changes.note(wanted, answer)
            # A caller that was refused reads again; one that was not has read its own answer.
            if answer.status == 200 and chance.random() < 0.5:
                known = answer.headers["etag"]
            else:
                known = served.call("GET", path).headers["etag"]

    with ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(client, number) for number in range(CLIENTS)]:
            done.result()
    return changes


def listed(served: Served, kind: str, subject: str) -> list[dict[str, Any]]:
    """All events or audit records of a thing, page by page."""
    found: list[dict[str, Any]] = []
    token: str | None = ""
    while token is not None:
        more = f"&page_token={token}" if token else ""
        page = served.call("GET", f"/v1/{kind}?subject={subject}&page_size=200{more}").body
        found += page["items"]
        token = page["next_page_token"]
    return found


def test_no_change_is_lost(
    served: Served, by_one_key: list[Answer], soaking: bool, seed: int, record_property: Record
) -> None:
    total = 1000 if soaking else 64
    created = next(answer.body for answer in by_one_key if answer.status == 202)
    assert served.operation(created["operation_id"])["status"] == "succeeded"
    path = f"/v1/clusters/{created['id']}"
    first = served.call("GET", path)
    before = len(listed(served, "events", created["id"]))
    changes = change_at_once(served, path, first.headers["etag"], total, seed)
    last = served.call("GET", path).body
    history = listed(served, "events", created["id"])[before:]
    audit = [one for one in listed(served, "audit", created["id"]) if one["action"] == "ChangeCluster"]
    done = [one for one in audit if one["outcome"] == "done"]
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
    for name in ("description", "tags"):
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
