"""The account that applies packs of cluster profiles: what it is, how its tokens are had, and as whom it acts.

The account may do nothing but act as one of two users, by impersonation, and so the API server judges each pack by the
rights of the role that has chosen it. The user of administrators is bound to ``cluster-admin``, since packs bring roles
and nobody can give rights away without having them. The user of operators has ``OPERATORS_KINDS`` in namespaces that an
administrator has opened by a label. All of it is there only where a cluster has a profile, no pod runs as the account,
and its tokens end within minutes. The cluster's agent has none of these rights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from stockyard.domain.profiles.pack_rights import OPENED, OPENED_FOR, OPERATORS_KINDS, SYSTEM_NAMESPACES, is_operators
from stockyard.domain.values.rights import ADMIN, OPERATOR
from stockyard.errors import PermissionDenied
from stockyard.ports.clusters import PACKS_MANAGER
from stockyard.providers.kubernetes.client import KubernetesApi

NAMESPACE, ACCOUNT = "stockyard-packs", "stockyard-packs"
FORMER_BINDING = "stockyard-packs"
"""Bound the account itself to ``cluster-admin`` in earlier releases."""
IMPERSONATION, ADMINS, OPERATORS = "stockyard-packs-account", "stockyard-packs-admins", "stockyard-packs-operators"
"""Names of roles and bindings: of the account, of administrators' packs, of operators' packs."""
USERS: Mapping[str, tuple[str, str]] = {
    ADMIN: ("stockyard:packs:admin", "stockyard:packs:admins"),
    OPERATOR: ("stockyard:packs:operator", "stockyard:packs:operators"),
}
"""User and group that the account acts as. The names of people in clusters have a prefix of their own."""
TOKEN_SECONDS = 600
"""The least that Kubernetes gives."""
_T = TypeVar("_T")
LABELS = {"app.kubernetes.io/name": ACCOUNT}
_RBAC = "rbac.authorization.k8s.io"
_VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"]
_TRIES = 5
"""How often a call is refused before it counts: an API server learns of a new binding some moments later."""


def documents() -> Iterator[dict[str, Any]]:
    """The account, the groups that it may impersonate, and their rights, in a namespace without access for others."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
        "automountServiceAccountToken": False,
    }
    users, groups = (sorted(pair[part] for pair in USERS.values()) for part in (0, 1))
    impersonation = [
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": users},
        {"apiGroups": [""], "resources": ["groups"], "verbs": ["impersonate"], "resourceNames": groups},
    ]
    yield _object("ClusterRole", IMPERSONATION, rules=impersonation)
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    yield _binding("ClusterRoleBinding", IMPERSONATION, IMPERSONATION, account)
    yield _binding("ClusterRoleBinding", ADMINS, "cluster-admin", _group_of(ADMIN))
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": _VERBS}
        for (group, _), resource in sorted(OPERATORS_KINDS.items())
    ]
    yield _object("ClusterRole", OPERATORS, rules=rules)


