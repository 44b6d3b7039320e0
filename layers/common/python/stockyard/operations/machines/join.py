"""Tell a claim's machine how to join its cluster, after a proof of identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from stockyard import kubernetes_versions
from stockyard.domain.clusters.control_plane import takes_pods
from stockyard.domain.clusters.join_tokens import certificate_key, join_token
from stockyard.domain.records import Cluster, LaunchGroup, NodeClaim, NodeProvider
from stockyard.domain.values import ids
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import Forbidden, NotFound, RequestInProgress, Unauthorized
from stockyard.lifecycle.nodes.node_claim import PENDING
from stockyard.lifecycle.nodes.node_commands import TOKEN, done_fact
from stockyard.operations.cloud_accounts.of_provider import account_of
from stockyard.operations.machines import overlay
from stockyard.operations.machines.attest import UNRECORDED, has_token, proven_machine
from stockyard.operations.machines.bootstrap import REFUSED
from stockyard.operations.machines.member_plan import has_joined, removals, restore_of
from stockyard.operations.machines.observe import ca_hash, facts_of
from stockyard.operations.machines.overlay import OverlayConfiguration
from stockyard.operations.node_providers.catalog import kubelet_args_of
from stockyard.operations.services import Services
from stockyard.ports import MachineIdentity

CLAIM_LABEL = "stockyard.dev/claim"


@dataclass(frozen=True, slots=True)
class MemberConfiguration:
    """Configuration that a further member of the control plane needs besides. See
    ``models.observations.ControlPlaneJoin``."""

    certificate_key: str = field(repr=False)
    kubernetes_version: str
    remove_before: list[str]
    workloads: bool
    restore: dict[str, Any] | None = None
    """Where the snapshot is that the machine begins from, with the programs that do it; None for one that joins."""


@dataclass(frozen=True, slots=True)
class JoinConfiguration:
    """Configuration that a machine needs to join, and no more. ``token`` is its own, and short-lived.

    ``addresses`` are where the control plane is in its own network: a machine of the same one need not leave it.
    ``internal_endpoint``: only the cluster's own machines know the endpoint's name, and by these addresses.
    ``control_plane``: None for a worker.
    """

    endpoint: str
    internal_endpoint: bool
    addresses: list[str]
    token: str = field(repr=False)
    ca_hash: str
    node_name: str
    labels: dict[str, str]
    taints: list[dict[str, Any]]
    kubelet_args: dict[str, str]
    control_plane: MemberConfiguration | None = None
    overlay: OverlayConfiguration | None = None


def join_machine(
    services: Services,
    key: bytes,
    claim_id: str,
    proof: Mapping[str, Any],
    *,
    overlay_key: str | None = None,
    overlay_local: str | None = None,
) -> JoinConfiguration:
    """Check the proof, a signed request or ``token``; repeatable until the node has joined.

    ``Unauthorized`` when the proof is not the claim's machine's, ``NotFound`` without the claim, ``Forbidden`` when its
    node has joined already, ``RequestInProgress`` while the cluster's agent has not made the token to join with. The
    key of the authorities goes to members of the control plane alone. ``overlay_key`` and ``overlay_local``: see
    ``overlay.admit``.
    """
    claim, cluster = waiting_claim(services, claim_id, proof)
    if claim.phase != PENDING or claim.node_name or has_joined(services, claim):
        raise Forbidden("The claim's node has joined already.")
    authority = ca_hash(services, cluster)
    restore = restore_of(services, cluster, claim) if claim.control_plane else {}
    if restore:
        # The API that would take a token may be away, and this machine asks none.
        authority = authority or ""
    elif authority is None or done_fact(claim, TOKEN) not in facts_of(services, claim):
        # The agent makes it with one of its next rounds.
        soon = max(1, services.settings.agent_busy_seconds // 2)
        raise RequestInProgress("The cluster has no token for this machine yet.", retry_after=soon)
    configuration = overlay.admit(
        services, cluster, claim.id, overlay_key, local=overlay_local, hub=bool(claim.control_plane)
    )
    addresses = [cluster.private_address] if cluster.private_address else []
    return JoinConfiguration(
        endpoint=cluster.machine_endpoint or cluster.endpoint or "",
        internal_endpoint=bool(cluster.machine_endpoint),
        addresses=addresses if configuration is None else overlay.hub_addresses(configuration),
        token=join_token(key, claim.id, claim.attempt),
        ca_hash=authority,
        node_name=claim.name,
        labels={**claim.node_labels, CLAIM_LABEL: claim.id},
        taints=[*claim.taints, *claim.startup_taints],
        kubelet_args={
            **kubelet_args_of(services, claim),
            **({"node-ip": configuration.address} if configuration is not None else {}),
        },
        control_plane=_member(services, key, claim, cluster, restore) if claim.control_plane else None,
        overlay=configuration,
    )


def _member(
    services: Services, key: bytes, claim: NodeClaim, cluster: Cluster, restore: dict[str, str]
) -> MemberConfiguration:
    return MemberConfiguration(
        certificate_key(key, cluster.id),
        kubernetes_versions.TESTED[cluster.kubernetes_version].release,
        list(removals(services, cluster, claim).before),
        takes_pods(cluster.settings),
        dict(restore) or None,
    )


def waiting_claim(services: Services, claim_id: str, proof: Mapping[str, Any]) -> tuple[NodeClaim, Cluster]:
    """The claim of the machine that proves itself, by a signed request or ``token``, and its cluster."""
    token = proof.get("token")
    return _by_signature(services, claim_id, proof) if token is None else _by_token(services, claim_id, token)


def proven_claim(services: Services, claim_id: str, proof: Mapping[str, Any]) -> NodeClaim:
    """The claim of the machine behind a signed request, even if the claim is being deleted."""
    return _by_signature(services, claim_id, proof, leaving=True)[0]


def _by_signature(
    services: Services, id: str, proof: Mapping[str, Any], *, leaving: bool = False
) -> tuple[NodeClaim, Cluster]:
    """The claim whose machine signed, and its cluster: account, role and the recorded machine's id are compared."""
    caller = services.attestor.caller(proof)
    claim = _claim(services, id, caller)
    cluster = _cluster(services, claim, leaving=leaving)
    if claim is None or cluster is None:
        raise NotFound("There is no claim of that id that waits for its machine.")
    _check(services, claim, cluster, caller)
    return claim, cluster


