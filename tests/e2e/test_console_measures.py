"""Figures of the console in a real browser: time to the first rows of a large fleet, memory under live events, and the
requests of an open page. Small counts by default, ten minutes of events and hours of pages in the soak; the figures
are printed with ``-s``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness import browser
from tests.harness.console.contract_api import ContractApi
from tests.harness.console.person import ConsolePerson

pytestmark = pytest.mark.timeout(2400)
CLUSTERS, CLAIMS = 500, 20_000
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
ROWS = "document.querySelectorAll('main [data-row]').length"
MEBIBYTE = 2**20


class Fleet:
    """A large fleet whose claims may change all the time: ``live`` events a second."""

    def __init__(self, api: ContractApi) -> None:
        self.api, self.live, self._number = api, 0.0, 0
        cluster, claim = api.example("GetCluster")[1], api.example("GetNodeClaim")[1]
        costs = {"as_of": cluster["updated_at"], "nodes": 40, "hour": 3.2, "month_rate": 2336.0, "spent": 900.0}
        self.clusters = [
            {**cluster, "id": f"clu_{n:04}", "name": f"cluster-{n:04}", "costs": {**costs, "complete": True}}
            for n in range(CLUSTERS)
        ]
        self.claims = [
            {**claim, "id": f"ncl_{n:05}", "name": f"claim-{n:05}", "cluster_id": f"clu_{n // 40:04}"}
            for n in range(CLAIMS)
        ]
        self._event = api.example("ListEvents")[1]["items"][0]
        api.answers = {
            "ListClusters": lambda query: self._page([] if "status" in query else self.clusters, query),
            "ListNodeClaims": lambda query: self._page(self.claims[:50] if "phase" in query else self.claims, query),
            "ListEvents": self._events,
        }

    @staticmethod
    def _page(items: list[Any], query: dict[str, str]) -> Any:
        first = int(query.get("page_token", "0"))
        last = first + int(query.get("page_size", "200"))
        return {"items": items[first:last], "next_page_token": str(last) if last < len(items) else None}

    def _events(self, query: dict[str, str]) -> Any:
        if not self.live or "after" not in query:
            if "wait" in query:
                time.sleep(min(float(query["wait"]), 5.0))
            return {"items": [], "next_page_token": None, "cursor": "evt_1~"}
        time.sleep(1.0)
        events = []
        for _ in range(round(self.live)):
            self._number += 1
            claim = self.claims[self._number % CLAIMS]
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
            subject = {"subject": claim["id"], "name": claim["name"], "cluster_id": claim["cluster_id"]}
            events.append(
                {**self._event, **subject, "id": f"evt_{self._number:08}", "time": stamp, "detail_type": "NodeClaim"}
            )
        return {"items": events, "next_page_token": None, "cursor": f"evt_{self._number}~"}


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    api = ContractApi()
    yield Fleet(api)
    api.close()


@pytest.fixture
def person(fleet: Fleet, tmp_path: Any) -> Iterator[ConsolePerson]:
    """Somebody at the fleet, in a browser of their own, with nothing in its cache."""
    path = browser.program()
    if path is None:
        pytest.skip(f"it needs a browser: {', '.join(browser.PROGRAMS)}")
    with browser.tab(path, tmp_path) as tab:
        someone = ConsolePerson(tab, fleet.api.url)
        tab.emulate()
        yield someone


def test_a_large_fleet_is_soon_there(person: ConsolePerson, fleet: Fleet, soaking: bool) -> None:
    """Others may work on the machine: the limits are those of a quiet one in the soak alone."""
    person.tab.open(f"{fleet.api.url}/console/")
    person.tab.wait_for(PAINT)
    paints = {"cold, to sign in": person.tab.evaluate(PAINT)}
    person.sign_in()
    person.tab.wait_for(ROWS)
    times = {}
    for path in ("", "claims", ""):
        person.tab.open(f"{fleet.api.url}/console/{path}")
        person.tab.wait_for(f"{ROWS} >= 200")
        # From the last address that the browser loaded: the silent login is behind it.
        times[path or "fleet"] = person.tab.evaluate("performance.now()")
        paints[path or "fleet"] = person.tab.evaluate(PAINT)
    print(f"\nfirst paint ms {paints}, first rows ms {times}")
    factor = 1 if soaking else 10
    assert max(paints.values()) < 1000 * factor
    assert max(times.values()) < 1500 * factor
    assert person.tab.evaluate(ROWS) <= 520, "a page of 200 as table and lines, and what stands beside it"


def test_memory_stays_small_under_live_events(person: ConsolePerson, fleet: Fleet, soaking: bool) -> None:
    person.sign_in()
    fleet.live = 20.0
    seconds, heaps = (600.0 if soaking else 6.0), list[float]()
    for path in ("claims", ""):
        person.go(path)
        person.tab.wait_for(ROWS)
        ends = time.monotonic() + seconds / 2
        while time.monotonic() < ends:
            time.sleep(min(5.0, seconds / 4))
            heaps.append(person.tab.evaluate("performance.memory.usedJSHeapSize") / MEBIBYTE)
    fleet.live = 0.0
    person.tab.call("HeapProfiler.collectGarbage")
    still = person.tab.evaluate("performance.memory.usedJSHeapSize") / MEBIBYTE
    print(f"\nheap MiB: most {max(heaps):.1f}, at the end {still:.1f}, after {seconds:.0f} s of 20 events a second")
    assert max(heaps) < 150
    assert still < 150


@pytest.mark.parametrize("live", [0.0, 5.0], ids=["quiet", "live"])
def test_an_open_page_asks_little(person: ConsolePerson, fleet: Fleet, soaking: bool, live: float) -> None:
    person.sign_in()
    person.tab.wait_for(ROWS)
    fleet.live = live
    time.sleep(1.0)
    seconds, before = (600.0 if soaking else 8.0), len(fleet.api.asked)
    time.sleep(seconds)
    fleet.live = 0.0
    requests = Counter(request.split("?")[0] for request in fleet.api.asked[before:])
    hourly = {path: round(count * 3600 / seconds) for path, count in sorted(requests.items())}
    print(f"\nrequests an hour of an open fleet, {live:g} events a second: {hourly}")
    # One waiting request at a time, each other read at most each fifteen seconds after the first minute.
    assert sum(requests.values()) - requests["GET /v1/events"] <= 20 + seconds / 4
