"""One run of the sweep over cloud accounts in which something happens: ``python -m benchmarks.costs.account_sweeps``.

In virtual time (``benchmarks/virtual_fleet``): each tenant has an account with a cluster of ten nodes. The run hands
out turns and places; each place lists its account, with the delays of ``docs/scale.md``. ``--lanes`` is how many
listings of an account wait at once; one was the rule before decision 602.

    python -m benchmarks.costs.account_sweeps [--accounts N] [--nodes N] [--lanes N] [--seed N]

Prints one JSON line: seconds of an account's sweep and of a tenant's turn, calls for an account, and the most
invocations at once.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import patch

from benchmarks.fleet import Fleet, staged
from benchmarks.virtual_fleet.load import Rates
from benchmarks.virtual_fleet.tally import spread
from stacks.functions import FUNCTIONS
from stockyard import side_by_side

NAME = "reaper"
MOST_SECONDS = 600.0
QUIET = Rates(0, 0, 0, 0)


def played(accounts: int, nodes: int, seed: int) -> dict[str, Any]:
    """The figures of one run, all processes warm."""
    scope_seconds: list[float] = []
    with staged(Fleet(accounts, nodes, accounts), QUIET, seed) as (stage, _):
        # Only the sweep runs: what the fleet has begun is taken back, and every process is there.
        stage.time.forget()
        stage._idle.clear()
        stage.figures()
        invoke = stage.invoke

        def watched(name: str, event: Mapping[str, Any]) -> Any:
            began = stage.time.now
            answer = invoke(name, event)
            if "place" in event:
                scope_seconds.append(stage.time.now - began)
            return answer

        with patch.object(stage, "invoke", watched):
            stage.begin(NAME, {"detail": {}}, "asynchronous")
            stage.time.run(lambda: False, MOST_SECONDS)
        figures = stage.figures()
    calls = {name: count for name, count in figures["calls"].items() if not name.startswith(("dynamodb", "lambda"))}
    return {
        "place_seconds": spread(scope_seconds),
        "place_mean_seconds": round(sum(scope_seconds) / accounts, 3),
        "turn_mean_seconds": round((figures["function_seconds"][NAME] - sum(scope_seconds)) / accounts, 3),
        "calls_of_an_account": round(sum(calls.values()) / accounts, 1),
        "units_of_an_account": {kind: round(units / accounts, 1) for kind, units in figures["units"].items()},
        "at_once": figures["concurrency"][NAME],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays a run and prints its figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs.account_sweeps")
    parser.add_argument("--accounts", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=10, help="of each account (%(default)s)")
    parser.add_argument("--lanes", type=int, default=side_by_side.LANES)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    memory = next(spec.memory for spec in FUNCTIONS if spec.name == NAME)
    with patch.object(side_by_side, "LANES", options.lanes):
        figures = played(options.accounts, options.nodes, options.seed)
    line = {"benchmark": "account_sweeps", **vars(options), "memory": memory, **figures}
    sys.stdout.write(json.dumps(line) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
