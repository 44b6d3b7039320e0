"""Join tokens: a Secret of kube-system that kubeadm's bootstrap signer and authenticator know by its name and type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .kubernetes import Refused, path_of
from .observation import CLAIM, timestamp
from .work import DONE, FAILED, RUNNING, Result, Unfit, Work, moment

NAMESPACE, PREFIX, TYPE = "kube-system", "bootstrap-token-", "bootstrap.kubernetes.io/token"
GROUP = "system:bootstrappers:kubeadm:default-node-token"
_ID, _TOKEN = re.compile(r"[a-z0-9]{6}"), re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
_CLAIM = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_ALREADY = "AlreadyExists"


def bootstrap_token(work: Work) -> Result:
    """Make the token, or give an existing Secret of its id this token.

    The agent may not read Secrets. So it does not look: one that holds the same token already is left as it is by the
    API (a write that changes nothing), any other is replaced in one step.
    """
    identity, _, secret = work.text("token", _TOKEN).partition(".")
    claim = work.text("claim", _CLAIM)
    expires = moment(work.command.arguments.get("expires_at"), "/expires_at")
    if expires is None:
        raise Unfit("/expires_at: a time is needed: a join token that never ends is none of ours")
    data = {"token_id": identity, "expires_at": timestamp(expires)}
    if expires <= work.now:
        return Result(FAILED, f"The token's time ended at {data['expires_at']}.", data)
    wanted = _secret(identity, secret, claim, data["expires_at"])
    path = path_of("namespaces", NAMESPACE, "secrets")
    try:
        work.kube.call("POST", path, wanted)
    except Refused as refused:
        if refused.reason != _ALREADY:
            raise
        return _replaced(work, f"{path}/{PREFIX}{identity}", wanted, data)
    return Result(DONE, f"The token {identity} is made.", data)


def remove_token(work: Work) -> Result:
    """Delete the token's Secret; one that is gone is done."""
    identity = work.text("token_id", _ID)
    try:
        work.kube.call("DELETE", path_of("namespaces", NAMESPACE, "secrets", PREFIX + identity))
    except Refused as refused:
        if refused.status != 404:
            raise
        return Result(DONE, f"There is no token {identity}.", {"token_id": identity})
    return Result(DONE, f"The token {identity} is removed.", {"token_id": identity})


def _replaced(work: Work, path: str, wanted: Mapping[str, Any], data: Mapping[str, str]) -> Result:
    try:
        work.kube.call("PUT", path, wanted)
    except Refused as refused:
        if refused.status != 404:
            raise
        return Result(RUNNING, "A Secret of that name went away just now; it is made with the next round.", data)
    return Result(DONE, f"The token {data['token_id']} was there; it is as ordered.", data)


def _secret(identity: str, secret: str, claim: str, expires: str) -> dict[str, Any]:
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
            "auth-extra-groups": GROUP,
            "description": f"Stockyard: node claim {claim}",
        },
    }
