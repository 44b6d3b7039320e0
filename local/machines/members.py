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
from local.machines.programs import MACHINE, NEAR, NODE, NODE_CONFIG, MachineSandbox

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

    def __init__(self, sandbox: MachineSandbox, clusters: Clusters) -> None:
        self._sandbox, self._clusters = sandbox, clusters
        self._cluster: Cluster | None = None
        self._name = ""

    @property
    def cluster(self) -> Cluster | None:
        """The cluster that it is a member of; None before that."""
        return self._cluster

    def begin(self) -> bool:
        """See ``programs.Program``."""
        sandbox = self._sandbox
        sandbox.unpack(NODE_CONFIG, MACHINE, NODE, NEAR, MEMBER)
        (sandbox.folder / "hosts").touch()
        (sandbox.folder / REPORT).write_text(_REPORT, encoding="utf-8")
        if not self._name and not self._join():
            return False
        return self._report()

    def _join(self) -> bool:
        sandbox = self._sandbox
        if not sandbox.run(NODE_CONFIG, MEMBER, "ask"):
            self._tell("ask")
            return False
        configuration = yaml.safe_load((sandbox.folder / "join.yaml").read_text(encoding="utf-8"))
        plan = json.loads((sandbox.folder / "member.json").read_text(encoding="utf-8"))
        endpoint = configuration["discovery"]["bootstrapToken"]["apiServerEndpoint"]
        try:
            if (sandbox.folder / "restore.json").exists():
                return self._restore(endpoint, configuration)
            cluster = self._clusters.at(endpoint)
            membership = self._clusters.membership(cluster)
            membership.remove(plan["remove_before"])
            membership.add(plan["node_name"], sandbox.release(NODE_CONFIG))
            self._name = cluster.join(configuration, self._kubelet(), lambda: sandbox.power.on)
        except (InitFailed, JoinFailed, Unhealthy) as reason:
            sandbox.say(str(reason))
            return False
        self._cluster = cluster
        (sandbox.folder / "join.yaml").unlink()
        return True

    def _restore(self, endpoint: str, configuration: dict[str, Any]) -> bool:
        """Begin the control plane anew from the snapshot that this machine was told."""
        sandbox, name = self._sandbox, str(configuration["nodeRegistration"]["name"])
        play(sandbox)
        if not sandbox.run(NODE_CONFIG, RESTORE):
            self._tell("restore")
            return False
        cluster = restored(sandbox, self._clusters, endpoint, name)
        self._clusters.membership(cluster).begin(name, sandbox.release(NODE_CONFIG))
        cluster.start()
        cluster.begin(configuration, self._kubelet())
        self._cluster, self._name = cluster, name
        (sandbox.folder / "join.yaml").unlink()
        return True

    def _kubelet(self) -> Kubelet:
        return replace(self._sandbox.kubelet(), release=self._sandbox.release(NODE_CONFIG))

    def _report(self) -> bool:
        """Report until all is done."""
        sandbox, removed = self._sandbox, list[str]()
        membership = self._membership()
        while sandbox.power.on and membership is not None:
            if not sandbox.run(NODE_CONFIG, REPORT, *removed):
                return False
            answer = json.loads((sandbox.folder / ANSWER).read_text(encoding="utf-8"))
            if answer["done"]:
                return True
            try:
                removed += membership.remove([name for name in answer["remove"] if name not in removed])
            except Unhealthy as reason:
                sandbox.say(str(reason))
            sandbox.power.wait(REPORT_SECONDS)
        return False

    def _membership(self) -> Membership | None:
        return self._clusters.membership(self._cluster) if self._cluster is not None else None

    def _tell(self, step: str) -> None:
        if self._sandbox.power.on:
            self._sandbox.run(NODE_CONFIG, NODE, "say", step, "1", str(self._sandbox.log))

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
