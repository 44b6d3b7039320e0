"""The agent of one cluster and the machines that boot for it, played: for what the control plane makes of their posts.

The agent's own code is tried by ``tests/unit/agent`` and ``tests/unit/operations/test_nodes_join.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from local.memory import MemoryProver
from stockyard.domain.models.base import read
from stockyard.domain.models.observations import Observation
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.errors import RequestInProgress, StockyardError, Unauthorized
from stockyard.operations.every import every
from stockyard.operations.join_machine import join_machine
from stockyard.operations.observe_cluster import observe
from stockyard.ports import MachineIdentity
from tests.unit.operations.nodes import Nodes

KEY = b"the installation's key"
PROOF = {"method": "POST", "url": "https://sts.example.test/machine", "headers": {}}
TROUBLES = ("lost", "late", "failed", "twice", "never")
"""What becomes of the first result of a kind of command: it is not posted, comes three rounds later, says that it
failed, or is posted again in every round; ``never``: every one of them is lost."""


@dataclass
class PlayedAgent:
    """Does what it is asked, sees the nodes of the machines that run, and posts. ``trouble`` is about ``kind``."""

    nodes: Nodes
    cluster: Cluster
    account: str
    running: Callable[[str], bool]
    """Whether the machine of an id runs."""
    kind: str = ""
    trouble: str = ""
    fired: bool = False
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The cluster's nodes by name."""
    tokens: set[str] = field(default_factory=set)
    drained: set[str] = field(default_factory=set)
    results: list[dict[str, Any]] = field(default_factory=list)
    held: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """Kinds of all commands that came."""
    sequence: int = 0

    def round(self) -> None:
        """The machines do what they do, then one post. One that fails is made again, later, with the same results."""
        self._boot()
        self.sequence += 1
        due = [result for when, result in self.held if when <= self.sequence]
        self.held = [(when, result) for when, result in self.held if when > self.sequence]
        self.results += due
        post = {
            "sequence": self.sequence,
            "observed_at": self.nodes.services.now(),
            "agent_version": "1",
            "kubernetes_version": "v1.34.1",
            "ca_hash": "sha256:" + "0" * 64,
            "nodes": [{**one, "ready": "True"} for one in self.seen.values()],
            "results": self.results,
        }
        services = self.nodes.services
        try:
            answer = observe(
                services, self.nodes.registry.in_hand, KEY, self.cluster, read(Observation, post).model_dump()
            )
        except StockyardError:
            return
        self.results = self.results if self.trouble == "twice" else []
        for command in answer.commands:
            self._do(command.document())

    def _do(self, command: dict[str, Any]) -> None:
        kind = command["kind"]
        self.asked.append(kind)
        result = {"id": command["id"], "status": "done"}
        struck = self.trouble if kind == self.kind and (not self.fired or self.trouble == "never") else ""
        self.fired = self.fired or kind == self.kind
        if struck == "failed":
            self.results.append({**result, "status": "failed", "message": "no"})
            return
        if kind == "bootstrap_token":
            self.tokens.add(command["token"])
        elif kind == "drain":
            self.drained.add(command["node"])
        elif kind == "delete_node":
            assert command["node"] in self.drained, "a node is deleted before it was drained"
            self.seen.pop(command["node"], None)
        elif command["node"] in self.seen:
            node = self.seen[command["node"]]
            self.seen[command["node"]] = {**node, "labels": {**node["labels"], **command["labels"]}}
        if struck == "late":
            self.held.append((self.sequence + 3, result))
        elif struck not in ("lost", "never"):
            self.results.append(result)

    def _boot(self) -> None:
        """Every machine that runs asks how to join until it is told, and then joins."""
        services = self.nodes.services
        for claim in every(services.store, NodeClaim):
            if not claim.machine_id or claim.name in self.seen or claim.deleting or not self.running(claim.machine_id):
                continue
            role = f"vantage-{self.cluster.client_id}-node-role"
            arn = f"arn:aws:sts::{self.account}:assumed-role/{role}/{claim.machine_id}"
            prover = services.prover
            assert isinstance(prover, MemoryProver)
            prover.known[PROOF["url"]] = MachineIdentity(self.account, arn, "x")  # type: ignore[index]
            try:
                told = join_machine(services, KEY, claim.id, PROOF)
            except (RequestInProgress, Unauthorized):
                continue
            if told.token in self.tokens:
                self.seen[told.node_name] = {
                    "name": told.node_name,
                    "uid": f"uid-{claim.machine_id}",
                    "created_at": services.now(),
                    "claim": told.labels["stockyard.dev/claim"],
                    "labels": {},
                }
