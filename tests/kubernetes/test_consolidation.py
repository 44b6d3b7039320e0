"""Nodes that Stockyard made for the pods of a real cluster become fewer when its pods do, and each pod has a node.

``STOCKYARD_SOAK`` raises the count of nodes from about 6 to about 50. The scheduler spreads pods as it likes. Where
they are of one size, and no rule refuses a node with room, all find a place; where sizes and rules differ, a plan that
is tight may fit in its own order alone, and decisions become careful.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import ceil
from typing import Any

import pytest

from local.kubernetes.store import Object
from tests.kubernetes.product import Town, now_world, open_pool
from tests.kubernetes.rigs import RealRig, until
from tests.kubernetes.workloads import SECONDS, Witness, app_of, witnessed

pytestmark = pytest.mark.timeout(1200)

HOST = "kubernetes.io/hostname"
FEW, MANY = 1, 9
"""By how much the cluster is larger than the smallest one."""
BEGIN, END = {"web": 18, "api": 10, "cache": 8}, {"web": 6, "api": 3, "cache": 3}
"""Pods of each application at first and later, in the smallest cluster."""
FIXED = {"db": 3, "job": 1, "still": 1}
"""Pods that do not become fewer: those that would rather be alone, one that is not to be disrupted, one that its budget
holds."""
BUDGETS = {"web": {"minAvailable": "80%"}, "db": {"maxUnavailable": 1}, "still": {"maxUnavailable": 0}}
MIXED = {"api": "2", "cache": "500m", "job": "100m", "still": "100m"}
"""Cores of a pod, where it has not one."""
TEAM = {"key": "team", "value": "lab", "effect": "NoSchedule"}
SHARE = 60
"""Percent of the nodes that the budget of the pool lets go at a time."""
QUIET = 2
"""Minutes in which nothing is to be looked at soon, after which there is no decision left."""
MOST = 40


@pytest.fixture
def town(real_rig: RealRig, monkeypatch: pytest.MonkeyPatch) -> Iterator[Town]:
    town = Town.of(real_rig, now_world(), monkeypatch)
    yield town
    town.workloads.clear()


def spread(app: str, unsatisfiable: str) -> list[Object]:
    """Nearly as many pods on each node as on any other."""
    selector = {"matchLabels": {"app": app}}
    return [{"topologyKey": HOST, "maxSkew": 2, "whenUnsatisfiable": unsatisfiable, "labelSelector": selector}]


def apart(app: str) -> Object:
    """No two pods on a node, if it can be."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
    preference = {"weight": 100, "podAffinityTerm": term}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}


def filled(town: Town, size: int, cores: Mapping[str, str], unsatisfiable: str) -> dict[str, int]:
    """Pods wait, nodes come for them, and then most of the pods end. Returns how many of each application stay."""
    here = town.workloads
    open_pool(town, "burst", budgets=[{"nodes": f"{SHARE}%"}])
    open_pool(town, "lab", budgets=[], labels={"team": "lab"}, taints=[TEAM])
    rules: dict[str, Any] = {
        "cache": {"topologySpreadConstraints": spread("cache", unsatisfiable)},
        "db": {"affinity": apart("db")},
        "job": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
    }
    counts = {**{app: count * size for app, count in BEGIN.items()}, **FIXED}
    paths = {
        app: here.deployment(app, count, cores.get(app, "1"), **rules.get(app, {})) for app, count in counts.items()
    }
    bears = {"tolerations": [{"key": "team", "operator": "Exists"}]}
    paths["solo"] = here.deployment("solo", 4, "1800m", nodeSelector={"team": "lab"}, **bears)
    # A node may be full before its DaemonSets know of it; pods of this class make room for themselves.
    here.daemon_set("log", "100m", priorityClassName="system-node-critical", **bears)
    town.until(lambda: town.calm() and not town.waiting() and here.running().get("log") == len(town.nodes()))
    here.run(**counts, solo=4, log=len(town.nodes()))
    counts |= {**{app: count * size for app, count in END.items()}, "solo": 1}
    for app, path in paths.items():
        here.scale(path, counts[app])
    here.settle()
    for app, spec in BUDGETS.items():
        here.budget(app, **spec)
    return counts


