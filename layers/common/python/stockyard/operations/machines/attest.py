"""Proof of a machine's identity: by a request that it signed with keys of its cloud, or by the token of its user
data."""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta
from typing import Any

from stockyard.domain.clusters.join_tokens import machine_token, renewal_token
from stockyard.domain.records import CloudAccount, Cluster, Fact, NodeClaim
from stockyard.domain.values import times
from stockyard.errors import Conflict, Fenced, Unauthorized
from stockyard.operations.engine.advance import Fence
from stockyard.operations.services import Services
from stockyard.ports import Check, MachineIdentity, Put

UNRECORDED = "The machine is not recorded (yet). Try again."
TOKEN_FACT = "machine_token"  # noqa: S105 - a name
TOKEN_LIFE = timedelta(minutes=30)
"""How long a machine token is accepted after it was given out for the last time: starting and joining take less."""
_RENEWED_AFTER = TOKEN_LIFE / 2
"""A phase that still tries to make a machine, because there is no room for it, lengthens a token that is so old: the
machine that it makes at last would have none that is valid. The phase's own limit ends that."""


def proven_machine(services: Services, account: CloudAccount | None, cluster: Cluster, caller: MachineIdentity) -> str:
    """The id of the machine that signed. ``Unauthorized`` unless it has a role of the cluster's in that account."""
    cloud = services.clouds.get(account.provider) if account is not None else None
    if account is not None and cloud is not None:
        number, roles = cloud.machine_roles(account, cluster)
        if caller.account == number and caller.role in roles:
            return caller.machine_id
    raise Unauthorized("The request was not signed by a machine of this cluster.")


def issue_token(services: Services, claim: NodeClaim, fence: Fence[NodeClaim]) -> str:
    """The token for the user data of the claim's machine, the same whenever this attempt asks. Its hash alone is kept.

    ``Fenced`` when the claim is no longer this attempt's.
    """
    return _issued(services, NodeClaim, claim.id, fence, _fact(claim.id, fence.attempt))


def has_token(services: Services, claim: NodeClaim, token: str) -> bool:
    """Whether it is the token of the claim's machine in this attempt, and is still valid."""
    return _is_valid(services, services.store.get(Fact, _fact(claim.id, claim.attempt)), token)


def issue_control_plane_token(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> str:
    """As ``issue_token``, for a control plane's machine. Each attempt has another one, and only the last counts."""
    return _issued(services, Cluster, cluster.id, fence, control_plane_fact(cluster.id))


def has_control_plane_token(services: Services, cluster: Cluster, token: str) -> bool:
    """Whether it is the token of the control plane's machine, and still valid; or, of a cluster that is ready, the one
    that its machine was given to renew its report."""
    if cluster.status == "ready":
        return hmac.compare_digest(renewal_token(services.token_key, cluster.id).encode(), token.encode())
    return _is_valid(services, services.store.get(Fact, control_plane_fact(cluster.id)), token)


def control_plane_fact(cluster_id: str) -> str:
    """The name of the fact that keeps the hash of the control plane's token."""
    return f"{cluster_id}/{TOKEN_FACT}"


def _issued(
    services: Services, kind: type[Cluster | NodeClaim], subject_id: str, fence: Fence[Any], fact_name: str
) -> str:
    """The token of the attempt, on record and not so old that it had to be lengthened."""
    token = machine_token(services.token_key, subject_id, fence.attempt)
    if not _is_valid(services, services.store.get(Fact, fact_name), token, _RENEWED_AFTER):
        guard = Check(kind, subject_id, {"operation_id": fence.operation_id, "attempt": fence.attempt})
        try:
            services.store.commit(guard, Put(Fact(fact_name, _hash(token), services.now())))
        except Conflict as conflict:
            raise Fenced("Another operation or attempt owns it now.") from conflict
    return token


def _is_valid(services: Services, fact: Fact | None, token: str, life: timedelta = TOKEN_LIFE) -> bool:
    if fact is None or services.clock.now() > times.from_text(fact.time) + life:
        return False
    return hmac.compare_digest(fact.value, _hash(token))


def _fact(claim_id: str, attempt: int) -> str:
    return f"{claim_id}/{TOKEN_FACT}-{attempt}"


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
