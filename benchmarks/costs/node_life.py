"""One node's life: calls, transitions, units and money in our account: ``python -m benchmarks.costs.node_life``.

In virtual time (``benchmarks/virtual_fleet``) claims come by the API to a cluster on EC2, each is bound, launched,
joined and, after some minutes, deleted, drained and ended. The same time is played without them; a life is the
difference, by the number of machines that were launched. All processes are warm.

A life is the work of ``LIFE``. What is done because there are nodes that change (posts of the cluster's agent, passes
over pools and disruption, the sweep) is printed beside it: ``make cost`` has that with clusters and accounts.

    python -m benchmarks.costs.node_life [--lives N] [--seed N]

Prints one JSON line. Exit 1 when a life costs more than ``node_cost.LIFE_GOAL``.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

from benchmarks import node_cost, rates
from benchmarks.fleet import Fleet, staged
from benchmarks.virtual_fleet import load

QUIET = load.Rates(0, 0, 0, 0)
LIFE = ("node_claims", "scheduler", "node_phases", "relay", "machines")
AGENT = "agent"
"""What posts of a cluster's agent are called here, which the function ``machines`` takes."""
APART, KEEP, SECONDS, WARM_UP = 30.0, 300.0, 1200.0, 120.0
"""Seconds between two claims, so that none shares a pass with another; for which each is kept; of it all, behind the
last claim; and before the first."""
Counts = Counter[tuple[str, str]]


def _name(function: str, event: Mapping[str, Any]) -> str:
    return AGENT if function == "machines" and "/clusters/" in str(event.get("routeKey")) else function


def _played(lives: int, seconds: float, seed: int) -> Counts:
    """Counts of the time: (what is counted, whose) -> number."""
    counts: Counts = Counter()
    names: dict[int, str] = {}
    with staged(Fleet(1, 3, 1, 0.0), QUIET, seed) as (stage, played), patch.object(load, "KEEP_SECONDS", KEEP):
        stage._idle.clear()
        invoke, used = stage.invoke, stage.tally.used

        def watched(function: str, event: Mapping[str, Any]) -> Any:
            name = names[threading.get_ident()] = _name(function, event)
            began = stage.time.now
            try:
                return invoke(function, event)
            finally:
                counts["invocations", name] += 1
                counts["seconds", name] += stage.time.now - began  # type: ignore[assignment]
                del names[threading.get_ident()]

        def noted(kind: str, partition: str, units: float, function: str) -> None:
            counts[f"{kind} units", names.get(threading.get_ident(), function)] += units  # type: ignore[assignment]
            used(kind, partition, units, function)

        (agent,) = played.agents.values()
        stage.time.run(lambda: False, WARM_UP)
        with (
            patch.object(stage, "invoke", watched),
            patch.object(stage.executions, "invoke", watched),
            patch.object(stage.tally, "used", noted),
        ):
            stage.figures()
            for number in range(lives):
                stage.time.spawn(partial(played._new_claim, agent.of), number * APART)
            stage.time.run(lambda: False, seconds)
        figures = stage.figures()
    if stage.failures:
        raise AssertionError(stage.failures)
    counts.update({("calls", name): count for name, count in figures["calls"].items()})
    counts["events", ""] = figures["other"].get("events", 0)
    return counts


def life(lives: int, seed: int) -> dict[str, Any]:
    """The figures of one life, by what they count."""
    seconds = lives * APART + SECONDS
    more, less = _played(lives, seconds, seed), _played(0, seconds, seed)
    # Room that a node leaves may be filled by the cluster's own pool: that is a life too.
    launched = more["calls", "ec2 CreateFleet"]
    each = {key: (more[key] - less[key]) / launched for key in sorted({*more, *less})}

    def part(count: str, *, of_life: bool = True) -> dict[str, float]:
        return {name: n for (kind, name), n in each.items() if kind == count and (name in LIFE) is of_life and n}

    calls = {name: n for (count, name), n in each.items() if count == "calls" and n}
    transitions = calls.pop("transitions")
    usd: dict[str, float] = {}
    beside: dict[str, float] = {}
    for names, of_life in ((usd, True), (beside, False)):
        names["functions"] = sum(
            node_cost.function_seconds("machines" if name == AGENT else name, 0) * n
            for name, n in part("invocations", of_life=of_life).items()
        ) + sum(
            node_cost.function_seconds("machines" if name == AGENT else name, n) - rates.LAMBDA_REQUEST
            for name, n in part("seconds", of_life=of_life).items()
        )
        names["reads"] = sum(part("read units", of_life=of_life).values()) * rates.DYNAMODB_READ
        names["writes"] = sum(part("write units", of_life=of_life).values()) * rates.DYNAMODB_WRITE
    usd |= {"transitions": transitions * rates.STEP_FUNCTIONS_TRANSITION, "events": each["events", ""] * rates.EVENT}
    return {
        "launched": launched,
        "transitions": round(transitions, 2),
        **{count: _rounded(part(count)) for count in ("invocations", "seconds", "read units", "write units")},
        "calls": _rounded(calls),
        "usd": {name: round(value, 7) for name, value in usd.items()},
        "life_usd": round(sum(usd.values()), 6),
        "beside_usd": round(sum(beside.values()), 6),
    }


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in values.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays the lives and prints the figures of one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs.node_life")
    parser.add_argument("--lives", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    figures = life(options.lives, options.seed)
    line = {"benchmark": "node_life", **vars(options), **figures, "goal_usd": node_cost.LIFE_GOAL}
    sys.stdout.write(json.dumps(line) + "\n")
    return 1 if figures["life_usd"] > node_cost.LIFE_GOAL else 0


if __name__ == "__main__":
    sys.exit(main())
