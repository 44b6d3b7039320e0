"""The agent's rights in a cluster: roles with the needed verbs, admission policies for the rest, and the rights of
machines with its join tokens."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

NAMESPACE = "stockyard-system"
NAME = "stockyard-agent"
TOKENS = "kube-system"
RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
LABEL = "app.kubernetes.io/managed-by"
PREFIX, TYPE = "bootstrap-token-", "bootstrap.kubernetes.io/token"
OPAQUE, KUBECONFIG = "Opaque", "stockyard.dev/kubeconfig"
JOINERS, NODE_GROUP = "system:bootstrappers:stockyard:join", "system:bootstrappers:stockyard:node:"
CERTIFICATES, REQUESTS = "certificates.k8s.io", "certificatesigningrequests"
EXTENSIONS, DEFINITIONS = "apiextensions.k8s.io", "customresourcedefinitions"
MIRROR, MIRRORED = "karpenter.sh", "stockyard.dev/mirrored"
CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
JOIN = "stockyard-join"
OVERLAY = "overlay"
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
Document = dict[str, Any]
_READ = (
    ("", "persistentvolumeclaims"), ("", "persistentvolumes"), ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "csinodes"), ("apps", "daemonsets"), ("", "limitranges"), ("", "namespaces"),
    ("policy", "poddisruptionbudgets"),
)  # fmt: skip

_KINDS = ("nodepools", "nodeclaims")
_OBJECTS = ("object", "oldObject")
_COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"

# A policy sees values in base64 and cannot decode them. These are 72 bytes, so they end where four characters do, and
# behind them a comma is one of three pairs.
_GROUPS = base64.b64encode(f"{JOINERS},{NODE_GROUP}".encode()).decode()
_THIRD_GROUP = f"^.{{{len(_GROUPS)}}}(....)*(L[A-P]|.[CSiy][wxyz]|..[AEIMQUYcgkosw048]s)"


def document(version: str, kind: str, name: str, namespace: str, **more: Any) -> Document:
    """One Kubernetes object. ``labels`` of ``more`` go into its metadata."""
    labels = {"app.kubernetes.io/name": NAME, **more.pop("labels", {})}
    scope = {"namespace": namespace} if namespace else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **scope, "labels": labels}, **more}


def documents() -> list[Document]:
    """Roles, their bindings, and the policies."""
    return [
        *_bound("", _rule("", "nodes", "get", "list", "watch", "patch", "delete"),
                _rule("", "pods", "list", "watch", "delete"), _rule("", "pods/eviction", "create"),
                _rule("", "secrets", "create", "update", "delete"),
                # Where pods that wait can run depends on their volumes and on pods of other namespaces, every node
                # runs the DaemonSets, as large as LimitRanges make them, and budgets say which pods may be moved.
                *(_rule(group, name, "list") for group, name in _READ), _rule(CERTIFICATES, REQUESTS, "list"),
                _rule(CERTIFICATES, f"{REQUESTS}/approval", "update"),
                _rule(CERTIFICATES, "signers", "approve", names=(CLIENT, SERVING)),
                # The policies below hold these to the mirror of Stockyard's pools and claims.
                _rule(EXTENSIONS, DEFINITIONS, "create"),
                *(_rule(MIRROR, name, "list", "create", "update", "delete") for name in _KINDS),
                *(_rule(MIRROR, f"{name}/status", "update") for name in _KINDS)),
        # The agent cannot read Secrets. The policy below allows changes of bootstrap tokens only, and of Secrets with
        # kubeconfigs, which stand in the namespace that somebody asks for.
        *_bound(NAMESPACE, _rule("", "configmaps", "create", "patch"),
                _rule("apps", "deployments", "patch", names=(NAME,))),
        *_tokens_only(),
        *_own_requests_only(),
        *_definitions_only(),
        *_mirror_only(),
        *_own_pools_do_nothing(),
        *_joining(),
        # Machines of an overlay read the list of all of them.
        *_bound(NAMESPACE, _rule("", "configmaps", "get", names=(OVERLAY,)), name=f"stockyard-{OVERLAY}",
                subject={"kind": "Group", "apiGroup": RBAC, "name": "system:nodes"}),
    ]  # fmt: skip


def _joining() -> list[Document]:
    """Rights that a machine needs until its kubelet has its certificate: what kubeadm gives to those with its own
    tokens, but not the approval of every request."""
    group = {"kind": "Group", "apiGroup": RBAC, "name": JOINERS}
    configuration = ("kubeadm-config", "kubelet-config", "kube-proxy")
    return [
        *_bound("", _rule(CERTIFICATES, REQUESTS, "create", "get", "list", "watch"), _rule("", "nodes", "get"),
                name=JOIN, subject=group),
        # The authorities, for members of the control plane: sealed with a key that is not in the cluster.
        *_bound(TOKENS, _rule("", "configmaps", "get", names=configuration),
                _rule("", "secrets", "get", names=("kubeadm-certs",)), name=JOIN, subject=group),
    ]  # fmt: skip


def _rule(group: str, resource: str, *verbs: str, names: Sequence[str] = ()) -> Document:
    rule: Document = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    return {**rule, "resourceNames": list(names)} if names else rule


_AGENT = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}


def _bound(namespace: str, *rules: Document, name: str = NAME, subject: Document = _AGENT) -> list[Document]:
    """A role and its binding; without a namespace for the whole cluster."""
    prefix = "" if namespace else "Cluster"
    reference = {"apiGroup": RBAC, "kind": f"{prefix}Role", "name": name}
    return [
        document(f"{RBAC}/v1", f"{prefix}Role", name, namespace, rules=list(rules)),
        document(f"{RBAC}/v1", f"{prefix}RoleBinding", name, namespace, roleRef=reference, subjects=[subject]),
    ]


def _tokens_only() -> list[Document]:
    """A policy: of all Secrets, the agent may write bootstrap tokens that only join and that end, and kubeconfigs; it
    may change and delete only those that it wrote, and none becomes one of the other kind."""
    own = "has({0}.metadata.labels) && '{1}' in {0}.metadata.labels && {0}.metadata.labels['{1}'] == '{2}'".format
    data = "has(object.data) && '{0}' in object.data".format
    kubeconfig = (
        "({0}.type == '" + OPAQUE + "' && has({0}.metadata.labels) && '" + KUBECONFIG + "' in {0}.metadata.labels"
        " && {0}.metadata.namespace != '" + TOKENS + "')"
    ).format
    rules = {
        "the agent writes bootstrap tokens and kubeconfigs only": f"object.type == '{TYPE}'"
        f" && object.metadata.namespace == '{TOKENS}'",
        # Kubernetes takes no token whose id is not its name's.
        "a bootstrap token is named after its id": f"object.metadata.name.matches('^{PREFIX}[a-z0-9]{{6}}$')"
        f" && {data('token-id')} && size(object.data['token-id']) == 8",
        "a bootstrap token of the agent joins one node and nothing else": f"{data('auth-extra-groups')}"
        f" && object.data['auth-extra-groups'].startsWith('{_GROUPS}')"
        f" && !object.data['auth-extra-groups'].matches('{_THIRD_GROUP}')",
        "a bootstrap token of the agent ends": data("expiration"),
        "a bootstrap token of the agent carries its label": own("object", LABEL, NAME),
    }
    checks = {
        message: f"request.operation == 'DELETE' || {kubeconfig('object')} || ({rule})"
        for message, rule in rules.items()
    }
    checks["a kubeconfig of the agent carries its label and holds nothing else"] = (
        f"request.operation == 'DELETE' || !{kubeconfig('object')} || ({own('object', LABEL, NAME)}"
        " && has(object.data) && object.data.all(key, key == 'kubeconfig'))"
    )
    checks["the agent changes and deletes its own Secrets only"] = (
        f"request.operation == 'CREATE' || ({own('oldObject', LABEL, NAME)}"
        f" && (oldObject.type == '{TYPE}' || {kubeconfig('oldObject')}))"
    )
    return _policy(NAME, "", "secrets", ("CREATE", "UPDATE", "DELETE"), checks)


def _own_requests_only() -> list[Document]:
    """A policy: of the requests for certificates that its role lets it approve, those that no machine of ours has sent
    stay refused even to the agent. It reads what the policy cannot: the request itself."""
    spec = "object.spec"
    approves = "has(object.status.conditions) && object.status.conditions.exists(c, c.type == 'Approved')"
    usages = "['digital signature', 'key encipherment', 'client auth', 'server auth']"
    rules = {
        "the agent approves first certificates for its own tokens only": f"{spec}.signerName != '{CLIENT}'"
        f" || ({spec}.username.startsWith('system:bootstrap:') && 'client auth' in {spec}.usages"
        f" && {spec}.groups.exists(g, g.startsWith('{NODE_GROUP}')))",
        "the agent approves serving certificates for nodes only": f"{spec}.signerName != '{SERVING}'"
        f" || ({spec}.username.startsWith('system:node:') && 'server auth' in {spec}.usages"
        f" && {spec}.groups.exists(g, g == 'system:nodes'))",
        "the agent approves the usages of kubelets only": f"{spec}.usages.all(u, u in {usages})"
        f" && !('client auth' in {spec}.usages && 'server auth' in {spec}.usages)",
    }
    checks = {message: f"!({approves}) || ({rule})" for message, rule in rules.items()}
    return _policy(f"{NAME}-requests", CERTIFICATES, f"{REQUESTS}/approval", ("UPDATE",), checks)


def _definitions_only() -> list[Document]:
    """A policy: of all definitions, the agent may make those of the mirror, and change none."""
    names = [f"{name}.{MIRROR}" for name in _KINDS]
    checks = {"the agent makes the definitions of NodePools and NodeClaims only": f"object.metadata.name in {names}"}
    return _policy(f"{NAME}-definitions", EXTENSIONS, DEFINITIONS, ("CREATE",), checks)


def _mirror_only() -> list[Document]:
    """A policy for everybody: the mirror is the agent's alone, and the agent writes nothing else of its kinds. What
    has an owner that is gone may go with it."""
    labels = "{0} != null && has({0}.metadata.labels) && '{1}' in {0}.metadata.labels".format
    own = {name: f"{labels(name, MIRRORED)} && {name}.metadata.labels['{MIRRORED}'] == 'true'" for name in _OBJECTS}
    by_agent = f"request.userInfo.username == '{USER}'"
    checks = {
        "Stockyard mirrors its pools here: change them in Stockyard, or turn the cluster's setting mirror off": (
            f"!(({own['object']}) || ({own['oldObject']})) || {by_agent} || request.userInfo.username == '{_COLLECTOR}'"
        ),
        "the agent writes the mirror of Stockyard's pools only": (
            f"!({by_agent}) || ((object == null || ({own['object']})) && (oldObject == null || ({own['oldObject']})))"
        ),
    }
    resources = [path for name in _KINDS for path in (name, f"{name}/status")]
    return _policy(f"{NAME}-mirror", MIRROR, resources, ("CREATE", "UPDATE", "DELETE"), checks, everybody=True)


def _own_pools_do_nothing() -> list[Document]:
    """A policy that warns: Stockyard does nothing for a NodePool or a NodeClaim that somebody writes here. It refuses
    nothing, as a Karpenter of the cluster's own may be there; the claims that this makes are not warned of."""
    own = f"has(object.metadata.labels) && '{MIRRORED}' in object.metadata.labels"
    checks = {
        "Stockyard makes no nodes for a NodePool or NodeClaim that is written here: apply it to Stockyard (stockyard"
        " apply -f FILE), which mirrors its pools in this cluster": f"request.userInfo.username == '{USER}' || ({own})"
        " || (request.resource.resource == 'nodeclaims'"
        " && request.userInfo.username.startsWith('system:serviceaccount:'))",
    }
    return _policy(f"{NAME}-own-pools", MIRROR, _KINDS, ("CREATE", "UPDATE"), checks, everybody=True, warns=True)


def _policy(
    name: str,
    group: str,
    resource: str | Sequence[str],
    operations: Sequence[str],
    checks: Mapping[str, str],
    *,
    everybody: bool = False,
    warns: bool = False,
) -> list[Document]:
    """Admission policy for the agent's writes of resources, or for everybody's: expressions by what they demand, and
    its binding. ``warns``: it refuses nothing, not even where it cannot be judged."""
    resources = [resource] if isinstance(resource, str) else list(resource)
    by_agent = {"name": "by-the-agent", "expression": f"request.userInfo.username == '{USER}'"}
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": list(operations), "resources": resources}
    spec = {
        "failurePolicy": "Ignore" if warns else "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        **({} if everybody else {"matchConditions": [by_agent]}),
        "validations": [{"expression": expression, "message": message} for message, expression in checks.items()],
    }
    binding = {"policyName": name, "validationActions": ["Warn" if warns else "Deny"]}
    return [
        document(f"{ADMISSION}/v1", "ValidatingAdmissionPolicy", name, "", spec=spec),
        document(f"{ADMISSION}/v1", "ValidatingAdmissionPolicyBinding", name, "", spec=binding),
    ]
