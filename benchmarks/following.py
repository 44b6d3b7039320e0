"""Cost of following, and delay until a follower knows: ``python -m benchmarks.following``.

Runs against the API of ``STOCKYARD_URL`` and ``STOCKYARD_TOKEN``, such as that of ``make serve``, while nobody else
uses it. Measured are the requests of a follower in quiet seconds; the time from the answer to a change until ``claim
list --watch``, in a process of its own, has written the line, 20 times; and whether a follower was told of each event
once while clusters were made and deleted.

Prints one JSON line. Exit 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, Queue
from statistics import median
from typing import Any

import httpx

from stockyard_client import ApiError, Client

ROOT = Path(__file__).resolve().parents[1]
MOST_REQUESTS_A_MINUTE = 4
MOST_MEDIAN_SECONDS, MOST_SECONDS = 2.0, 5.0
PATIENCE_SECONDS = 30.0
EXAMPLE = ROOT / "examples" / "aws-cluster.json"


class Counting(httpx.HTTPTransport):
    """Counts what is sent."""

    requests = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """See httpx."""
        self.requests += 1
        return super().handle_request(request)


def connect(transport: httpx.BaseTransport | None = None) -> Client:
    """A client of the API that the environment names."""
    return Client(os.environ["STOCKYARD_URL"], os.environ["STOCKYARD_TOKEN"], transport=transport)


def quiet_requests(seconds: float) -> int:
    """Number of requests that a follower sends while nothing happens, without the one that it begins with."""
    transport = Counting()
    with connect(transport) as client:
        feed = client.events.feed()
        while feed.cursor is None:
            feed.poll()
        transport.requests, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            feed.poll()
    return transport.requests


@contextmanager
def watched_lines() -> Iterator[Queue[tuple[float, dict[str, Any]]]]:
    """Lines of ``claim list --watch -o json``, with the time at which each line came."""
    command = [sys.executable, "-m", "stockyard_client", "claim", "list", "--watch", "-o", "json"]
    lines: Queue[tuple[float, dict[str, Any]]] = Queue()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        output = process.stdout or sys.stdin

        def read() -> None:
            for line in output:
                lines.put((time.monotonic(), json.loads(line)))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            yield lines
        finally:
            process.terminate()
            reader.join(5)


def change_delays(count: int, chance: random.Random) -> list[float]:
    """Seconds from the answer to a change of a claim until the line of it, for each of ``count`` changes."""
    name, delays = f"watched-{chance.randrange(10**6)}", []
    manifest = {"apiVersion": "management.loft.sh/v1", "kind": "NodeClaim", "metadata": {"name": name}}
    with connect() as client, watched_lines() as lines:
        client.manifests.apply([{**manifest, "spec": {"desiredCapacity": {"cpu": "1"}}}])
        _line_of(lines, name, None)
        for number in range(count):
            time.sleep(chance.uniform(0.5, 3))
            _patch(client, name, str(number))
            changed_at = time.monotonic()
            delays.append(_line_of(lines, name, str(number)) - changed_at)
        client.node_claims.delete(name)
    return delays


def _patch(client: Client, name: str, value: str) -> None:
    while True:
        try:
            client.node_claims.update(name, {"labels": {"number": value}})
        except ApiError as error:
            # the scheduler has looked at the claim in between
            if error.status != 412:
                raise
        else:
            return


def _line_of(lines: Queue[tuple[float, dict[str, Any]]], name: str, value: str | None) -> float:
    """Time of the line that shows the claim so; 30 seconds later when none does."""
    while True:
        try:
            moment, document = lines.get(timeout=PATIENCE_SECONDS)
        except Empty:
            return time.monotonic()
        if document["name"] == name and (value is None or document["labels"].get("number") == value):
            return moment


def events_of_clusters(count: int) -> tuple[int, int, int]:
    """(events, of them told twice, never told) while so many clusters are made and deleted."""
    followed: list[str] = []
    done = threading.Event()
    begin = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def follow() -> None:
        with connect() as client:
            feed = client.events.feed(since=begin)
            quiet = 0
            while quiet < 2:
                items = feed.poll()
                followed.extend(item["id"] for item in items)
                quiet = quiet + 1 if done.is_set() and not items else 0

    follower = threading.Thread(target=follow)
    follower.start()
    body = json.loads(EXAMPLE.read_text())
    with connect() as client:
        clusters = [client.clusters.create({**body, "name": f"followed-{number}"}) for number in range(count)]
        for cluster in clusters:
            client.wait_operation(cluster.operation_id or "", timeout=600)
        for operation in [client.clusters.delete(cluster.id) for cluster in clusters]:
            client.wait_operation(operation.id, timeout=600)
        done.set()
        follower.join(120)
        stored = {event.id for event in client.events.list(since=begin, page_size=200)}
    return len(stored), len(followed) - len(set(followed)), len(stored - set(followed))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints the figures, and checks the limits."""
    parser = argparse.ArgumentParser(prog="benchmarks.following", description="What following costs, and how soon")
    parser.add_argument("--quiet-seconds", type=int, default=60)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--clusters", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    requests = quiet_requests(options.quiet_seconds)
    delays = change_delays(options.changes, random.Random(options.seed))
    events, repeated, missed = events_of_clusters(options.clusters)
    most_requests = MOST_REQUESTS_A_MINUTE * max(1, options.quiet_seconds // 60)
    figures = {
        "benchmark": "following",
        "quiet_seconds": options.quiet_seconds,
        "quiet_requests": requests,
        "changes": len(delays),
        "delay_p50_seconds": round(median(delays), 2),
        "delay_max_seconds": round(max(delays), 2),
        "clusters": options.clusters,
        "events": events,
        "events_repeated": repeated,
        "events_missed": missed,
        "limits": {"quiet_requests": most_requests, "delay_p50": MOST_MEDIAN_SECONDS, "delay_max": MOST_SECONDS},
        "seed": options.seed,
    }
    print(json.dumps(figures))
    fast = median(delays) <= MOST_MEDIAN_SECONDS and max(delays) <= MOST_SECONDS
    return 0 if requests <= most_requests and fast and not repeated and not missed and events else 1


if __name__ == "__main__":
    sys.exit(main())
