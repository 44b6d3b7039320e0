"""What people and the world do to a played cluster in its hours; each act ends by itself after a while."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.stockyard_agent.kubernetes import Object, Refused
from tests.harness.simulated_hours_pods import Daemon

if TYPE_CHECKING:
    from tests.harness.simulated_hours import Hours

TAINT: Object = {"key": "maintenance", "value": "", "effect": "NoSchedule"}
SOFT_TAINT: Object = {"key": "old", "value": "", "effect": "PreferNoSchedule"}
DAEMON_PORT = 9100
MINUTES = 60.0
DRAIN_TRIES, DRAIN_SECONDS = 60, 10.0
"""How often somebody tries to evict what a budget keeps, and how long between."""


def act_of_people(world: Hours, kind: str, number: float) -> None:
    """One act; ``number`` from 0 to 1 says on whom, and for how long."""
    if ACTS[kind](world, number):
        world.judge.counts[f"act {kind}"] += 1
        world.waits.changed()


def _node(world: Hours, number: float) -> str | None:
    """A node that is there and heard."""
    names = sorted(name for name in world.kube.nodes if world.kube.is_ready(name))
    return names[int(number * 7919) % len(names)] if names else None


def _while(world: Hours, name: str, seconds: float, end: Callable[[], None]) -> None:
    """After so long the act on the node ends, where the node is still the same."""
    uid = world.kube.nodes[name]["metadata"]["uid"]

    def later() -> None:
        node = world.kube.nodes.get(name)
        if node is not None and node["metadata"]["uid"] == uid:
            end()
            world.kube.touch(name)
            world.waits.changed()

    world.time.later(seconds, later)


def _on_node(act: Callable[[Hours, str, float], None]) -> Callable[[Hours, float], bool]:
    def on_some_node(world: Hours, number: float) -> bool:
        name = _node(world, number)
        if name is None:
            return False
        act(world, name, number)
        if name in world.kube.nodes:
            world.kube.touch(name)
        return True

    return on_some_node


def _cordon(world: Hours, name: str, number: float) -> None:
    world.kube.nodes[name]["spec"]["unschedulable"] = True
    _while(world, name, (10 + 300 * number) * MINUTES, lambda: _uncordon(world, name))


def _uncordon(world: Hours, name: str) -> None:
    if world.kube.nodes[name]["spec"].pop("unschedulable", None):
        world.judge.counts["act uncordon"] += 1


def _taint(world: Hours, name: str, number: float) -> None:
    spec = world.kube.nodes[name]["spec"]
    taint = SOFT_TAINT if number > 0.8 else TAINT
    spec["taints"] = [*(other for other in spec["taints"] if other["key"] != taint["key"]), taint]
    _while(world, name, (10 + 300 * number) * MINUTES, lambda: _untaint(world, name, taint["key"]))


def _untaint(world: Hours, name: str, key: str) -> None:
    spec = world.kube.nodes[name]["spec"]
    spec["taints"] = [taint for taint in spec["taints"] if taint["key"] != key]
    world.judge.counts["act untaint"] += 1


def _drain(world: Hours, name: str, number: float) -> None:
    """As ``kubectl drain``: cordon, then evict all but pods of DaemonSets, again and again where a budget keeps one."""
    _cordon(world, name, number)
    _evict_all(world, name, world.kube.nodes[name]["metadata"]["uid"], DRAIN_TRIES)


def _evict_all(world: Hours, name: str, uid: str, tries: int) -> None:
    node = world.kube.nodes.get(name)
    if node is None or node["metadata"]["uid"] != uid or not node["spec"].get("unschedulable"):
        return
    for pod in world.kube.on(name):
        try:
            world.kube.end_by_hand(pod, "drained by hand")
        except Refused:
            world.judge.counts["refused by a budget"] += 1
    if tries and world.kube.on(name):
        world.time.later(DRAIN_SECONDS, lambda: _evict_all(world, name, uid, tries - 1))


def _delete(world: Hours, name: str, _: float) -> None:
    """The Node object goes; its machine runs on and does not come back by itself."""
    world.kube.remove(name)


def _shrink(world: Hours, name: str, number: float) -> None:
    """The kubelet reserves more from now on."""
    node = world.kube.nodes[name]
    node["cpu"], node["mib"] = int(node["cpu"] * (0.4 + 0.4 * number)), int(node["mib"] * (0.4 + 0.4 * number))
    node["status"]["allocatable"] |= {"cpu": f"{node['cpu']}m", "memory": f"{node['mib']}Mi"}


def _lose(seconds: Callable[[float], float], status: str) -> Callable[[Hours, str, float], None]:
    def lose(world: Hours, name: str, number: float) -> None:
        world.kube.silence(name, status)
        _while(world, name, seconds(number), lambda: world.kube.wake(name) if world.runs(name) else None)

    return lose


def _grow(world: Hours, number: float) -> bool:
    """A DaemonSet's next pods are larger: by a LimitRange, which its template does not show, or by its template."""
    daemon = world.kube.daemons["proxy"]
    cpu = 100 + int(6 * number) * 100
    template = cpu if int(number * 1000) % 2 else daemon.template_cpu
    grown = replace(daemon, cpu=cpu, template_cpu=min(template, cpu))
    world.kube.daemons["proxy"] = grown
    if grown.template_cpu != daemon.template_cpu:
        _roll(world, grown)
    world.kube.changed = True
    return True


