"""Steps of a stack that make nothing of their own: waiting on for a cluster, and the proof of an account's credentials.

Each is a custom resource too, so that it has its place in the order of the stack. Its deletion does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from stockyard_stack_resources.api import Api
from stockyard_stack_resources.errors import StackResourceError
from stockyard_stack_resources.identity import idempotency_key, token_of
from stockyard_stack_resources.kinds import KINDS
from stockyard_stack_resources.progress import advance

SPREADING = timedelta(minutes=5)
"""How long a new role may take until all of AWS knows it."""
Step = Callable[[Api, Mapping[str, Any], str, timedelta], Mapping[str, Any] | None]
"""(API, document, key of the request, time since it began) -> the outputs, None before they are there."""


def wait_for_cluster(api: Api, document: Mapping[str, Any], _key: str, _passed: timedelta) -> Mapping[str, Any] | None:
    """Outputs of the cluster once it is ready. Whatever fails in it fails this."""
    record = api.get(f"clusters/{document['cluster']}")
    if record is None:
        raise StackResourceError(f"clusters/{document['cluster']} is gone")
    return advance(api, KINDS["Cluster"], record.body, ("",))


def verify_account(api: Api, document: Mapping[str, Any], key: str, passed: timedelta) -> Mapping[str, Any] | None:
    """Outputs of the account once its credentials have been proven; tried again while a new role spreads."""
    path = f"cloud-accounts/{document['account']}"
    record = api.get(path)
    if record is None:
        raise StackResourceError(f"{path} is gone")
    if record.body["verification"] != "verified":
        proof = api.call("POST", f"{path}/verify", key=idempotency_key(key, str(int(passed.total_seconds()))))
        record = proof
    if record.body["verification"] == "verified":
        return dict(KINDS["CloudAccount"].outputs(record.body))
    if passed > SPREADING:
        raise StackResourceError(f"{path} is not verified: {record.body['verification_message']}")
    return None


STEPS: Mapping[str, Step] = {"ClusterWait": wait_for_cluster, "AccountVerification": verify_account}
"""The steps by the kind of their resource."""


def physical_id_of_step(event: Mapping[str, Any]) -> str:
    """Physical id of a step; the same for its whole life."""
    kind = str(event["ResourceProperties"]["Kind"])
    return f"{kind}/{token_of(str(event['StackId']), str(event['LogicalResourceId']), kind, {})}"
