"""A further member of a control plane: it asks and reports by its own programs; kubeadm and etcd are played."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from local.kubernetes.cluster import Cluster, InitFailed, JoinFailed, Kubelet
from local.kubernetes.clusters import Clusters
from local.kubernetes.membership import Membership, Unhealthy
from local.machines.etcd import play, restored
from local.machines.programs import MACHINE, NEAR, NODE, NODE_CONFIG, Place

MEMBER = "stockyard_member.py"
RESTORE = "stockyard_restore.py"
REPORT, ANSWER = "played_report.py", "answer.json"
_REPORT = f"""import json, os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stockyard_node as node
with open(node.CONFIG) as file:
    values = json.load(file)
answer = node.post(values, "member-reports", state="joined", removed=sys.argv[1:])
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "{ANSWER}"), "w") as file:
    json.dump(answer, file)
"""
"""One report: a real machine's program goes on by itself and speaks to its own etcd, which is not there."""
REPORT_SECONDS = 0.5


class Member:
    """Joins the control plane, then takes out of etcd whom Stockyard names, until it is told that all is done."""

    def __init__(self, place: Place, clusters: Clusters) -> None:
        self._place, self._clusters = place, clusters
        self._cluster: Cluster | None = None
        self._name = ""

    @property
    def cluster(self) -> Cluster | None:
        """The cluster that it is a member of; None before that."""
        return self._cluster

    def begin(self) -> bool:
        """See ``programs.Program``."""
        place = self._place
        place.unpack(NODE_CONFIG, MACHINE, NODE, NEAR, MEMBER)
        (place.folder / "hosts").touch()
        (place.folder / REPORT).write_text(_REPORT, encoding="utf-8")
        if not self._name and not self._join():
            return False
        return self._report()

    def _join(self) -> bool:
        place = self._place
        if not place.run(NODE_CONFIG, MEMBER, "ask"):
            self._tell("ask")
            return False
        configuration = yaml.safe_load((place.folder / "join.yaml").read_text(encoding="utf-8"))
        plan = json.loads((place.folder / "member.json").read_text(encoding="utf-8"))
        endpoint = configuration["discovery"]["bootstrapToken"]["apiServerEndpoint"]
        try:
            if (place.folder / "restore.json").exists():
                return self._restore(endpoint, configuration)
            cluster = self._clusters.at(endpoint)
            membership = self._clusters.membership(cluster)
            membership.remove(plan["remove_before"])
            membership.add(plan["node_name"], place.release(NODE_CONFIG))
            self._name = cluster.join(configuration, self._kubelet(), lambda: place.power.on)
        except (InitFailed, JoinFailed, Unhealthy) as reason:
            place.say(str(reason))
            return False
        self._cluster = cluster
        (place.folder / "join.yaml").unlink()
        return True

    def _restore(self, endpoint: str, configuration: dict[str, Any]) -> bool:
        """Begin the control plane anew from the snapshot that this machine was told."""
        place, name = self._place, str(configuration["nodeRegistration"]["name"])
        play(place)
        if not place.run(NODE_CONFIG, RESTORE):
            self._tell("restore")
            return False
        cluster = restored(place, self._clusters, endpoint, name)
        self._clusters.membership(cluster).begin(name, place.release(NODE_CONFIG))
        cluster.start()
        cluster.begin(configuration, self._kubelet())
        self._cluster, self._name = cluster, name
        (place.folder / "join.yaml").unlink()
        return True

    def _kubelet(self) -> Kubelet:
        return replace(self._place.kubelet(), release=self._place.release(NODE_CONFIG))

    def _report(self) -> bool:
        """Report until all is done."""
        place, removed = self._place, list[str]()
        membership = self._membership()
        while place.power.on and membership is not None:
            if not place.run(NODE_CONFIG, REPORT, *removed):
                return False
            answer = json.loads((place.folder / ANSWER).read_text(encoding="utf-8"))
            if answer["done"]:
                return True
            try:
                removed += membership.remove([name for name in answer["remove"] if name not in removed])
            except Unhealthy as reason:
                place.say(str(reason))
            place.power.wait(REPORT_SECONDS)
        return False

    def _membership(self) -> Membership | None:
        return self._clusters.membership(self._cluster) if self._cluster is not None else None

    def _tell(self, step: str) -> None:
        if self._place.power.on:
            self._place.run(NODE_CONFIG, NODE, "say", step, "1", str(self._place.log))

    def switched(self, *, on: bool) -> None:
        """See ``programs.Program``."""
        if self._cluster is not None:
            self._clusters.switch(self._cluster, self._name, on=on)

    def end(self) -> None:
        """See ``programs.Program``."""
        if self._cluster is not None:
            self._clusters.switch(self._cluster, self._name, on=False)
            self._clusters.remove_dead(self._cluster)


def is_member(files: set[str]) -> bool:
    """Whether these names of files are those of a further member."""
    return {Path(NODE_CONFIG).name, MEMBER} <= files