def decide_all(town: Town) -> None:
    """Minutes until nothing is decided any more. After each decision the nodes are those that it planned, and each pod
    is on one of them."""
    quiet, began = 0, len(town.planned)
    checked = began
    for _ in range(MOST):
        town.minute()
        # Its agent does not tell at once that pods have gone.
        quiet = quiet + 1 if town.quiet() and checked > began else 0
        if town.calm() and len(town.planned) > checked:
            checked = len(town.planned)
            until(lambda: not town.waiting(), SECONDS)
            assert town.nodes().keys() == town.planned[-1], town.tale()
        if quiet == QUIET:
            return
    raise AssertionError(town.tale())


def until_rest(town: Town) -> set[str]:
    """Minutes until nothing is decided any more. Returns the pods that waited for a node after a minute."""
    quiet, began, waited = 0, len(town.planned), set[str]()
    for _ in range(MOST):
        town.minute()
        waited |= set(town.waiting())
        rests = town.quiet() and not town.waiting() and len(town.planned) > began
        quiet = quiet + 1 if rests else 0
        if quiet == QUIET:
            return waited
    raise AssertionError(town.tale())


def budgets_held(witness: Witness, counts: dict[str, int]) -> None:
    """Check that as many pods of each application were ready at each moment as its budget says."""
    least = {"web": ceil(counts["web"] * 0.8), "db": 2, "still": 1, "job": 1}
    assert all(witness.fewest[app] >= count for app, count in least.items()), (witness.fewest, least)


def test_nodes_are_consolidated_to_the_planned_set_and_every_pod_has_a_node(
    town: Town, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    counts = filled(town, MANY if soaking else FEW, {}, "ScheduleAnyway")
    here, before, began = town.workloads, town.nodes(), len(town.decisions)
    protected = {pod["spec"]["nodeName"] for pod in here.pods() if app_of(pod) in ("job", "still")}
    with witnessed(town.rig) as witness:
        decide_all(town)
    after, decisions = town.nodes(), town.decisions[began:]
    here.run(**counts, log=len(after))
    budgets_held(witness, counts)
    assert protected <= {node["metadata"]["name"] for node in after.values()}
    assert {node["status"]["capacity"]["cpu"] for node in after.values() if "taints" in node["spec"]} == {"2"}, (
        town.tale()
    )
    assert len(after) < len(before) * 3 / 4, (len(before), len(after), town.tale())
    assert sum(len(decision.replacements) for decision in decisions) >= 1
    record_property("figure:consolidation_on_kubernetes", figures(town, before, began))


def figures(town: Town, before: dict[str, Any], began: int) -> dict[str, Any]:
    """Figures of the run. ``began`` is how many decisions there were before."""
    decisions = town.decisions[began:]
    return {
        "nodes_before": len(before),
        "nodes_after": len(town.nodes()),
        "pods": sum(town.workloads.running().values()),
        "decisions": len(decisions),
        "replacements": sum(len(decision.replacements) for decision in decisions),
        "usd_hour_saved": round(sum(decision.saving for decision in decisions), 2),
    }


def test_pods_of_several_sizes_come_to_rest(
    town: Town, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    """A decision after which pods have no place is not made again and again."""
    if not soaking:
        pytest.skip("a small cluster is not tight enough to tell")
    counts = filled(town, MANY, MIXED, "DoNotSchedule")
    before, began = town.nodes(), len(town.decisions)
    with witnessed(town.rig) as witness:
        waited = until_rest(town)
    town.workloads.run(**counts, log=len(town.nodes()))
    budgets_held(witness, counts)
    record = town.record()
    careful = bool(record and record.careful_until)
    figure = {**figures(town, before, began), "pods_that_waited": len(waited), "careful": careful}
    record_property("figure:consolidation_of_sizes_on_kubernetes", figure)
    assert len(town.nodes()) <= len(before) * 2 / 3, town.tale()
