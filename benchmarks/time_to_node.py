"""Time from a need to the vendor's call, with the delays that AWS has: ``python -m benchmarks.time_to_node``.

In virtual time, the product's own handlers, adapters and documents run over a table, a bus, executions and a cloud in
this process (``benchmarks/virtual_time``); the table of delays is in ``docs/scale.md``. Four stories, each many times:

- ``pod``: a pod that no node takes, until the agent's post is received, the claim is written, it is bound, and EC2 is
  called for the machine (CreateFleet). The agent's own code follows the pods.
- ``claim``: a claim by the API, until the same call.
- ``spot``: a machine reads that its cloud takes it back, until the call for its replacement.
- ``delete``: DELETE of a claim whose node is not in the cluster, until the call that ends its machine
  (TerminateInstances), and until the claim is gone.

Each is played ``warm``, where every function has a process, and ``cold``, where none has.

    python -m benchmarks.time_to_node [--samples N] [--seed N] [--delay NAME=LOW-HIGH ...] [--stories pod ...]

Prints a table for people, then one JSON line. Exit 1 when a limit of ``LIMITS`` is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.virtual_time.cold_starts import COLD_SECONDS
from benchmarks.virtual_time.delays import DELAYS, Delays
from benchmarks.virtual_time.executions import Mark
from benchmarks.virtual_time.scene import Scene
from benchmarks.virtual_time.stage import Stage, deployed
from local.testing.fresh_wiring import fresh_wiring
from stockyard import wiring
from stockyard.adapters.dynamodb.keys import INSTALLATION
from stockyard.domain.records import Fact
from stockyard.ports import Put

TEMPLATE = Path(__file__).resolve().parents[1] / "local" / "dev_stage" / "Stockyard-dev.template.json"
HOPS: Mapping[str, Sequence[tuple[str, str]]] = {
    "pod": (
        ("posted", "invoked machines"),
        ("written", "claim created"),
        ("bound", "claim bound"),
        ("launch", "CreateFleet"),
    ),
    "claim": (
        ("received", "invoked node_claims"),
        ("written", "claim created"),
        ("bound", "claim bound"),
        ("launch", "CreateFleet"),
    ),
    "spot": (
        ("received", "invoked machines"),
        ("written", "claim created"),
        ("bound", "claim bound"),
        ("launch", "CreateFleet"),
    ),
    "delete": (("received", "invoked node_claims"), ("ended", "TerminateInstances"), ("gone", "claim gone")),
}
"""Parts of each story: their names, and the marks with which each ends."""
LIMITS: Mapping[tuple[str, str, int], float] = {
    ("pod", "warm", 50): 1.5,
    ("pod", "warm", 95): 3.0,
    ("pod", "cold", 95): 6.0,
    ("spot", "warm", 95): 2.0,
}
"""Seconds of a part of 100 (50 or 95) of a whole story."""
SETTLED, PATIENCE = 30.0, 300.0
"""Seconds of quiet before a story, and after which it counts as broken."""


def played(
    story: str, seed: int, switches: Sequence[str], there: Mapping[str, Any], *, cold: bool, fresh: bool = True
) -> dict[str, Any]:
    """One story: the seconds of its parts, what it has cost, and the launch templates of EC2 after it. ``there`` are
    those before: a cluster that grows has its pool's one."""
    stage = Stage(Delays.switched(seed, switches), COLD_SECONDS)
    stage.cloud.templates.update(there)
    template = json.loads(TEMPLATE.read_text(encoding="utf-8"))
    with deployed(stage, template, fresh=fresh):
        # One installation in all stories: another one's launch templates are not taken for ours.
        wiring.registry().platform().commit(Put(Fact(INSTALLATION, "0123456789abcdef0123", "")))
        scene = Scene(stage, spot=story == "spot")
        with patch.object(wiring, "attestor", scene.known_machine):
            scene.watch_pods()
            stage.time.run(lambda: False, SETTLED + stage.delays.between(0, 5))
            if cold:
                stage.freeze()
            # What the table, the cloud and the agent keep in this process is no garbage of a function's.
            gc.collect()
            gc.freeze()
            return _measured(story, stage, scene)


