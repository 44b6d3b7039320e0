"""A member of a control plane reports that it has joined, and the answer names the members to take out of etcd."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.errors import Forbidden
from stockyard.operations.machines.join import waiting_claim
from stockyard.operations.machines.member_plan import member_fact, member_of, removals
from stockyard.operations.services import Services
from stockyard.ports import Put

AGAIN_SECONDS = 10
"""How soon a member comes again that is not done: others wait for what it is told next."""


@dataclass(frozen=True, slots=True)
class MemberReply:
    """Reply to the machine. ``news``: its report said something for the first time."""

    claim: NodeClaim
    cluster: Cluster
    remove: tuple[str, ...]
    done: bool
    retry_after: int
    news: bool


def report_member(
    services: Services, claim_id: str, proof: Mapping[str, Any], state: str, removed: Sequence[str]
) -> MemberReply:
    """Keep the report, and say what is to be removed. Repeatable.

    ``Unauthorized`` when the proof is not the claim's machine's, ``NotFound`` without the claim, ``Forbidden`` for the
    claim of a worker.
    """
    claim, cluster = waiting_claim(services, claim_id, proof)
    if not claim.control_plane:
        raise Forbidden("The claim is not one of the control plane's.")
    member = {"state": state, "removed": sorted(set(removed)), "machine": claim.machine_id}
    news = member_of(services, claim) != member
    if news:
        services.store.commit(Put(Fact(member_fact(claim), json.dumps(member), services.now())))
    plan = removals(services, cluster, claim)
    remaining = tuple(name for name in (*plan.before, *plan.after) if name not in member["removed"])
    return MemberReply(claim, cluster, remaining, plan.done and not remaining, AGAIN_SECONDS, news)
