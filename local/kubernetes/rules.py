"""RBAC of a simulated Kubernetes API, from the roles and bindings that are stored in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local.kubernetes.resources import RBAC
from local.kubernetes.store import KubeStore, Object


@dataclass(frozen=True, slots=True, order=True)
class Action:
    """A request in RBAC's terms. ``resource`` includes the subresource: ``pods/eviction``."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One verb that a role grants. An empty ``namespace`` means all namespaces, an empty ``name`` any name."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str

    def covers(self, action: Action) -> bool:
        """Whether it allows the action. A name does not hold for list and create, which carry none."""
        return (
            self.verb in ("*", action.verb)
            and self.group in ("*", action.group)
            and self.resource in ("*", action.resource)
            and self.namespace in ("", action.namespace)
            and self.name in ("", action.name)
        )


Subject = Mapping[str, Any]


def grants(store: KubeStore, account: tuple[str, str]) -> list[Grant]:
    """All grants of a service account (namespace, name)."""
    return _grants(store, lambda subject: _is(subject, account))


def group_grants(store: KubeStore, groups: frozenset[str]) -> list[Grant]:
    """All grants of who is in these groups."""
    return _grants(store, lambda subject: subject["kind"] == "Group" and subject["name"] in groups)


def person_grants(store: KubeStore, name: str, groups: frozenset[str]) -> list[Grant]:
    """All grants of a user who is in these groups."""
    names = {("User", name), *(("Group", group) for group in groups)}
    return _grants(store, lambda subject: (subject["kind"], subject["name"]) in names)


def _grants(store: KubeStore, matches: Callable[[Subject], bool]) -> list[Grant]:
    return [
        Grant(verb, group, resource, namespace, name)
        for namespace, role in _roles(store, matches)
        for rule in role.get("rules") or ()
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or ("",)
    ]


def refusal(user: str, action: Action) -> str:
    """The text of a 403, as the API words it."""
    scope = f'in the namespace "{action.namespace}"' if action.namespace else "at the cluster scope"
    name = f'"{action.name}" ' if action.name else ""
    denial = f'User "{user}" cannot {action.verb} resource "{action.resource}" in API group "{action.group}" {scope}'
    return f"{action.resource.partition('/')[0]} {name}is forbidden: {denial}"


def _roles(store: KubeStore, matches: Callable[[Subject], bool]) -> Iterator[tuple[str, Object]]:
    for key, binding in store.objects.items():
        if key.group != RBAC or not key.resource.endswith("bindings"):
            continue
        if not any(matches(subject) for subject in binding.get("subjects") or ()):
            continue
        reference = binding["roleRef"]
        for role_key, role in store.objects.items():
            clusterwide = reference["kind"] == "ClusterRole" and role_key.resource == "clusterroles"
            local = reference["kind"] == "Role" and role_key.resource == "roles" and role_key.namespace == key.namespace
            if role_key.group == RBAC and role_key.name == reference["name"] and (clusterwide or local):
                yield key.namespace, role


def _is(subject: Subject, account: tuple[str, str]) -> bool:
    return subject["kind"] == "ServiceAccount" and (subject.get("namespace"), subject["name"]) == account