def _measured(story: str, stage: Stage, scene: Scene) -> dict[str, Any]:
    start, first = stage.time.now, len(stage.marks)
    counts, units = stage.counts.copy(), stage.units.copy()
    acts = {"claim": scene.new_claim, "delete": scene.delete_claim, "spot": scene.warn}
    stage.time.spawn(acts[story] if story in acts else lambda: scene.pod("new"))
    seconds, last = {}, start
    for part, name in HOPS[story]:
        mark = _await(stage, name, first, story)
        seconds[part], last = mark.moment - last, mark.moment
    cost = {**(stage.counts - counts), **{f"{kind} units": n - units[kind] for kind, n in stage.units.items()}}
    stage.time.run(lambda: False, SETTLED / 10)
    return {"seconds": {**seconds, "all": last - start}, "cost": cost, "templates": stage.cloud.templates}


def _await(stage: Stage, name: str, first: int, need: str) -> Mark:
    """The first mark of that name since the mark number ``first``."""

    def there() -> bool:
        return any(mark.name == name for mark in stage.marks[first:])

    if not stage.time.run(there, PATIENCE):
        raise AssertionError(f"{need}: no {name} within {PATIENCE} s")
    return next(mark for mark in stage.marks[first:] if mark.name == name)


def percentile(values: Sequence[float], part: int) -> float:
    """The nearest rank, rounded to milliseconds."""
    return round(sorted(values)[math.ceil(part / 100 * len(values)) - 1], 3)


def figures(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Percentiles of each part and of the whole, and what a run costs on average."""
    parts = {
        part: {f"p{rank}": percentile([run["seconds"][part] for run in runs], rank) for rank in (50, 95)}
        for part in runs[0]["seconds"]
    }
    names = sorted({name for run in runs for name in run["cost"]})
    cost = {name: round(sum(run["cost"].get(name, 0) for run in runs) / len(runs), 1) for name in names}
    return {"seconds": parts, "cost": cost}


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays the stories and prints the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.time_to_node")
    parser.add_argument("--samples", type=int, default=40, help="how often each story is played (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--delay", action="append", default=[], metavar="NAME=LOW-HIGH", help="of docs/scale.md, in ms")
    parser.add_argument("--stories", nargs="*", choices=tuple(HOPS), default=tuple(HOPS))
    options = parser.parse_args(arguments)
    # Between stories a process keeps its clients and catalogues: a warm one has served before, and what the first
    # request of a cold one takes for its clients is in ``COLD_SECONDS``.
    with fresh_wiring():
        results, missed = _all(options)
    line = {
        "benchmark": "time_to_node",
        "seed": options.seed,
        "samples": options.samples,
        "delays": {row.name: [row.low, row.high] for row in DELAYS} | {"switched": options.delay},
        **results,
        "missed": missed,
    }
    sys.stdout.write(json.dumps(line) + "\n")
    return 1 if missed else 0


def _all(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """The figures of all stories that were asked for, and the limits that they miss."""
    results: dict[str, Any] = {}
    for story in options.stories:
        # A story of which nothing counts: a process loads much only once.
        there = played(story, 0, options.delay, {}, cold=False, fresh=False)["templates"]
        for state in ("warm", "cold"):
            runs = [
                played(story, options.seed * 1000 + n, options.delay, there, cold=state == "cold", fresh=False)
                for n in range(options.samples)
            ]
            results[f"{story} {state}"] = figures(runs)
            sys.stdout.write(_line(f"{story} {state}", results[f"{story} {state}"]["seconds"]) + "\n")
    missed = [
        f"{story} {state}: p{rank} {results[f'{story} {state}']['seconds']['all'][f'p{rank}']} s, at most {limit}"
        for (story, state, rank), limit in LIMITS.items()
        if story in options.stories and results[f"{story} {state}"]["seconds"]["all"][f"p{rank}"] > limit
    ]
    return results, missed


def _line(title: str, seconds: Mapping[str, Mapping[str, float]]) -> str:
    parts = "".join(f"  {part} {each['p50']:.2f}/{each['p95']:.2f}" for part, each in seconds.items())
    return f"{title:<12}{parts}"


if __name__ == "__main__":
    sys.exit(main())
