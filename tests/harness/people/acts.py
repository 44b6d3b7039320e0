"""Acts of people and the world on a played cluster in its hours; each act ends by itself after a while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.stockyard_agent.kubernetes import Object, Refused
from tests.harness.hours.pods import App, Daemon
from tests.harness.people import vendor

if TYPE_CHECKING:
    from tests.harness.hours.world import Hours

TAINT: Object = {"key": "maintenance", "value": "", "effect": "NoSchedule"}
SOFT_TAINT: Object = {"key": "old", "value": "", "effect": "PreferNoSchedule"}
HARD_TAINT: Object = {"key": "broken", "value": "yes", "effect": "NoExecute"}
_TAINTS = ((5, TAINT), (8, HARD_TAINT), (10, SOFT_TAINT))
"""Taints, by how many of ten acts are of it or of an earlier one."""
DAEMON_PORT = 9100
MINUTES = 60.0
DRAIN_TRIES, DRAIN_SECONDS = 60, 10.0
"""How often somebody tries to evict what a budget keeps, and how long between."""
LATER_SECONDS = 120.0
"""When an act that found nobody to be done to is tried again."""
URGENT, CLAIMING = "urgent", "claiming"
"""Deployments of each trace: pods of high priority, and pods with a volume of their own."""
MORE_CPU = 50
"""By so many thousandths of a core an urgent pod is larger than the room of any node."""


def act_of_people(world: Hours, kind: str, number: float) -> None:
    """One act; ``number`` from 0 to 1 says on whom, and for how long. It is done as soon as there is somebody."""
    if (ACTS | OF_VENDOR)[kind](world, number):
        world.judge.counts[f"act {kind}"] += 1
        world.waits.changed()
    else:
        world.time.later(LATER_SECONDS, lambda: act_of_people(world, kind, number))


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


def _duration(number: float) -> float:
    """For how many seconds a node is kept closed: five minutes to five hours, more often a short time."""
    return (5 + 300 * number**3) * MINUTES


def _cordon(world: Hours, name: str, number: float) -> None:
    world.kube.nodes[name]["spec"]["unschedulable"] = True
    _while(world, name, _duration(number), lambda: _uncordon(world, name))


def _uncordon(world: Hours, name: str) -> None:
    if world.kube.nodes[name]["spec"].pop("unschedulable", None):
        world.judge.counts["act uncordon"] += 1


def _taint(world: Hours, name: str, number: float) -> None:
    spec = world.kube.nodes[name]["spec"]
    taint = next(taint for share, taint in _TAINTS if int(number * 1000) % 10 < share)
    spec["taints"] = [*(other for other in spec["taints"] if other["key"] != taint["key"]), taint]
    if taint["effect"] == "NoExecute":
        for pod in world.kube.on(name):
            world.kube.push_out(pod, "taint")
    _while(world, name, _duration(number), lambda: _untaint(world, name, taint["key"]))


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
        _while(world, name, seconds(number), lambda: _wake(world, name))

    return lose


def _wake(world: Hours, name: str) -> None:
    if world.runs(name) and not world.kube.is_ready(name):
        world.kube.wake(name)
        world.judge.counts["act ready again"] += 1


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
    """Make the DaemonSet's pods anew where there is room for the new ones."""
    for name in list(world.kube.nodes):
        for pod in world.kube.daemons_on(name):
            if pod["app"] == daemon.name and daemon.cpu <= world.kube.free(name)[0] + pod["cpu"]:
                world.kube.replace_daemon(pod, daemon, name)


def _open_port(world: Hours, number: float) -> bool:
    """Somebody installs a DaemonSet with a host port, or takes it away."""
    if "metrics" in world.kube.daemons:
        for name in list(world.kube.nodes):
            for pod in world.kube.daemons_on(name):
                if pod["app"] == "metrics":
                    world.kube.drop(pod)
        del world.kube.daemons["metrics"]
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
    world.scale(name, app.replicas + 1 + int(3 * number))
    world.time.later((5 + 60 * number) * MINUTES, lambda: world.kube.open_gates(name))
    return True


def _for_a_while(world: Hours, app: App, number: float) -> None:
    """One pod more of a deployment, for some time."""
    world.scale(app.name, app.replicas + 1)
    world.time.later((5 + 60 * number) * MINUTES, lambda: world.scale(app.name, max(0, app.replicas - 1)))


def _claim_volume(world: Hours, number: float) -> bool:
    """A pod comes with a volume of its own, which is made when the pod has its node."""
    _for_a_while(world, world.kube.apps[CLAIMING], number)
    return True


def _hurry(world: Hours, number: float) -> bool:
    """A pod of high priority comes that has room only where others go for it."""
    kube = world.kube
    names = [name for name in kube.nodes if kube.is_ready(name) and not kube.is_closed(name)]
    free = {name: kube.free(name)[0] for name in names}
    most = max(free.values(), default=0) + MORE_CPU
    lower_cpu = {name: sum(pod["cpu"] for pod in kube.on(name) if not pod["spec"].get("priority")) for name in names}
    if not any(free[name] + lower_cpu[name] >= most for name in names):
        return False
    app = kube.apps[URGENT]
    app.cpu = most
    _for_a_while(world, app, number)
    return True


ACTS: dict[str, Callable[[Hours, float], bool]] = {
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
    "volume claimed": _claim_volume,
    "urgent pod": _hurry,
}
"""Acts by the name that figures have. An act that finds nobody to be done to returns False, and counts as none."""
OF_VENDOR: dict[str, Callable[[Hours, float], bool]] = {vendor.LAUNCH_REFUSED: vendor.refuse_launches}
"""What the vendor does, at times of its own."""
FOLLOWING = ("uncordon", "untaint", "ready again", "late binding", "preemption")
"""What comes of these acts, and is counted with them."""
