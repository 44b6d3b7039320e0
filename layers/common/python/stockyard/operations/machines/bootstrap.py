"""Give a control plane that proves which machine it is what it needs, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.records import CloudAccount, Cluster, Fact, Resource
from stockyard.errors import Forbidden, NotFound, Unauthorized, UnexpectedBehavior, VendorError
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.machines.attest import UNRECORDED, proven_machine
from stockyard.operations.services import Services
from stockyard.ports import MachineIdentity, Put


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the machine gets: its Keycloak client, where to get tokens, and the API's stable name."""

    client_id: str
    client_secret: str = field(repr=False)
    token_url: str
    endpoint: str


def bootstrap_machine(services: Services, cluster_id: str, proof: Mapping[str, Any]) -> Credentials:
    """Check account, role and the recorded machine's id; repeatable until the machine has reported.

    ``Unauthorized`` when the proof is not the recorded machine's, ``NotFound`` without the cluster,
    ``Forbidden`` when the machine has reported already.
    """
    caller = services.attestor.caller(proof)
    cluster = services.store.get(Cluster, cluster_id)
    if cluster is None or cluster.status != "preparing":
        raise NotFound("There is no cluster of that id that waits for its machine.")
    line = recorded_machine(services, cluster, caller)
    if services.store.get(Fact, f"{cluster.id}/reported_ready") is not None:
        raise Forbidden("The machine has reported already.")
    services.store.commit(Put(Fact(f"{cluster.id}/bootstrapped", line.vendor_id, services.now())))
    try:
        secret = services.identity.client_secret(cluster.client_id)
    except VendorError as error:
        raise UnexpectedBehavior(f"The client's secret could not be read ({error.error_type}).") from error
    return Credentials(cluster.client_id, secret, services.settings.token_url, cluster.endpoint or "")


def recorded_machine(services: Services, cluster: Cluster, caller: MachineIdentity) -> Resource:
    """The ledger's line of the control plane's machine that signed. ``Unauthorized`` for any other."""
    account = services.store.get(CloudAccount, str(cluster.cloud_account_id))
    machine_id = proven_machine(services, account, cluster, caller)
    for line in lines_of(services, cluster.id, "control_plane"):
        if line.kind == "instance" and line.vendor_id == machine_id:
            return line
    raise Unauthorized(UNRECORDED)
