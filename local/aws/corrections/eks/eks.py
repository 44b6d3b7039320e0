"""EKS, put together: moto knows clusters without states, no add-ons and no access entries, and its groups have no
machines."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from moto.core.base_backend import BackendDict
from moto.iam.models import get_account_id_from
from moto.sts.models import sts_backends

from local.aws.corrections.compute.interfaces import dependencies_hold
from local.aws.corrections.eks.node_group_updates import NodeGroupUpdates
from local.aws.corrections.eks.scaling_calls import scaling_groups
from local.aws.corrections.eks.scaling_groups import LOCK
from local.aws.corrections.eks.things import Document, Thing, bad_parameter, missing
from local.aws.corrections.rest_services import ServiceRefusal, served, service_model
from local.aws.corrections.roles import principal_arn


class EksBackend(NodeGroupUpdates):
    """EKS of one account and region. A method an operation, with the parameters of the API."""

    def tag_resource(self, parameters: Mapping[str, Any]) -> Document:
        self._by_arn(parameters["resourceArn"]).document["tags"] |= parameters["tags"]
        return {}

    def untag_resource(self, parameters: Mapping[str, Any]) -> Document:
        tags = self._by_arn(parameters["resourceArn"]).document["tags"]
        for key in parameters["tagKeys"]:
            tags.pop(key, None)
        return {}

    def list_tags_for_resource(self, parameters: Mapping[str, Any]) -> Document:
        return {"tags": dict(self._by_arn(parameters["resourceArn"]).document["tags"])}

    def _by_arn(self, arn: str) -> Thing:
        for cluster in self.clusters.values():
            parts = (cluster.groups, cluster.addons, cluster.entries, cluster.associations)
            for thing in (cluster, *(thing for things in parts for thing in things.values())):
                if arn in {thing.document.get(field) for field in _ARNS}:
                    return thing
        raise missing(f"No resource found for ARN: {arn}")


eks_backends = BackendDict(EksBackend, "eks")
_ARNS = ("nodegroupArn", "addonArn", "accessEntryArn", "associationArn", "arn")
_CREATED = ("cluster", "addon", "accessEntry", "nodegroup", "association")


def answer(access_key: str, region: str, operation: str, parameters: Mapping[str, Any]) -> Document:
    """Answer of EKS to the owner of the key. Raises ``ServiceRefusal``."""
    account = get_account_id_from(access_key)
    backend = eks_backends[account][region]
    method = getattr(backend, re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower(), None)
    if method is None:
        raise missing(f"the imitation of EKS does not know {operation}")
    with LOCK:
        backend.caller = principal_arn(sts_backends[account]["aws"].get_caller_identity(access_key, region)[1])
        backend.settle()
        return _once(backend, operation, parameters, method)


def _once(backend: EksBackend, operation: str, parameters: Mapping[str, Any], method: Any) -> Document:
    """A repeated client token gives the same answer while what it made is there, or a refusal."""
    token = parameters.get("clientRequestToken")
    if not token:
        return dict(method(parameters))
    fields = {name: value for name, value in parameters.items() if name != "clientRequestToken"}
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True, default=str).encode()).hexdigest()
    earlier = backend.tokens.get((operation, token))
    if earlier is not None and _is_there(backend, earlier[1]):
        if earlier[0] != digest:
            raise bad_parameter("The client request token was used with other parameters")
        return copy.deepcopy(earlier[1])
    result: Document = method(parameters)
    backend.tokens[operation, token] = digest, copy.deepcopy(result)
    return result


def _is_there(backend: EksBackend, earlier: Document) -> bool:
    documents = [earlier[name] for name in _CREATED if name in earlier]
    if not documents:
        return True
    try:
        for document in documents:
            backend._by_arn(next(document[name] for name in _ARNS if name in document))
    except ServiceRefusal:
        return False
    return True


def settle(account: str, region: str) -> None:
    """One look at EKS of that account: what has its time behind it is done."""
    with LOCK:
        eks_backends[account][region].settle()


@contextmanager
def eks_service() -> Iterator[None]:
    """Inside this context moto's server answers requests that are signed for EKS, and has the groups of its nodes."""
    service_model("eks")
    with ExitStack() as stack:
        stack.enter_context(served("eks", answer))
        stack.enter_context(dependencies_hold())
        stack.enter_context(scaling_groups())
        yield
