"""With whose rights packs are applied, and what packs may hold. Pure.

A choice of a profile has the rights of the role that made it, of an administrator or of an operator. The cluster's API
server judges by them. What is refused here is told when somebody chooses, with the object and the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stockyard.domain.profiles.pod_security import pod_faults
from stockyard.domain.values.rights import ADMIN, OPERATOR

RIGHTS = "rights"
"""The field of a choice. One without it is an operator's; choices that are stored without it are of an earlier release,
and were applied with all rights."""
OPENED, OPENED_FOR = "stockyard.dev/packs", "operators"
"""The label by which an administrator opens a namespace to packs that operators choose."""
SYSTEM_NAMESPACES = ("kube-", "stockyard-")
"""How the names of namespaces begin that are never open to them."""
OPERATORS_KINDS: Mapping[tuple[str, str], str] = {
    **{("", kind): f"{kind.lower()}s" for kind in ("ConfigMap", "Service", "ServiceAccount", "PersistentVolumeClaim")},
    **{("apps", kind): f"{kind.lower()}s" for kind in ("Deployment", "StatefulSet", "DaemonSet")},
    **{("batch", kind): f"{kind.lower()}s" for kind in ("Job", "CronJob")},
    ("", "Pod"): "pods",
    ("autoscaling", "HorizontalPodAutoscaler"): "horizontalpodautoscalers",
    ("networking.k8s.io", "Ingress"): "ingresses",
    ("networking.k8s.io", "NetworkPolicy"): "networkpolicies",
    ("policy", "PodDisruptionBudget"): "poddisruptionbudgets",
}
"""What packs of operators may hold: the resource by group and kind. All stand in namespaces, and none gives rights."""
MOST_FAULTS = 20
_AGENT = "stockyard-agent"
_OWN_NAMESPACES = frozenset({"stockyard-system", "stockyard-packs"})
_OWN_PREFIXES = ("stockyard-", "stockyard:")
_JUDGED = frozenset({"rbac.authorization.k8s.io", "admissionregistration.k8s.io"})
"""Groups of which objects with a name of ours are the agent's, or of the account that applies packs."""
Choice = Mapping[str, Any]
Object = Mapping[str, Any]


def with_rights(choices: Sequence[Choice], rights: str) -> tuple[dict[str, Any], ...]:
    """The choices as those of somebody who has these rights."""
    return tuple({**choice, RIGHTS: rights} for choice in choices)


def stored_choices(choices: Sequence[Choice]) -> tuple[dict[str, Any], ...]:
    """The choices on the record of a cluster. Those of an earlier release were applied with all rights."""
    return tuple({**choice, RIGHTS: choice.get(RIGHTS) or ADMIN} for choice in choices)


def settled_rights(
    choice: Choice, version_rights: str, variables: Sequence[Choice], current: Sequence[Choice], *, is_named: bool
) -> str:
    """The rights of a choice that has its id, version and variables.

    They are an administrator's where one has chosen the version by its number (``is_named``) or has made it; where one
    has made it, and nothing is chosen but what the version bounds; and where an administrator has chosen the same for
    the cluster before (``current``). The newest version may be one that no administrator has seen.
    """
    if choice.get(RIGHTS) == ADMIN and (is_named or version_rights == ADMIN):
        return ADMIN
    if version_rights == ADMIN and _is_bounded(choice, variables):
        return ADMIN
    equals = [other for other in current if _content(other) == _content(choice)]
    return ADMIN if any(other.get(RIGHTS) == ADMIN for other in equals) else OPERATOR


def _is_bounded(choice: Choice, variables: Sequence[Choice]) -> bool:
    """Whether nothing is chosen but numbers, booleans, and texts with an expression that they have to match."""
    free = {variable["name"] for variable in variables if variable["type"] == "string" and not variable.get("regex")}
    return not choice.get("pack_values") and not free & set(choice.get("variables") or ())


def _content(choice: Choice) -> tuple[Any, ...]:
    return tuple(choice.get(name) for name in ("id", "version", "variables", "pack_values"))


