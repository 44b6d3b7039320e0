"""Harm that one tenant can do to another: tenant A does its worst for minutes, tenant B goes on working.

A served local cloud with the stage's rate limits. Tenant A (acme) has a cluster whose users may create pods, an EC2
provider of all types, and ``--claims`` claims that nothing fits; its people ask for plans, simulations, profiles and
manifests as heavy as they may be (``attacks``), all at once, for ``--seconds``. Somebody without a token sends
``--anonymous`` requests meanwhile. Tenant B (globex) asks for a node of its own simulated provider every ``PAUSE``
seconds, deletes it after ``LIFE_SECONDS``, reads its things, and has a cluster over which passes are due again and
again; first alone (``--quiet`` seconds), then beside A.

In Lambda each request has a process of its own with a share of a core that nobody else has. Here two cores are all, so
the processes of functions that work for A have the first core, and all others the last (``local serve --apart``). What
A's processes used of their core is measured: with less than ``LEAST_SHARE`` of it nothing was shown, and the run is
refused. Each attack is made alone for some seconds before, and listed with the share of the core that it took.

    python -m benchmarks.hostile [--seconds N] [--quiet N] [--alone N] [--claims N] [--anonymous N]

Prints one JSON line: of B for ``quiet`` and ``hostile`` and their ``ratio`` the p95 from a claim's request to its place
(``bound_p95_seconds``) and of its reads (``api_p95_seconds``); by how much the latest pass over B's cluster was late
(``late_seconds``), the answers of 5xx to anybody, and the attacks. Exit 1 when a limit is missed, 2 when it is refused.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.claims import catalogue, offers
from benchmarks.hostility.attacks import Target, attacks
from benchmarks.hostility.victim import INTERVAL_SECONDS, Victim, accepted, claim_manifest, patient
from benchmarks.node_claims import raise_quota
from local.testing.example import example_body
from local.testing.serving import Answer, Served, http, serve
from stockyard.domain.models.nodes.node_fields import MAX_VALUES, MAX_VALUES_TOGETHER
from stockyard.domain.values.requirements import INSTANCE_TYPE, NODE_TYPE, Requirements
from stockyard.scheduling.explain import explain
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability, SchedulingRequest

BOUND_RATIO, API_RATIO = 1.5, 2.0
LEAST_SECONDS = 0.1
"""Times below it are taken for it: a ratio of some milliseconds says nothing."""
LEAST_SHARE = 0.8
PACE = 0.25
"""Seconds between two requests of a thread at least: cheap refusals would measure the local gateway, which one process
is for all."""
SERVER_FAULT = 500
EXPLAIN_CPU_MS, RUNS = 20.0, 5
THREADS = 2
"""Of each attack."""
FLOOD_SECONDS = 3.0
PROVIDER = {
    "name": "everything",
    "kind": "ec2",
    "spec": {"cloudAccount": 1, "region": "us-east-1", "capacityTypes": ["on-demand", "spot"], "instanceTypes": ["*"]},
}


def shapes() -> dict[str, list[dict[str, Any]]]:
    """Requirements with as many values as a claim may have, in the shapes that an explanation could be slow with."""
    invented = [f"m{number}.large" for number in range(MAX_VALUES)]
    real = [offer.name for offer in offers()][:MAX_VALUES]
    keys, each = 50, MAX_VALUES_TOGETHER // 50

    def without(**values: Sequence[str]) -> list[dict[str, Any]]:
        labels = {"type": INSTANCE_TYPE, "name": NODE_TYPE}
        return [{"key": labels[key], "operator": "NotIn", "values": list(listed)} for key, listed in values.items()]

    return {
        "types that are none": without(type=invented, name=invented),
        "types that are there": without(type=real, name=real),
        "names of node types": without(type=invented, name=[f"everything.{name}" for name in real]),
        "many keys": [
            {"key": f"example.com/k{key}", "operator": "NotIn", "values": [f"v{n}" for n in range(each)]}
            for key in range(keys)
        ],
    }


def explain_cpu_ms() -> float:
    """The CPU time of the explanation of the worst of A's claims against every EC2 type, in milliseconds."""
    real_types = offers()
    index = Index.build(catalogue(real_types, len(real_types), random.Random(1)))
    figures = []
    for requirements in shapes().values():
        request = SchedulingRequest(Requirements.of(requirements), {"cpu": 10**15})
        seconds = []
        for _ in range(RUNS):
            began = time.process_time()
            explain(index, request, Availability())
            seconds.append(time.process_time() - began)
        figures.append(round(statistics.median(seconds) * 1000, 1))
    return max(figures)


