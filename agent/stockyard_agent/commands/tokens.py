"""Bootstrap tokens of kubeadm: Secrets in kube-system, which Kubernetes recognises by their name and type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..kubernetes import Refused, path_of
from ..observation import CLAIM, timestamp
from .commands import DONE, FAILED, NAME, RUNNING, CommandContext, InvalidCommand, Result, moment

NAMESPACE, PREFIX, TYPE = "kube-system", "bootstrap-token-", "bootstrap.kubernetes.io/token"
JOINERS = "system:bootstrappers:stockyard:join"
"""The group of every token of ours. kubeadm's own is not among them: its members get a certificate of any name."""
NODE_GROUP = "system:bootstrappers:stockyard:node:"
"""What the other group of a token begins with; the name of its node follows, see ``group_of``."""
_LONGEST = 277
"""Characters of a group that Kubernetes takes from a token."""
_ID, _TOKEN = re.compile(r"[a-z0-9]{6}"), re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
_CLAIM = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_ALREADY = "AlreadyExists"


def bootstrap_token(context: CommandContext) -> Result:
    """Create the token's Secret, or replace an existing Secret with the same token id.

    The token admits the node ``node`` alone (see ``certificates``), and none that is somebody else's. The agent may not
    read Secrets, so it replaces without comparing. An update with equal content changes nothing.
    """
    identity, _, secret = context.text("token", _TOKEN).partition(".")
    claim, node = context.text("claim", _CLAIM), context.text("node", NAME)
    group = group_of(node)
    if len(group) > _LONGEST:
        raise InvalidCommand(f"/node: a token can name nodes of up to {_LONGEST - len(NODE_GROUP)} characters")
    expires = moment(context.command.arguments.get("expires_at"), "/expires_at")
    if expires is None:
        raise InvalidCommand("/expires_at: a time is needed: a join token that never ends is none of ours")
    data = {"token_id": identity, "expires_at": timestamp(expires)}
    if expires <= context.now:
        return Result(FAILED, f"The token's time ended at {data['expires_at']}.", data)
    owner = _owner(context, node)
    if owner not in (None, claim):
        return Result(FAILED, f"There is a node {node} that is not the claim's: it gets no second machine.", data)
    secret_object = secret_of(identity, secret, claim, node, data["expires_at"])
    path = path_of("namespaces", NAMESPACE, "secrets")
    try:
        context.kube.call("POST", path, secret_object)
    except Refused as refused:
        if refused.reason != _ALREADY:
            raise
        return _replaced(context, f"{path}/{PREFIX}{identity}", secret_object, data)
    return Result(DONE, f"The token {identity} is made.", data)


def remove_token(context: CommandContext) -> Result:
    """Delete the token's Secret. The command is done as well when there is none."""
    identity = context.text("token_id", _ID)
    try:
        context.kube.call("DELETE", path_of("namespaces", NAMESPACE, "secrets", PREFIX + identity))
    except Refused as refused:
        if refused.status != 404:
            raise
        return Result(DONE, f"There is no token {identity}.", {"token_id": identity})
    return Result(DONE, f"The token {identity} is removed.", {"token_id": identity})


def _replaced(context: CommandContext, path: str, secret_object: Mapping[str, Any], data: Mapping[str, str]) -> Result:
    try:
        context.kube.call("PUT", path, secret_object)
    except Refused as refused:
        if refused.status != 404:
            raise
        return Result(RUNNING, "A Secret of that name went away just now; it is made with the next round.", data)
    return Result(DONE, f"The token {data['token_id']} was there; it is as ordered.", data)


def group_of(node: str) -> str:
    """The group by which a token names its node. A group may have no dots, and a node's name no colons."""
    return NODE_GROUP + node.replace(".", ":")


def node_of(group: str) -> str:
    """The node of a token's group; see ``group_of``."""
    return group.removeprefix(NODE_GROUP).replace(":", ".")


def _owner(context: CommandContext, node: str) -> str | None:
    """The claim of the node of that name: empty when it has none; None when there is no such node."""
    try:
        labels = context.kube.call("GET", path_of("nodes", node))["metadata"].get("labels") or {}
    except Refused as refused:
        if refused.status != 404:
            raise
        return None
    return str(labels.get(CLAIM, ""))


def secret_of(identity: str, secret: str, claim: str, node: str, expires: str) -> dict[str, Any]:
    """The Secret of one token. The policy of ``agent/roles.py`` lets the agent write nothing else."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": PREFIX + identity,
            "namespace": NAMESPACE,
            "labels": {"app.kubernetes.io/managed-by": "stockyard-agent", CLAIM: claim},
        },
        "type": TYPE,
        "stringData": {
            "token-id": identity,
            "token-secret": secret,
            "expiration": expires[:19] + "Z",
            "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true",
            "auth-extra-groups": f"{JOINERS},{group_of(node)}",
            "description": f"Stockyard: node {node} of node claim {claim}",
        },
    }
