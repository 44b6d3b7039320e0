"""The tag of ours on load balancers of Services, without which AWS's controller is refused them: the boundary of the
roles of clusters on EKS asks for it, and by it a deletion may remove what is left.

The controller takes it from an annotation. An API server from Kubernetes 1.36 on gives it to each Service by a policy;
an older one can only warn whoever makes a Service without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stockyard.errors import VendorNotFound
from stockyard.providers.clouds.aws import tags
from stockyard.providers.kubernetes.client import KubernetesApi

ANNOTATION = "service.beta.kubernetes.io/aws-load-balancer-additional-resource-tags"
"""Tags for AWS's controllers to give a Service's load balancer and its parts: ``key=value,key=value``."""
NAME = "stockyard-balancer-tags"
_API = "admissionregistration.k8s.io/v1"
_SERVICES = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["services"]}
_BALANCED = {"name": "balanced", "expression": "object.spec.type == 'LoadBalancer'"}
_VALUE = f"object.metadata.annotations['{ANNOTATION}']"
_PRESENT = f"has(object.metadata.annotations) && '{ANNOTATION}' in object.metadata.annotations"


def apply(api: KubernetesApi, installation: str) -> None:
    """Apply the policy that gives the annotation; the one that warns, where the cluster serves no such policies."""
    try:
        for document in giving(installation):
            api.apply(document)
    except VendorNotFound:
        for document in warning(installation):
            api.apply(document)


def giving(installation: str) -> Iterator[Mapping[str, Any]]:
    """The policy that adds our tag to whatever a Service asks for, and its binding."""
    pair = _pair(installation)
    value = f"{_PRESENT} && {_VALUE} != '' ? {_VALUE} + ',{pair}' : '{pair}'"
    path = f"'/metadata/annotations/' + jsonpatch.escapeKey('{ANNOTATION}')"
    first = "has(object.metadata.annotations) ? [] : [JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}]"
    patch = f"({first}) + [JSONPatch{{op: 'add', path: {path}, value: {value}}}]"
    yield from _policy(
        "Mutating",
        {
            "matchConditions": [_BALANCED, {"name": "lacking", "expression": f"!({_has(pair)})"}],
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        },
        {},
    )


def warning(installation: str) -> Iterator[Mapping[str, Any]]:
    """The policy that warns of a Service without the annotation, and its binding."""
    pair = _pair(installation)
    text = f"AWS refuses this Service a load balancer without the annotation {ANNOTATION}: {pair}"
    yield from _policy(
        "Validating",
        {"matchConditions": [_BALANCED], "validations": [{"expression": _has(pair), "message": text}]},
        {"validationActions": ["Warn"]},
    )


def _pair(installation: str) -> str:
    return f"{tags.INSTALLATION}={installation}"


def _has(pair: str) -> str:
    return f"{_PRESENT} && '{pair}' in {_VALUE}.split(',')"


def _policy(sort: str, spec: Mapping[str, Any], of_binding: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A policy that refuses nothing, also where it cannot be judged, and its binding."""
    meta = {"name": NAME, "labels": {"app.kubernetes.io/name": "stockyard"}}
    whole = {"failurePolicy": "Ignore", "matchConstraints": {"resourceRules": [_SERVICES]}, **spec}
    yield {"apiVersion": _API, "kind": f"{sort}AdmissionPolicy", "metadata": meta, "spec": whole}
    binding = {"policyName": NAME, **of_binding}
    yield {"apiVersion": _API, "kind": f"{sort}AdmissionPolicyBinding", "metadata": meta, "spec": binding}