# --- tenant A -------------------------------------------------------------------------------------------------------


def prepared(served: Served, claims: int) -> Target:
    """Prepare the possessions of A: a provider of all types, claims that nothing fits, and a cluster with a pool for
    its pods."""
    accepted(patient(served, "POST", "/v1/node-providers", PROVIDER))
    wishes = list(shapes().values())
    raise_quota(served, claims + 10)
    body = {**example_body(), "name": "evil"}
    cluster = accepted(served.call("POST", "/v1/clusters", body))
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda number: patient(
                    served, "POST", "/v1/apply", [claim_manifest(f"evil-{number}", "1P", wishes[number % len(wishes)])]
                ),
                range(claims),
            )
        )
    if served.operation(cluster["operation_id"])["status"] != "succeeded":
        raise AssertionError("the cluster of A was not made")
    path = f"/v1/clusters/{cluster['id']}"
    accepted(patient(served, "POST", f"{path}/pools", {"name": "burst", "provider": "everything"}))
    client = accepted(patient(served, "GET", f"{path}/client-secret"))
    return Target(served, cluster["id"], (client["client_id"], client["client_secret"]))


@dataclass(slots=True)
class Attack:
    """Outcome of one attack: answers by status, and the share of A's core that it took alone."""

    statuses: Counter[int] = field(default_factory=Counter)
    alone: float = 0.0

    @property
    def view(self) -> dict[str, Any]:
        """As it is printed."""
        return {"core": round(self.alone, 2), "answers": dict(sorted(self.statuses.items()))}


