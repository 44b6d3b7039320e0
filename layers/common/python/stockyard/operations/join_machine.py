"""Tell a claim's machine how to join its cluster, once it has proven which machine it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain import ids
from stockyard.domain.join_tokens import join_token
from stockyard.domain.records import Cluster, LaunchGroup, NodeClaim, NodeProvider
from stockyard.errors import Forbidden, NotFound, RequestInProgress, Unauthorized
from stockyard.lifecycle.claim import PENDING
from stockyard.lifecycle.node_commands import TOKEN, done_fact
from stockyard.operations.node_catalog import account_of
from stockyard.operations.observe_cluster import ca_hash, facts_of
from stockyard.operations.proven_machine import UNRECORDED, proven_machine
from stockyard.operations.services import Services
from stockyard.ports import MachineIdentity

CLAIM_LABEL = "stockyard.dev/claim"


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a machine needs to join, and no more. ``token`` is its own, and short-lived."""

    endpoint: str
    token: str = field(repr=False)
    ca_hash: str
    node_name: str
    labels: dict[str, str]
    taints: list[dict[str, Any]]
    kubelet_args: dict[str, str]


def join_machine(services: Services, key: bytes, claim_id: str, proof: Mapping[str, Any]) -> Invitation:
    """Check account, role and the recorded instance id; repeatable until the node has joined.

    ``Unauthorized`` when the proof is not the recorded machine's, ``NotFound`` without the claim, ``Forbidden`` when
    its node has joined already, ``RequestInProgress`` while the cluster's agent has not made the token.
    """
    caller = services.prover.caller(proof)
    claim = _claim(services, claim_id, caller)
    cluster = services.store.get(Cluster, claim.cluster_id) if claim is not None and claim.cluster_id else None
    if claim is None or cluster is None or claim.deleting:
        raise NotFound("There is no claim of that id that waits for its machine.")
    _check(services, claim, cluster, caller)
    if claim.phase != PENDING or claim.node_name:
        raise Forbidden("The claim's node has joined already.")
    authority = ca_hash(services, cluster)
    if authority is None or done_fact(claim, TOKEN) not in facts_of(services, claim):
        # The agent makes it with one of its next rounds.
        soon = max(1, services.rules.agent_busy_seconds // 2)
        raise RequestInProgress("The cluster has no token for this machine yet.", retry_after=soon)
    return Invitation(
        endpoint=cluster.endpoint or "",
        token=join_token(key, claim.id, claim.attempt),
        ca_hash=authority,
        node_name=claim.name,
        labels={**claim.node_labels, CLAIM_LABEL: claim.id},
        taints=[*claim.taints, *claim.startup_taints],
        kubelet_args=claim.kubelet_args,
    )


def _claim(services: Services, id: str, caller: MachineIdentity) -> NodeClaim | None:
    """The claim of that id; of a launch group's, whose id its machines carry, the one that was given the caller."""
    if not id.startswith(f"{ids.LAUNCH_GROUP}_"):
        return services.store.get(NodeClaim, id)
    group = services.store.get(LaunchGroup, id)
    if group is None:
        return None
    machine = caller.arn.rpartition("/")[2]
    given = next((claim_id for claim_id, one in group.machines.items() if one["id"] == machine), None)
    if given is None:
        raise Unauthorized(UNRECORDED)
    return services.store.get(NodeClaim, given)


def _check(services: Services, claim: NodeClaim, cluster: Cluster, caller: MachineIdentity) -> None:
    """The caller must be the instance that was recorded for the claim, in its account, with the cluster's node role."""
    placed = claim.placement
    provider = services.store.get(NodeProvider, placed.provider_id) if placed is not None else None
    account = account_of(services, provider) if provider is not None else None
    proven = proven_machine(services, account, cluster, caller)
    if not claim.machine_id or proven != claim.machine_id:
        raise Unauthorized(UNRECORDED)
