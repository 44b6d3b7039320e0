"""A Data Lifecycle Manager, which moto does not have: its policies, and one snapshot of each new policy's volumes.

No night passes in the local cloud, so a policy takes its first snapshot at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, unquote

from moto.core.base_backend import BackendDict, BaseBackend
from moto.ec2.models import ec2_backends
from moto.iam.models import get_account_id_from
from moto.moto_api._internal import mock_random
from moto.moto_server.werkzeug_app import DomainDispatcherApplication

from local.aws.corrections.rest_services import REFUSALS, ServiceRefusal

_SIGNED = re.compile(r"Credential=([^/]+)/\d{8}/([^/]+)/dlm/")


class NoSuchPolicy(Exception):
    """The policy is not there."""

    code, status = "ResourceNotFoundException", 404


class LifecyclePoliciesBackend(BaseBackend):  # type: ignore[misc]
    """The policies of one account and region. A method an operation, with the parameters of the API."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.policies: dict[str, dict[str, Any]] = {}

    def create_lifecycle_policy(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        policy_id = f"policy-{mock_random.get_random_hex(17)}"
        fields = ("Description", "State", "Tags", "ExecutionRoleArn", "PolicyDetails")
        self.policies[policy_id] = {"PolicyId": policy_id, **{name: parameters[name] for name in fields}}
        self._take(parameters["PolicyDetails"])
        return {"PolicyId": policy_id}

    def get_lifecycle_policies(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        ids = parameters.get("PolicyIds") or sorted(self.policies)
        summary = ("PolicyId", "Description", "State", "Tags")
        return {"Policies": [{name: self._policy(policy_id)[name] for name in summary} for policy_id in ids]}

    def get_lifecycle_policy(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        policy = self._policy(parameters["PolicyId"])
        return {"Policy": {**policy, "PolicyArn": self._arn(policy["PolicyId"])}}

    def update_lifecycle_policy(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        policy_id = self._policy(parameters["PolicyId"])["PolicyId"]
        changed = {name: parameters[name] for name in ("Description", "State", "PolicyDetails") if name in parameters}
        self.policies[policy_id] = {**self.policies[policy_id], **changed}
        return {}

    def tag_resource(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        policy = self._policy(parameters["ResourceArn"].rpartition("/")[2])
        self.policies[policy["PolicyId"]] = {**policy, "Tags": {**policy["Tags"], **parameters["Tags"]}}
        return {}

    def untag_resource(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        policy = self._policy(parameters["ResourceArn"].rpartition("/")[2])
        tags = {key: value for key, value in policy["Tags"].items() if key not in parameters["TagKeys"]}
        self.policies[policy["PolicyId"]] = {**policy, "Tags": tags}
        return {}

    def delete_lifecycle_policy(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        del self.policies[self._policy(parameters["PolicyId"])["PolicyId"]]
        return {}

    def _arn(self, policy_id: str) -> str:
        return f"arn:aws:dlm:{self.region_name}:{self.account_id}:policy/{policy_id}"

    def _policy(self, policy_id: str) -> dict[str, Any]:
        if policy_id not in self.policies:
            raise NoSuchPolicy(policy_id)
        return self.policies[policy_id]

    def _take(self, details: Mapping[str, Any]) -> None:
        ec2 = ec2_backends[self.account_id][self.region_name]
        targets = {(tag["Key"], tag["Value"]) for tag in details["TargetTags"]}
        for volume in list(ec2.volumes.values()):
            if targets.intersection((tag["key"], tag["value"]) for tag in volume.get_tags()):
                for schedule in details["Schedules"]:
                    snapshot = ec2.create_snapshot(volume.id, "by a policy")
                    snapshot.add_tags({tag["Key"]: tag["Value"] for tag in schedule["TagsToAdd"]})


dlm_backends = BackendDict(LifecyclePoliciesBackend, "dlm")
OPERATIONS: Mapping[str, Callable[[LifecyclePoliciesBackend, Mapping[str, Any]], dict[str, Any]]] = {
    "CreateLifecyclePolicy": LifecyclePoliciesBackend.create_lifecycle_policy,
    "GetLifecyclePolicies": LifecyclePoliciesBackend.get_lifecycle_policies,
    "GetLifecyclePolicy": LifecyclePoliciesBackend.get_lifecycle_policy,
    "UpdateLifecyclePolicy": LifecyclePoliciesBackend.update_lifecycle_policy,
    "TagResource": LifecyclePoliciesBackend.tag_resource,
    "UntagResource": LifecyclePoliciesBackend.untag_resource,
    "DeleteLifecyclePolicy": LifecyclePoliciesBackend.delete_lifecycle_policy,
}


def answer(access_key: str, region: str, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Answer of the service to the owner of the key. Raises ``NoSuchPolicy``."""
    return OPERATIONS[operation](dlm_backends[get_account_id_from(access_key)][region], parameters)


@contextmanager
def lifecycle_policies() -> Iterator[None]:
    """Inside this context moto's server answers requests that are signed for the service."""
    original = DomainDispatcherApplication.__call__

    def call(self: Any, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        signed = _SIGNED.search(environ.get("HTTP_AUTHORIZATION", ""))
        if signed is None:
            passed: Iterable[bytes] = original(self, environ, start_response)
            return passed
        headers = [("Content-Type", "application/json")]
        try:
            operation, parameters = _request(environ)
            for refusing in REFUSALS:
                refusing(signed[1], signed[2], f"dlm:{operation}", parameters)
            body, status = answer(signed[1], signed[2], operation, parameters), "200 OK"
        except (NoSuchPolicy, ServiceRefusal) as error:
            body, status = {"message": str(error)}, f"{error.status} -"
            headers.append(("x-amzn-ErrorType", error.code))
        start_response(status, headers)
        return [json.dumps(body).encode()]

    with patch.object(DomainDispatcherApplication, "__call__", call):
        yield


def _request(environ: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Operation and parameters, by method and path."""
    method, path = environ["REQUEST_METHOD"], unquote(environ["PATH_INFO"])
    query = parse_qs(environ.get("QUERY_STRING", ""))
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = json.loads(environ["wsgi.input"].read(length)) if length else {}
    if path.startswith("/tags/"):
        arn = {"ResourceArn": path.removeprefix("/tags/")}
        keys = {"TagKeys": query.get("tagKeys", [])}
        return ("TagResource", {**arn, **body}) if method == "POST" else ("UntagResource", {**arn, **keys})
    policy_id = path.removeprefix("/policies").strip("/")
    if method == "GET" and not policy_id:
        return "GetLifecyclePolicies", {"PolicyIds": query.get("policyIds", [])}
    names = {"DELETE": "DeleteLifecyclePolicy", "GET": "GetLifecyclePolicy", "PATCH": "UpdateLifecyclePolicy"}
    return names.get(method, "CreateLifecyclePolicy"), {**body, **({"PolicyId": policy_id} if policy_id else {})}
