"""The agent's rights in a cluster: roles with the verbs that it needs, and an admission policy for Secrets."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

NAMESPACE = "stockyard-system"
NAME = "stockyard-agent"
TOKENS = "kube-system"
RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
LABEL = "app.kubernetes.io/managed-by"
PREFIX, TYPE = "bootstrap-token-", "bootstrap.kubernetes.io/token"
GROUP = "system:bootstrappers:kubeadm:default-node-token"
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
    """A policy: of all Secrets, the agent may write bootstrap tokens that only join and that end, and it may change and
    delete only those that it wrote."""
    own = "has({0}.metadata.labels) && '{1}' in {0}.metadata.labels && {0}.metadata.labels['{1}'] == '{2}'".format
    data = "has(object.data) && '{0}' in object.data".format
    rules = {
        "the agent writes bootstrap tokens only": f"object.type == '{TYPE}'",
        # The policy sees values in base64 and cannot decode them. Kubernetes takes no token whose id is not its name's.
        "a bootstrap token is named after its id": f"object.metadata.name.matches('^{PREFIX}[a-z0-9]{{6}}$')"
        f" && {data('token-id')} && size(object.data['token-id']) == 8",
        "a bootstrap token of the agent joins nodes and nothing else": data("auth-extra-groups")
        + f" && object.data['auth-extra-groups'] == '{base64.b64encode(GROUP.encode()).decode()}'",
        "a bootstrap token of the agent ends": data("expiration"),
        "a bootstrap token of the agent carries its label": own("object", LABEL, NAME),
    }
    checks = {message: f"request.operation == 'DELETE' || ({rule})" for message, rule in rules.items()}
    checks["the agent changes and deletes its own bootstrap tokens only"] = (
        f"request.operation == 'CREATE' || (oldObject.type == '{TYPE}' && {own('oldObject', LABEL, NAME)})"
    )
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
