"""Commands to a cluster's agent for the claims that are being worked on: a pure function of what is known.

Nothing is stored for a command. Its id follows from the claim, so that the agent's result finds its way back, and it is
sent until what it is to bring about is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from stockyard.domain.nodes.node_types import is_extended
from stockyard.domain.pools.mirror import CLAIM_LABEL
from stockyard.domain.records import NodeClaim
from stockyard.domain.values import ids, times
from stockyard.domain.values.frozen import dataclass
from stockyard.lifecycle.nodes.machine_gone import is_lost
from stockyard.lifecycle.nodes.node_claim import PENDING

TOKEN, LABEL, DRAIN, DELETE = "bootstrap_token", "label", "drain", "delete_node"
KINDS = (TOKEN, LABEL, DRAIN, DELETE)
TOKEN_LIFE = timedelta(minutes=30)
NODE = "node"
"""Fact of a claim: what the agent saw of its node, as JSON. ``done_fact`` names what it has done."""
HOLDERS = "held"
"""Fact of a claim: which of its node's pods wait for what, by the agent's last word on the drain; empty for none."""
STARTING, UNLABELLED, LACKING = "starting", "unlabelled", "lacking"
"""Of a node that was seen: the startup taints that it still has, its claim's labels that it has not, and the extended
resources that its claim asks for and it does not show."""

UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
"""The taint of a kubelet that waits for its cloud's controller."""


def done_fact(claim: NodeClaim, kind: str) -> str:
    """The fact that a command of this attempt is done; its value is when."""
    return f"{kind}-{claim.generation}-{claim.attempt}"


@dataclass(frozen=True, slots=True)
class Command:
    """One thing to do. ``arguments`` are those of its kind, as ``agent/README.md`` lists them."""

    id: str
    kind: str
    deadline: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict, repr=False)

    def document(self) -> dict[str, Any]:
        """As the agent receives it."""
        return {"id": self.id, "kind": self.kind, "deadline": self.deadline, **self.arguments}


def command_id(claim: NodeClaim, kind: str) -> str:
    """The id of a claim's command: of one attempt of one operation."""
    return ids.derive(ids.COMMAND, claim.id, kind, str(claim.generation), str(claim.attempt))


def commands_of(
    claim: NodeClaim,
    facts: Mapping[str, str],
    node: Mapping[str, Any] | None,
    token: str,
    now: datetime,
    deadline: datetime | None,
) -> list[Command]:
    """Commands to the agent for one claim now.

    ``facts`` are what is known of it, ``node`` what the agent saw of its node, ``deadline`` when a drain has
    to be over; None: whenever its pods have gone. A token is made anew shortly before it ends, as long as the machine
    has not joined.
    """
    if claim.deleting:
        return _giving_back(claim, facts, node, deadline)
    waits = claim.phase == PENDING and claim.placement is not None and claim.machine_id
    if waits and node is not None and done_fact(claim, LABEL) not in facts:
        return _labelling(claim, node)
    if not waits or node is not None or claim.node_name or claim.host_name:
        # A machine whose node its cloud names is admitted by its cloud too.
        return []
    token_made_at = facts.get(done_fact(claim, TOKEN))
    if token_made_at is not None and now < times.from_text(token_made_at) + TOKEN_LIFE / 2:
        return []
    arguments = {"token": token, "expires_at": times.to_text(now + TOKEN_LIFE)}
    # The token admits a node of this name and no other.
    arguments |= {"claim": claim.id, "node": claim.name}
    return [Command(command_id(claim, TOKEN), TOKEN, None, arguments)]


def labels_of(claim: NodeClaim) -> dict[str, str]:
    """The labels that the claim's node shall have. A machine that was told its claim joins with that label; on one
    that its cloud names, and whose kubelet knows of no claim, it is set like the others."""
    return {**claim.node_labels, CLAIM_LABEL: claim.id} if claim.host_name else dict(claim.node_labels)


def seen_of(claim: NodeClaim, node: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that are kept of a claim's node, as its cluster shows it.

    Startup taints are told apart by key and effect, as Kubernetes does: their owners may change the value. That of a
    kubelet which waits for its cloud's controller is one too.
    """
    taints = {(taint["key"], taint["effect"]) for taint in node["taints"]}
    starting = [taint["key"] for taint in claim.startup_taints if (taint["key"], taint["effect"]) in taints]
    starting += [key for key, _ in sorted(taints) if key == UNINITIALIZED]
    labels = node["labels"]
    unlabelled = [key for key, value in labels_of(claim).items() if labels.get(key) != value]
    allocatable = node.get("allocatable", {})
    lacking = [name for name in claim.resources if is_extended(name) and allocatable.get(name, "0") == "0"]
    summary = {name: node[name] for name in ("name", "uid", "ready")}
    return {**summary, STARTING: starting, UNLABELLED: unlabelled, **({LACKING: lacking} if lacking else {})}


def waits_for(claim: NodeClaim, facts: Mapping[str, str], node: Mapping[str, Any]) -> str | None:
    """Thing that a node which has joined waits for before it can be used; None for nothing.

    Startup taints are taken away by those who put them on a claim: theirs is the word that the node is set up.
    """
    if node["ready"] != "True":
        return "to be ready"
    if node.get(STARTING):
        return f"to lose its startup taints {', '.join(node[STARTING])}"
    if node.get(LACKING):
        return f"to show {', '.join(node[LACKING])}"
    if node.get(UNLABELLED) and done_fact(claim, LABEL) not in facts:
        return f"to get its labels {', '.join(node[UNLABELLED])}"
    return None


def _labelling(claim: NodeClaim, node: Mapping[str, Any]) -> list[Command]:
    """The labels that the node did not bring along: a kubelet may not give itself all of them."""
    desired_labels = labels_of(claim)
    labels = {key: desired_labels[key] for key in node.get(UNLABELLED, ()) if key in desired_labels}
    if not labels:
        return []
    return [Command(command_id(claim, LABEL), LABEL, None, {"node": node["name"], "labels": labels})]


def _giving_back(
    claim: NodeClaim, facts: Mapping[str, str], node: Mapping[str, Any] | None, deadline: datetime | None
) -> list[Command]:
    if node is None:
        return []
    arguments = {"node": node["name"], "uid": node["uid"]}
    if done_fact(claim, DRAIN) not in facts and not is_lost(claim):
        end = None if deadline is None else times.to_text(deadline)
        return [Command(command_id(claim, DRAIN), DRAIN, end, {**arguments, "grace_seconds": None})]
    if done_fact(claim, DELETE) not in facts:
        return [Command(command_id(claim, DELETE), DELETE, None, arguments)]
    return []
