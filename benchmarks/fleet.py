"""A fleet of clusters in virtual time: ``python -m benchmarks.fleet --clusters 10``.

The product's own handlers, scheduled passes, readers of the stream and workflows run over a table in memory that counts
as DynamoDB does, with the delays of ``docs/scale.md``. Nodes are there from the beginning; an hour has pods that come
and go, claims by the API, machines on spot that are taken back, people who look, and the posts of each cluster's agent.

    python -m benchmarks.fleet [--clusters N] [--nodes N] [--tenants N] [--hours H] [--warm-up MINUTES]
        [--stretch MINUTES] [--seed N] [--pods N] [--claims N] [--spot-losses N] [--looks N] [--spot PART]

Prints one JSON line for each stretch of virtual time (an hour if nothing else is said), and one for the whole.
Behind SIGTERM it ends with the stretch that is being played. A formula gives only prices and limits of AWS.
"""

from __future__ import annotations

import argparse
import gc
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.virtual_fleet import prices
from benchmarks.virtual_fleet.clusters import FleetRecords, Tenant
from benchmarks.virtual_fleet.load import Load, Rates
from benchmarks.virtual_fleet.money import money
from benchmarks.virtual_fleet.stage import FleetStage
from benchmarks.virtual_fleet.tally import RAW, merged
from benchmarks.virtual_time.delays import Delays
from benchmarks.virtual_time.engine import BEGAN
from benchmarks.virtual_time.stage import deployed
from stockyard import wiring
from stockyard.ports import Put

TEMPLATE = Path(__file__).resolve().parents[1] / "local" / "dev_stage" / "Stockyard-dev.template.json"
HOUR = 3600.0
BATCH = 90
SELDOM = (200_000, 50, 1000)
"""How often garbage is looked for, as ``gc.set_threshold`` takes it: with Python's own values it is every sixth second
of the time."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The size of a fleet. Clusters are dealt to the tenants in turn; ``spot`` is a part of the nodes."""

    clusters: int
    nodes: int
    tenants: int
    spot: float = 0.3


@contextmanager
def staged(fleet: Fleet, rates: Rates, seed: int) -> Iterator[tuple[FleetStage, Load]]:
    """Inside this context the fleet is there, and its loads have begun."""
    stage = FleetStage(Delays(seed))
    with ExitStack() as stack:
        stack.enter_context(deployed(stage, json.loads(TEMPLATE.read_text(encoding="utf-8"))))
        load = Load(stage, rates, seed)
        stack.enter_context(patch.object(wiring, "attestor", load.attestor))
        tenants = _filled(stage, fleet, seed)
        for tenant in tenants:
            for cluster in tenant.clusters:
                load.add(cluster)
            load.look(tenant.clusters[0])
        stage.table.changes.clear()
        stage.schedule()
        before = gc.get_threshold()
        gc.set_threshold(*SELDOM)
        _keep()
        try:
            yield stage, load
        finally:
            gc.unfreeze()
            gc.set_threshold(*before)


def _keep() -> None:
    """Look for garbage now, and among what is left never again: the table and the fleet live until the end."""
    gc.collect()
    gc.freeze()


def _filled(stage: FleetStage, fleet: Fleet, seed: int) -> list[Tenant]:
    fleet_records = FleetRecords(BEGAN, seed, fleet.spot)
    tenants = [fleet_records.tenant(number) for number in range(min(fleet.tenants, fleet.clusters))]
    for tenant in tenants:
        wiring.registry().store(tenant.name).commit(Put(tenant.account), Put(tenant.provider))
    prices.keep(wiring.registry().platform(), BEGAN)
    for number in range(fleet.clusters):
        tenant = tenants[number % len(tenants)]
        _, records = fleet_records.cluster(tenant, number, fleet.nodes)
        store = wiring.registry().store(tenant.name)
        for begin in range(0, len(records), BATCH):
            store.commit(*map(Put, records[begin : begin + BATCH]))
        stage.table.changes.clear()
    return tenants


def played(
    fleet: Fleet,
    rates: Rates,
    seed: int,
    hours: float,
    warm_up: float,
    tell: Any = lambda _: None,
    stretch: float = 1.0,
    ends: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """The figures of the whole time behind a warm-up of so many seconds; ``tell`` is called with those of each
    ``stretch`` of hours. It ends behind the stretch in which ``ends`` says so."""
    with staged(fleet, rates, seed) as (stage, _):
        stage.time.pass_by(warm_up)
        stage.figures()
        all_of_it: list[dict[str, Any]] = []
        remaining = hours
        while remaining > 1e-6 and not (all_of_it and ends()):
            part = min(stretch, remaining)
            began, cpu = stage.time.now, time.process_time()
            stage.time.pass_by(HOUR * part)
            stage.time.now = began + HOUR * part
            figures = {"hours": part, **stage.figures()}
            figures["usd"] = money(figures, part, stage.table.bytes() / 1e9)
            figures["cpu_seconds"] = round(time.process_time() - cpu, 1)
            tell({"stretch": len(all_of_it), **{k: v for k, v in figures.items() if k != RAW}})
            all_of_it.append(figures)
            _keep()
            remaining -= part
        total = merged(all_of_it)
        total["usd_hour"] = round(sum(total["usd"].values()) / (hours - remaining), 6)
        total["faults"] = {name: repr(error)[:300] for name, error in stage.failures.items()}
        total["refused"] = dict(stage.tally.examples)
        return total


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays a fleet and prints its figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet")
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=100, help="of each cluster (%(default)s)")
    parser.add_argument("--tenants", type=int, default=100, help="at most (%(default)s)")
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--warm-up", type=float, default=10.0, help="minutes that are not counted (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spot", type=float, default=0.3, help="part of the nodes (%(default)s)")
    parser.add_argument("--stretch", type=float, default=60.0, help="minutes of a line (%(default)s)")
    for name, default in (("pods", 4.0), ("claims", 0.5), ("spot-losses", 0.5), ("looks", 6.0)):
        parser.add_argument(f"--{name}", type=float, default=default, help="in an hour (%(default)s)")
    options = parser.parse_args(arguments)
    fleet = Fleet(options.clusters, options.nodes, options.tenants, options.spot)
    rates = Rates(options.pods, options.claims, options.spot_losses, options.looks)

    def tell(line: Mapping[str, Any]) -> None:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    warm_up, stretch = options.warm_up * 60, options.stretch / 60
    total = played(fleet, rates, options.seed, options.hours, warm_up, tell, stretch, lambda: bool(stopped))
    tell({"benchmark": "fleet", **vars(options), **total})
    return 0


if __name__ == "__main__":
    sys.exit(main())