def _roll(world: Hours, daemon: Daemon) -> None:
    """Its pods are made anew where there is room for the new ones."""
    for name in list(world.kube.nodes):
        for pod in world.kube.daemons_on(name):
            if pod["app"] == daemon.name and daemon.cpu <= world.kube.free(name)[0] + pod["cpu"]:
                world.kube.replace_daemon(pod, daemon, name)


def _open_port(world: Hours, number: float) -> bool:
    """Somebody installs a DaemonSet with a host port, or takes it away."""
    if "metrics" in world.kube.daemons:
        del world.kube.daemons["metrics"]
        for name in list(world.kube.nodes):
            for pod in world.kube.daemons_on(name):
                if pod["app"] == "metrics":
                    world.kube.drop(pod)
    else:
        port = DAEMON_PORT if number < 0.7 else 8080
        daemon = world.kube.daemons["metrics"] = Daemon("metrics", 50, 32, 50, port)
        for name in list(world.kube.nodes):
            world.kube.start_daemon(daemon, name)
    world.kube.changed = True
    world.kube.schedule()
    return True


def _gate(world: Hours, number: float) -> bool:
    """A deployment's next pods are gated for a while, as those of a suspended Job are."""
    names = sorted(name for name, app in world.kube.apps.items() if not app.gated and app.replicas)
    if not names:
        return False
    name = names[int(number * 7919) % len(names)]
    app = world.kube.apps[name]
    app.gated = True
    world.kube.scale(name, app.replicas + 1 + int(3 * number))
    world.time.later((5 + 60 * number) * MINUTES, lambda: world.kube.open_gates(name))
    return True


ACTS: Mapping[str, Callable[[Hours, float], bool]] = {
    "cordon": _on_node(_cordon),
    "taint": _on_node(_taint),
    "drain by hand": _on_node(_drain),
    "node deleted": _on_node(_delete),
    "node shrinks": _on_node(_shrink),
    "not ready for a while": _on_node(_lose(lambda number: (0.5 + 10 * number) * MINUTES, "False")),
    "kubelet dead": _on_node(_lose(lambda number: (15 + 120 * number) * MINUTES, "Unknown")),
    "daemon set grows": _grow,
    "daemon set with a port": _open_port,
    "gated pods": _gate,
}
"""Acts by the name that figures have. An act that finds nobody to be done to returns False, and counts as none."""
