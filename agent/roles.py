"""The agent's rights in a cluster: roles with the verbs that it needs, and an admission policy for Secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NAMESPACE = "stockyard-system"
NAME = "stockyard-agent"
TOKENS = "kube-system"
RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
Document = dict[str, Any]


def document(version: str, kind: str, name: str, namespace: str, **more: Any) -> Document:
    """One Kubernetes object. ``labels`` of ``more`` go into its metadata."""
    labels = {"app.kubernetes.io/name": NAME, **more.pop("labels", {})}
    scope = {"namespace": namespace} if namespace else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **scope, "labels": labels}, **more}


def documents() -> list[Document]:
    """Roles, their bindings, and the policy."""
    return [
        *_bound("", _rule("", "nodes", "get", "list", "patch", "delete"), _rule("", "pods", "list", "delete"),
                _rule("", "pods/eviction", "create")),
        # The agent cannot read Secrets. The policy below allows changes of bootstrap tokens only.
        *_bound(TOKENS, _rule("", "secrets", "create", "update", "delete")),
        *_bound(NAMESPACE, _rule("", "configmaps", "create", "patch"),
                _rule("apps", "deployments", "patch", names=(NAME,))),
        *_tokens_only(),
    ]  # fmt: skip


def _rule(group: str, resource: str, *verbs: str, names: Sequence[str] = ()) -> Document:
    rule: Document = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    return {**rule, "resourceNames": list(names)} if names else rule


def _bound(namespace: str, *rules: Document) -> list[Document]:
    """A role and its binding; without a namespace for the whole cluster."""
    prefix = "" if namespace else "Cluster"
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    reference = {"apiGroup": RBAC, "kind": f"{prefix}Role", "name": NAME}
    return [
        document(f"{RBAC}/v1", f"{prefix}Role", NAME, namespace, rules=list(rules)),
        document(f"{RBAC}/v1", f"{prefix}RoleBinding", NAME, namespace, roleRef=reference, subjects=[subject]),
    ]


def _tokens_only() -> list[Document]:
    """A policy: the agent may write and delete Secrets only if they are bootstrap tokens."""
    starts = "metadata.name.startsWith('bootstrap-token-')"
    checks = {
        "the agent writes bootstrap tokens only": "request.operation == 'DELETE' ||"
        f" (object.{starts} && object.type == 'bootstrap.kubernetes.io/token')",
        "the agent deletes bootstrap tokens only": f"request.operation != 'DELETE' || oldObject.{starts}",
    }
    operations = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["secrets"],
    }
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [operations]},
        "matchConditions": [{"name": "by-the-agent", "expression": f"request.userInfo.username == '{USER}'"}],
        "validations": [{"expression": expression, "message": message} for message, expression in checks.items()],
    }
    binding = {"policyName": NAME, "validationActions": ["Deny"]}
    return [
        document(f"{ADMISSION}/v1", "ValidatingAdmissionPolicy", NAME, "", spec=spec),
        document(f"{ADMISSION}/v1", "ValidatingAdmissionPolicyBinding", NAME, "", spec=binding),
    ]