@contextmanager
def attacking(target: Target, makers: Mapping[str, Callable[[Target], Answer]], results: Mapping[str, Attack]) -> Any:
    """Make these attacks at full power meanwhile."""
    over = threading.Event()

    def again(name: str) -> None:
        while not over.is_set():
            began = time.monotonic()
            try:
                status = makers[name](target).status
            except OSError:  # a connection that was cut is no answer of ours
                status = 0
            results[name].statuses[status] += 1
            over.wait(max(0.0, began + PACE - time.monotonic()))

    threads = [threading.Thread(target=again, args=(name,)) for name in makers for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


class CoreMeter:
    """CPU seconds of the processes that may run on one core alone. Processes that end between two looks are counted as
    far as they were seen."""

    def __init__(self, core: int) -> None:
        self._core, self._seconds = core, dict[int, float]()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def total(self) -> float:
        """CPU seconds so far."""
        self._look()
        return sum(self._seconds.values())

    def close(self) -> None:
        """Stop looking."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            self._look()

    def _look(self) -> None:
        tick = os.sysconf("SC_CLK_TCK")
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                pid = int(folder.name)
                if os.sched_getaffinity(pid) == {self._core}:
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                    self._seconds[pid] = (int(fields[11]) + int(fields[12])) / tick


def flood(served: Served, count: int, over: threading.Event) -> None:
    """Requests without a token, ``count`` in ``FLOOD_SECONDS``, once."""
    url = served.environment["STOCKYARD_URL"]
    paths = ("/v1/nothing", "/v1/health", "/v1/clusters/clu_0/bootstrap")
    with ThreadPoolExecutor(16) as pool:
        began = time.monotonic()
        for number in range(count):
            pool.submit(http, "GET", url + paths[number % len(paths)], None, {})
            over.wait(max(0.0, began + number * FLOOD_SECONDS / count - time.monotonic()))
            if over.is_set():
                pool.shutdown(cancel_futures=True)
                return


# --- the run --------------------------------------------------------------------------------------------------------


def ratio(quiet: Mapping[str, float], hostile: Mapping[str, float], name: str) -> float:
    """Ratio of the time beside A to the time alone."""
    return round(max(hostile[name], LEAST_SECONDS) / max(quiet[name], LEAST_SECONDS), 2)


def run(served: Served, options: argparse.Namespace, core: int) -> dict[str, Any]:
    """All figures."""
    victim, target = Victim(served), prepared(served, options.claims)
    meter, makers = CoreMeter(core), attacks()
    results = {name: Attack() for name in makers}
    quiet = victim.measured(options.quiet, "quiet")
    for name in makers:
        before, began = meter.total(), time.monotonic()
        with attacking(target, {name: makers[name]}, results):
            time.sleep(options.alone)
        results[name].alone = (meter.total() - before) / (time.monotonic() - began)
    over, before, began = threading.Event(), meter.total(), time.monotonic()
    flooding = threading.Thread(target=flood, args=(served, options.anonymous, over))
    with attacking(target, makers, results):
        flooding.start()
        hostile = victim.measured(options.seconds, "hostile")
        share = (meter.total() - before) / (time.monotonic() - began)
    over.set()
    flooding.join()
    meter.close()
    answers = sum((each.statuses for each in results.values()), victim.statuses)
    return {
        "quiet": quiet,
        "hostile": hostile,
        "ratio": {name: ratio(quiet, hostile, name) for name in ("bound_p95_seconds", "api_p95_seconds")},
        "answers_of_5xx": sum(amount for status, amount in answers.items() if status >= SERVER_FAULT),
        "victim_answers": dict(sorted(victim.statuses.items())),
        "core_share": round(share, 2),
        "attacks": {name: each.view for name, each in results.items()},
    }


def verdict(figures: Mapping[str, Any]) -> tuple[int, str]:
    """The exit code, and why."""
    if figures["core_share"] < LEAST_SHARE:
        return 2, f"refused: the attacks used {figures['core_share']:.0%} of their core, not {LEAST_SHARE:.0%}"
    faults = []
    if figures["ratio"]["bound_p95_seconds"] > BOUND_RATIO:
        faults.append("claims of B were bound later")
    if figures["ratio"]["api_p95_seconds"] > API_RATIO:
        faults.append("reads of B took longer")
    if figures["hostile"]["late_seconds"] > INTERVAL_SECONDS:
        faults.append("a pass over B's cluster was late")
    if figures["answers_of_5xx"]:
        faults.append("there were answers of 5xx")
    if figures["explain_cpu_ms"] > EXPLAIN_CPU_MS:
        faults.append("an explanation took long")
    return int(bool(faults)), "; ".join(faults) or "within all limits"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves a local cloud, measures B alone, then beside A."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile")
    parser.add_argument("--seconds", type=float, default=120, help="how long B works beside A")
    parser.add_argument("--quiet", type=float, default=120)
    parser.add_argument("--alone", type=float, default=6, help="seconds of each attack alone")
    parser.add_argument("--claims", type=int, default=200)
    parser.add_argument("--anonymous", type=int, default=600)
    options = parser.parse_args(arguments)
    cores = sorted(os.sched_getaffinity(0))
    explained = explain_cpu_ms()
    with tempfile.TemporaryDirectory(prefix="stockyard-bench-") as folder:
        served = serve(Path(folder) / "home", "--apart", "acme", "--apart", "evil")
        try:
            figures = run(served, options, cores[0])
        finally:
            served.stop()
    figures |= {"explain_cpu_ms": explained}
    code, text = verdict(figures)
    line = {"benchmark": "hostile", "seconds": options.seconds, "verdict": text, **figures}
    sys.stdout.write(json.dumps(line) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