def _by_token(services: Services, id: str, token: str) -> tuple[NodeClaim, Cluster]:
    """The claim of that id and its cluster, if the token is its machine's.

    One answer for every reason: a caller that proves nothing does not learn whether there is such a claim.
    """
    claim = services.store.get(NodeClaim, id)
    cluster = _cluster(services, claim)
    if claim is None or cluster is None or not has_token(services, claim, token):
        raise Unauthorized(REFUSED)
    return claim, cluster


def _cluster(services: Services, claim: NodeClaim | None, *, leaving: bool = False) -> Cluster | None:
    """The cluster that the claim's machine may join; None when it may join none. ``leaving``: or has joined."""
    joins = claim is not None and claim.cluster_id and (leaving or not claim.deleting)
    return services.store.get(Cluster, claim.cluster_id) if claim is not None and joins else None


def _claim(services: Services, id: str, caller: MachineIdentity) -> NodeClaim | None:
    """The claim of that id; of a launch group's, whose id its machines carry, the one that was given the caller."""
    if not id.startswith(f"{ids.LAUNCH_GROUP}_"):
        return services.store.get(NodeClaim, id)
    group = services.store.get(LaunchGroup, id)
    if group is None:
        return None
    for claim_id, machine in group.machines.items():
        if machine["id"] == caller.machine_id:
            return services.store.get(NodeClaim, claim_id)
    raise Unauthorized(UNRECORDED)


def _check(services: Services, claim: NodeClaim, cluster: Cluster, caller: MachineIdentity) -> None:
    """The caller must be the machine that was recorded for the claim, in its account, with the cluster's role."""
    placed = claim.placement
    provider = services.store.get(NodeProvider, placed.provider_id) if placed is not None else None
    account = account_of(services, provider) if provider is not None else None
    proven = proven_machine(services, account, cluster, caller)
    if not claim.machine_id or proven != claim.machine_id:
        raise Unauthorized(UNRECORDED)
