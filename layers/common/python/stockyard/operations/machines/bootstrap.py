"""Give a control plane its configuration once the machine has proven its identity, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from stockyard.domain.clusters.join_tokens import certificate_key, renewal_token
from stockyard.domain.records import CloudAccount, Cluster, Fact
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import (
    Conflict,
    Forbidden,
    NotFound,
    RequestInProgress,
    Unauthorized,
    UnexpectedBehavior,
    VendorError,
)
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.machines import overlay
from stockyard.operations.machines.attest import UNRECORDED, has_control_plane_token, proven_machine
from stockyard.operations.machines.member_plan import members_of
from stockyard.operations.machines.overlay import OverlayConfiguration
from stockyard.operations.services import Services
from stockyard.ports import Create, MachineIdentity, Put

REFUSED = "the proof of identity is not accepted"
UNKNOWN = "unknown"
"""What stands for the id of a machine that proved itself before anybody has recorded it."""
ENDPOINT_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials for the machine: its Keycloak client, where to get tokens, and the API's stable name.

    ``machine_endpoint`` is the API as the cluster's machines know it, empty where that is ``endpoint``;
    ``certificate_names`` is what its certificate has to name besides these two. By ``renewal_token`` the machine proves
    itself from now on; it is empty where it signs. With ``certificate_key`` it seals the authorities for the members
    that come after it.
    """

    client_id: str
    client_secret: str = field(repr=False)
    token_url: str
    endpoint: str
    machine_endpoint: str = ""
    certificate_names: tuple[str, ...] = ()
    renewal_token: str = field(default="", repr=False)
    certificate_key: str = field(default="", repr=False)
    overlay: OverlayConfiguration | None = None


def bootstrap_machine(
    services: Services,
    cluster_id: str,
    proof: Mapping[str, Any],
    *,
    overlay_key: str | None = None,
    overlay_local: str | None = None,
) -> Credentials:
    """Check the proof, a signed request or ``token``; repeatable until the machine has reported.

    ``Unauthorized`` when the proof is not the recorded machine's, ``NotFound`` without the cluster, ``Forbidden`` when
    the machine has reported already or another one initialises the control plane, ``RequestInProgress`` while the
    endpoint is not known yet. ``overlay_key`` and ``overlay_local``: see ``overlay.admit``.
    """
    cluster, machine_id = waiting_cluster(services, cluster_id, proof)
    if services.store.get(Fact, f"{cluster.id}/reported_ready") is not None:
        raise Forbidden("The machine has reported already.")
    if not cluster.endpoint:
        # A machine without a balancer before it may be up before anybody has seen its address.
        raise RequestInProgress("The cluster's endpoint is not known yet.", retry_after=ENDPOINT_SECONDS)
    _lease(services, cluster, machine_id)
    try:
        secret = services.identity.client_secret(cluster.client_id)
    except VendorError as error:
        raise UnexpectedBehavior(f"The client's secret could not be read ({error.error_type}).") from error
    signs = proof.get("token") is None
    return Credentials(
        cluster.client_id,
        secret,
        services.settings.token_url,
        cluster.endpoint,
        cluster.machine_endpoint or "",
        (cluster.private_address,) if cluster.machine_endpoint and cluster.private_address else (),
        "" if signs else renewal_token(services.token_key, cluster.id),
        certificate_key(services.token_key, cluster.id),
        overlay.admit(services, cluster, cluster.id, overlay_key, local=overlay_local, hub=True),
    )


def _lease(services: Services, cluster: Cluster, machine_id: str) -> None:
    """Let this machine initialise the control plane, and no other one while it is there."""
    holder = services.store.get(Fact, f"{cluster.id}/bootstrapped")
    lease = Fact(f"{cluster.id}/bootstrapped", machine_id, services.now())
    if holder is None:
        try:
            services.store.commit(Create(lease))
        except Conflict as conflict:
            raise RequestInProgress("Another machine has just asked.", retry_after=ENDPOINT_SECONDS) from conflict
    elif holder.value != machine_id:
        if _is_recorded(services, cluster, holder.value):
            raise Forbidden("Another machine initialises the control plane.")
        services.store.commit(Put(lease))


def waiting_cluster(services: Services, cluster_id: str, proof: Mapping[str, Any]) -> tuple[Cluster, str]:
    """The cluster that waits for the machine which proves itself, and the machine's id. Raises as
    ``bootstrap_machine``."""
    caller = services.attestor.caller(proof) if proof.get("token") is None else None
    cluster = services.store.get(Cluster, cluster_id)
    waits = cluster is not None and cluster.status == "preparing"
    if caller is None:
        # One answer for every reason: who proves nothing does not learn whether there is such a cluster.
        if cluster is None or not waits:
            raise Unauthorized(REFUSED)
        return cluster, _by_token(services, cluster, str(proof["token"]))
    if cluster is None or not waits:
        raise NotFound("There is no cluster of that id that waits for its machine.")
    return cluster, _by_signature(services, cluster, caller)


def recorded_machine(services: Services, cluster: Cluster, proof: Mapping[str, Any]) -> str:
    """The id of the control plane's machine that proves itself. ``Unauthorized`` for any other."""
    if proof.get("token") is not None:
        return _by_token(services, cluster, str(proof["token"]))
    return _by_signature(services, cluster, services.attestor.caller(proof))


def _by_token(services: Services, cluster: Cluster, token: str) -> str:
    if not has_control_plane_token(services, cluster, token):
        raise Unauthorized(REFUSED)
    return cluster.instance_id or UNKNOWN


def _by_signature(services: Services, cluster: Cluster, caller: MachineIdentity) -> str:
    account = services.store.get(CloudAccount, str(cluster.cloud_account_id))
    machine_id = proven_machine(services, account, cluster, caller)
    if not _is_recorded(services, cluster, machine_id):
        raise Unauthorized(UNRECORDED)
    return machine_id


def _is_recorded(services: Services, cluster: Cluster, machine_id: str) -> bool:
    """Whether the machine was made for the control plane and has not gone, as its first member or another one."""
    lines = lines_of(services, cluster.id, "control_plane")
    if any(line.kind == "instance" and line.vendor_id == machine_id for line in lines):
        return True
    return any(claim.machine_id == machine_id for claim in members_of(services, cluster))