def rights_faults(item: Object, rights: str) -> Iterator[str]:
    """Reasons why somebody with these rights may not choose a pack with the object, each with the field."""
    yield from _of_ours(item)
    if rights != ADMIN:
        yield from _of_operators(item)


def secret_faults(item: Object) -> Iterator[str]:
    """Reasons why an object may stand in no version: everybody who may read the profile would read the values. A Secret
    without values, which something in the cluster fills, shows nobody anything."""
    if item["kind"] == "Secret":
        for name in ("data", "stringData"):
            if item.get(name):
                yield f"{name}: who may read the profile reads it: make the Secret in the cluster itself"


def removal_fault(kind: str, api_version: str, namespace: str, rights: str) -> str | None:
    """Reason why somebody with these rights may not take an object away; None where that is allowed."""
    if rights == ADMIN:
        return None
    return _kind_fault(api_version, kind) or _namespace_fault(namespace)


def _of_ours(item: Object) -> Iterator[str]:
    """Faults of objects that touch Stockyard's own in a cluster: the agent with its rights and policies, and the
    account of packs."""
    meta, group = item["metadata"], _group(str(item["apiVersion"]))
    labels = meta.get("labels")
    if meta.get("namespace") in _OWN_NAMESPACES:
        yield f"metadata.namespace: {meta['namespace']} is Stockyard's own"
    if item["kind"] == "Namespace" and meta["name"] in _OWN_NAMESPACES:
        yield f"metadata.name: the namespace {meta['name']} is Stockyard's own"
    if isinstance(labels, Mapping) and labels.get("app.kubernetes.io/name") == _AGENT:
        yield f"metadata.labels: app.kubernetes.io/name: {_AGENT} marks objects of Stockyard's agent"
    if group in _JUDGED and str(meta["name"]).startswith(_OWN_PREFIXES):
        yield f"metadata.name: names of {item['kind']} that begin with {meta['name'][:10]} are Stockyard's own"
    for number, subject in enumerate(_listed(item.get("subjects"))):
        if _is_our_subject(subject):
            yield f"subjects[{number}]: rights of Stockyard's own accounts are not widened"


def _is_our_subject(subject: Any) -> bool:
    if not isinstance(subject, Mapping):
        return False
    name, namespace = str(subject.get("name", "")), str(subject.get("namespace", ""))
    return namespace in _OWN_NAMESPACES or (subject.get("kind") in ("Group", "User") and name.startswith(_OWN_SUBJECTS))


_OWN_SUBJECTS = (
    "stockyard:",
    *(f"system:serviceaccount{plural}:{namespace}" for namespace in _OWN_NAMESPACES for plural in ("", "s")),
)


def _of_operators(item: Object) -> Iterator[str]:
    meta, spec = item["metadata"], item.get("spec")
    fault = _kind_fault(str(item["apiVersion"]), str(item["kind"])) or _namespace_fault(meta.get("namespace") or "")
    if fault:
        yield fault
        return
    if meta.get("finalizers") or meta.get("ownerReferences"):
        yield "metadata: finalizers and ownerReferences are an administrator's to set"
    if item["kind"] == "Service" and isinstance(spec, Mapping) and spec.get("externalIPs"):
        yield "spec.externalIPs: takes traffic that is for others"
    yield from pod_faults(item)


def is_operators(api_version: str, kind: str) -> bool:
    """Whether packs of operators may hold objects of the kind."""
    return (_group(api_version), kind) in OPERATORS_KINDS


def _kind_fault(api_version: str, kind: str) -> str | None:
    if is_operators(api_version, kind):
        return None
    return f"kind: {kind} of {api_version} is for administrators to choose, by the number of the version"


def _namespace_fault(namespace: str) -> str | None:
    if not namespace.startswith(SYSTEM_NAMESPACES):
        return None
    return f"metadata.namespace: {namespace} is for administrators to change"


def _group(api_version: str) -> str:
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
