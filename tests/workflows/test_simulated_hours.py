"""Hours of clusters under the product's own decisions, and what a judge says who knows nothing of them.

``STOCKYARD_SOAK`` raises the hours to 10,000, of which every fifth run passes under the other policies too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from time import process_time

from tests.harness.hours.policies import NEVER, POLICIES, PRODUCT
from tests.harness.hours.traces import CHANGES, trace_of
from tests.harness.hours.world import Hours

SOAK_RUNS, RUNS = (100, 100, 1.0), (5, 12, 0.6)
"""How many runs, the hours of each, and the size of their clusters."""
DECISIONS = ("Underutilized", "Drifted", "Expired")
"""Why nodes with pods leave that would not have to."""
COMPARED = 5
"""Every so many-th run passes under each policy."""


def test_hours_break_no_rule_and_cost_less(
    seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    runs, hours, size = SOAK_RUNS if soaking else RUNS
    counts: Counter[str] = Counter()
    usd: Counter[str] = Counter()
    node_hours: Counter[str] = Counter()
    wrong: list[str] = []
    begin, compared = process_time(), 0
    for index in range(runs):
        trace = trace_of(seed + index, hours, size=size)
        compare = index % COMPARED == 0
        compared += compare
        for policy in POLICIES if compare else (PRODUCT,):
            world = Hours(trace, policy).run()
            if compare:
                usd[policy] += world.usd
                node_hours[policy] += world.node_hours
            if policy == PRODUCT:
                counts += world.judge.counts
                wrong += [f"{trace.number}: {text}" for text in world.judge.wrong]
    figures = {
        "hours": runs * hours,
        "zones": len(CHANGES),
        "decisions": counts["decisions Replacing"],
        "nodes that left": counts["left by disruption"],
        "evictions": counts["pods evict"],
        **{f"evicted pods that waited, {reason}": counts[f"waits {reason}"] for reason in DECISIONS},
        **{kind: counts[kind] for kind in ("budget", "forbidden", "homeless", "runaway")},
        "compared hours": compared * hours,
        **{f"usd {policy}": round(usd[policy], 2) for policy in POLICIES},
        **{f"node hours {policy}": round(node_hours[policy]) for policy in POLICIES},
        "seconds": round(process_time() - begin),
    }
    record_property("figure:simulated_hours", figures)
    assert wrong == []
    assert counts["decisions Replacing"] > 0
    assert usd[PRODUCT] <= usd[NEVER]