def _object(kind: str, name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    meta = {"name": name, "labels": LABELS, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": meta, **more}


def _binding(kind: str, name: str, role: str, subject: Mapping[str, str], namespace: str = "") -> dict[str, Any]:
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role}
    return _object(kind, name, namespace, roleRef=reference, subjects=[dict(subject)])


def _group_of(rights: str) -> dict[str, str]:
    return {"kind": "Group", "apiGroup": _RBAC, "name": USERS[rights][1]}


class Account:
    """See ``ports.clusters.PacksAccount``. ``api`` is a client of the account, which may only act as others."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._roles: dict[str, _Role] = {}

    def acting_as(self, rights: str) -> _Role:
        """The API with the rights of a role."""
        if rights not in self._roles:
            own = self._api.acting_as(*USERS[rights])
            opener = _Opener(self.acting_as(ADMIN).api) if rights != ADMIN else None
            self._roles[rights] = _Role(own, opener)
        return self._roles[rights]

    def close(self) -> None:
        """Close all connections."""
        for role in self._roles.values():
            role.api.close()
        self._api.close()


class _Role:
    """See ``ports.clusters.PacksApi``."""

    def __init__(self, api: KubernetesApi, opener: _Opener | None) -> None:
        self.api, self._opener = api, opener
        self._answered: set[str] = set()

    def apply(
        self, document: Mapping[str, Any], *, manager: str = PACKS_MANAGER, dry_run: bool = False
    ) -> dict[str, Any]:
        """Server-side apply, by force."""
        meta, kind = document["metadata"], (str(document["apiVersion"]), str(document["kind"]))
        namespace = meta.get("namespace") or ""
        return self._call(kind, namespace, lambda: self.api.apply(document, manager=manager, dry_run=dry_run))

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """The object, or None."""
        return self._call((api_version, kind), namespace, lambda: self.api.get(api_version, kind, name, namespace))

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> None:
        """Begin to delete the object."""
        return self._call((api_version, kind), namespace, lambda: self.api.delete(api_version, kind, name, namespace))

    def _call(self, kind: tuple[str, str], namespace: str, call: Callable[[], _T]) -> _T:
        import stamina  # kept out of cold starts

        bound_namespace = ""
        if self._opener is not None and is_operators(*kind):
            bound_namespace = namespace or "default"
            self._opener.open(bound_namespace)
        # what is no operator's is judged once: nothing will ever be bound for it
        is_new = bound_namespace not in self._answered and (bound_namespace or self._opener is None)
        attempts = _TRIES if is_new else 1
        for attempt in stamina.retry_context(on=PermissionDenied, attempts=attempts, wait_initial=0.1, wait_max=1.0):
            with attempt:
                answer = call()
        self._answered.add(bound_namespace)
        return answer


class _Opener:
    """Gives operators their rights in the namespaces that an administrator has opened. ``api`` is administrators'."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._open: set[str] = set()

    def open(self, namespace: str) -> None:
        """Bind the operators' role there. ``PermissionDenied`` in a namespace that is not open to them."""
        if namespace in self._open:
            return
        live = None
        if not namespace.startswith(SYSTEM_NAMESPACES):
            live = self._api.get("v1", "Namespace", namespace)
        labels = ((live or {}).get("metadata") or {}).get("labels") or {}
        if labels.get(OPENED) != OPENED_FOR:
            raise PermissionDenied(
                f"metadata.namespace: {namespace} is not open to packs that an operator has chosen",
                code="NamespaceNotOpen",
                hint=f"An administrator labels it {OPENED}={OPENED_FOR}, or chooses the version.",
            )
        self._api.apply(_binding("RoleBinding", OPERATORS, OPERATORS, _group_of(OPERATOR), namespace))
        self._open.add(namespace)


def account_api(admin: KubernetesApi, connect: Callable[[Callable[[], str]], KubernetesApi]) -> Account:
    """The API as the account, which is made by ``admin`` where it is missing. ``connect`` makes a client of a token."""
    try:
        for document in documents():
            admin.apply(document)
        admin.delete(f"{_RBAC}/v1", "ClusterRoleBinding", FORMER_BINDING)
        token = admin.account_token(NAMESPACE, ACCOUNT, TOKEN_SECONDS)
    finally:
        admin.close()
    return Account(connect(lambda: token))


def forget(admin: KubernetesApi) -> None:
    """Remove the rights, then the account."""
    try:
        for binding in admin.list(f"{_RBAC}/v1", "RoleBinding", labels=f"app.kubernetes.io/name={ACCOUNT}"):
            meta = binding["metadata"]
            admin.delete(f"{_RBAC}/v1", "RoleBinding", meta["name"], meta["namespace"])
        for name in (FORMER_BINDING, ADMINS, IMPERSONATION):
            admin.delete(f"{_RBAC}/v1", "ClusterRoleBinding", name)
        for name in (OPERATORS, IMPERSONATION):
            admin.delete(f"{_RBAC}/v1", "ClusterRole", name)
        admin.delete("v1", "Namespace", NAMESPACE)
    finally:
        admin.close()
