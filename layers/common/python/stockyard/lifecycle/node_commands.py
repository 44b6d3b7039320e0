"""What a cluster's agent is asked to do for the claims that are being worked on: a pure function of what is known.

Nothing is stored for a command. Its id follows from the claim, so that the agent's result finds its way back, and it is
sent until what it is to bring about is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from stockyard.domain import ids, times
from stockyard.domain.records import NodeClaim
from stockyard.lifecycle.claim import PENDING

TOKEN, DRAIN, DELETE = "bootstrap_token", "drain", "delete_node"
KINDS = (TOKEN, DRAIN, DELETE)
TOKEN_LIFE = timedelta(minutes=30)
NODE = "node"
"""Fact of a claim: what the agent saw of its node, as JSON. ``done_fact`` names what it has done."""


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
    claim: NodeClaim, facts: Mapping[str, str], node: Mapping[str, Any] | None, token: str, now: datetime, drain: int
) -> list[Command]:
    """What the agent has to do for one claim now.

    ``facts`` are what is known of it, ``node`` what the agent saw of its node, ``drain`` how many seconds a drain may
    take. A token is made anew shortly before it ends, as long as the machine has not joined.
    """
    if claim.deleting:
        return _giving_back(claim, facts, node, drain)
    waits = claim.phase == PENDING and claim.placement is not None and claim.machine_id
    if not waits or node is not None or claim.node_name:
        return []
    made = facts.get(done_fact(claim, TOKEN))
    if made is not None and now < times.from_text(made) + TOKEN_LIFE / 2:
        return []
    arguments = {"token": token, "expires_at": times.to_text(now + TOKEN_LIFE), "claim": claim.id}
    return [Command(command_id(claim, TOKEN), TOKEN, None, arguments)]


def _giving_back(
    claim: NodeClaim, facts: Mapping[str, str], node: Mapping[str, Any] | None, drain: int
) -> list[Command]:
    if node is None:
        return []
    arguments = {"node": node["name"], "uid": node["uid"]}
    if done_fact(claim, DRAIN) not in facts:
        deadline = times.to_text(times.from_text(claim.updated_at) + timedelta(seconds=drain))
        return [Command(command_id(claim, DRAIN), DRAIN, deadline, {**arguments, "grace_seconds": None})]
    if done_fact(claim, DELETE) not in facts:
        return [Command(command_id(claim, DELETE), DELETE, None, arguments)]
    return []
