"""A fake agent of one cluster, and the machines that boot for it. They test how the control plane uses their requests.

The agent's own code is tested by ``tests/unit/agent`` and ``tests/unit/operations/machines/test_join.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.observations import Observation
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.errors import RequestInProgress, StockyardError, Unauthorized
from stockyard.operations.listing import every
from stockyard.operations.machines.join import join_machine
from stockyard.operations.machines.observe import observe
from stockyard.operations.node_claims.phases import go_on
from stockyard.ports import MachineIdentity
from tests.harness.worlds.memory import MemoryAttestor
from tests.unit.operations.nodes import Nodes

KEY = b"the installation's key"
PROOF = {"method": "POST", "url": "https://sts.example.test/machine", "headers": {}}
TROUBLES = ("lost", "late", "failed", "twice", "never")
"""What happens to the first result of a kind of command. ``lost``: it is not posted. ``late``: it is posted three
rounds later. ``failed``: it says that the command failed. ``twice``: it is posted in every round. ``never``: no result
of this kind is ever posted."""


@dataclass
class FakeAgent:
    """Runs commands, observes the nodes of running machines, and posts. ``trouble`` happens to commands of ``kind``."""

    nodes: Nodes
    cluster: Cluster
    account: str
    running: Callable[[str], bool]
    """Whether the machine with an id runs."""
    kind: str = ""
    trouble: str = ""
    token_of: Callable[[NodeClaim], str] | None = None
    """The token in the user data of a claim's machine; None where machines sign a request."""
    fired: bool = False
    kubernetes_nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The cluster's nodes by name."""
    tokens: set[str] = field(default_factory=set)
    drained: set[str] = field(default_factory=set)
    results: list[dict[str, Any]] = field(default_factory=list)
    delayed_results: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    command_kinds: list[str] = field(default_factory=list)
    """The kinds of all received commands, in order."""
    sequence: int = 0
    facts_of: Callable[[str], Mapping[str, Any]] = lambda _: {}
    """What else is told of a node, by its name."""
    reports: Callable[[], Mapping[str, Any] | None] = lambda: None
    """How far the reports of pods are."""
    away: set[str] = field(default_factory=set)
    """Nodes whose object somebody has deleted: their kubelets run and do not join again."""
    overlay_key: str | None = None
    """The public key that machines hand in; None where the cluster has no overlay."""
    goes_on: bool = False
    """Whether its word ends what waits for it at once, as posts over HTTP do; else the workflows see it when they look
    again."""

    def round(self) -> None:
        """Lets the machines boot, then posts once. After a failed post the next round posts the same results again."""
        self._boot()
        self.sequence += 1
        due = [result for when, result in self.delayed_results if when <= self.sequence]
        self.delayed_results = [(when, result) for when, result in self.delayed_results if when > self.sequence]
        self.results += due
        post = {
            "sequence": self.sequence,
            "observed_at": self.nodes.services.now(),
            "agent_version": "1",
            "kubernetes_version": "v1.34.1",
            "ca_hash": "sha256:" + "0" * 64,
            "nodes": [{**node, "ready": "True", **self.facts_of(name)} for name, node in self.kubernetes_nodes.items()],
            "results": self.results,
            "pods": self.reports(),
        }
        services = self.nodes.services
        try:
            answer = observe(
                services, self.nodes.registry.in_hand, KEY, self.cluster, read(Observation, post).model_dump()
            )
        except StockyardError:
            return
        if self.goes_on:
            go_on(services, answer.news_of)
        self.results = self.results if self.trouble == "twice" else []
        for command in answer.commands:
            self._do(command.document())

    def _do(self, command: dict[str, Any]) -> None:
        kind = command["kind"]
        self.command_kinds.append(kind)
        result = {"id": command["id"], "status": "done"}
        trouble = self.trouble if kind == self.kind and (not self.fired or self.trouble == "never") else ""
        self.fired = self.fired or kind == self.kind
        if trouble == "failed":
            self.results.append({**result, "status": "failed", "message": "no"})
            return
        if kind == "bootstrap_token":
            self.tokens.add(command["token"])
        elif kind == "drain":
            self.drained.add(command["node"])
        elif kind == "delete_node":
            assert command["node"] in self.drained, "a node is deleted before it was drained"
            self.kubernetes_nodes.pop(command["node"], None)
        elif command["node"] in self.kubernetes_nodes:
            node = self.kubernetes_nodes[command["node"]]
            self.kubernetes_nodes[command["node"]] = {**node, "labels": {**node["labels"], **command["labels"]}}
        if trouble == "late":
            self.delayed_results.append((self.sequence + 3, result))
        elif trouble not in ("lost", "never"):
            self.results.append(result)

    def _boot(self) -> None:
        """Every running machine asks for its join configuration until it gets one, and then joins."""
        services = self.nodes.services
        for claim in every(services.store, NodeClaim):
            if (
                not claim.machine_id
                or claim.name in self.kubernetes_nodes
                or claim.name in self.away
                or claim.deleting
                or not self.running(claim.machine_id)
            ):
                continue
            try:
                configuration = join_machine(services, KEY, claim.id, self._proof(claim), overlay_key=self.overlay_key)
            except (RequestInProgress, Unauthorized):
                continue
            if configuration.token in self.tokens:
                self.kubernetes_nodes[configuration.node_name] = {
                    "name": configuration.node_name,
                    "uid": f"uid-{claim.machine_id}",
                    "created_at": services.now(),
                    "claim": configuration.labels["stockyard.dev/claim"],
                    "labels": {},
                }

    def _proof(self, claim: NodeClaim) -> Mapping[str, Any]:
        if self.token_of is not None:
            return {"token": self.token_of(claim)}
        role = f"vantage-{self.cluster.client_id}-node-role"
        attestor = self.nodes.services.attestor
        assert isinstance(attestor, MemoryAttestor)
        attestor.identities[PROOF["url"]] = MachineIdentity(self.account, role, claim.machine_id or "")
        return PROOF
