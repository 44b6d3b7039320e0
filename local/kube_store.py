"""What a simulated Kubernetes API keeps: objects with uid and resourceVersion, lists in pages, finalizers."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as discovery names it."""

    group: str
    version: str
    name: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """As objects write it: ``v1``, ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version


RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
RESOURCES = (
    Resource("", "v1", "namespaces", "Namespace", False),
    Resource("", "v1", "nodes", "Node", False),
    Resource("", "v1", "pods", "Pod", True),
    Resource("", "v1", "secrets", "Secret", True),
    Resource("", "v1", "configmaps", "ConfigMap", True),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", True),
    Resource("apps", "v1", "deployments", "Deployment", True),
    Resource("apps", "v1", "daemonsets", "DaemonSet", True),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True),
    Resource(RBAC, "v1", "clusterroles", "ClusterRole", False),
    Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
    Resource(RBAC, "v1", "roles", "Role", True),
    Resource(RBAC, "v1", "rolebindings", "RoleBinding", True),
    Resource(ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False),
    Resource(ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False),
)
_REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict",
    410: "Expired", 415: "UnsupportedMediaType", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError",
    503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


class Denied(Exception):
    """A refusal. ``causes`` are (reason, message) of the status' details."""

    def __init__(
        self, status: int, message: str, *, reason: str = "", causes: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.causes = status, message, causes
        self.reason = reason or _REASONS.get(status, "")

    @property
    def body(self) -> Object:
        """The ``Status`` object that says so."""
        status: Object = {
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.status,
        }  # fmt: skip
        if self.causes:
            status["details"] = {"causes": [{"reason": reason, "message": text} for reason, text in self.causes]}
        return status


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Where one object stands. ``group`` and ``resource`` are the API's names; ``namespace`` is empty without one."""

    group: str
    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f'{self.resource}{"." + self.group if self.group else ""} "{self.name}"'


def stamp(moment: datetime) -> str:
    """A time as Kubernetes writes it: whole seconds, ``Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class KubeStore:
    """All objects. ``now`` is the cluster's clock. Whoever uses it holds the lock of the API."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self.objects: dict[Key, Object] = {}
        self.revision = 100
        self._compacted = 0
        self._made = 0

    def get(self, key: Key) -> Object:
        """The object itself. Raises ``Denied`` 404."""
        found = self.objects.get(key)
        if found is None:
            raise Denied(404, f"{key} not found")
        return found

    def create(self, key: Key, given: Mapping[str, Any]) -> Object:
        """Keep a new object. Raises ``Denied`` 409 when the name is taken."""
        if key in self.objects:
            raise Denied(409, f"{key} already exists", reason="AlreadyExists")
        kept = copy.deepcopy(dict(given))
        self._made += 1
        self.revision += 1
        meta = kept.setdefault("metadata", {})
        meta.update(name=key.name, uid=f"uid-{self._made}", resourceVersion=str(self.revision))
        meta.setdefault("creationTimestamp", stamp(self.now()))
        if key.namespace:
            meta["namespace"] = key.namespace
        self.objects[key] = _normal(key, kept)
        return self.objects[key]

    def replace(self, key: Key, given: Mapping[str, Any]) -> Object:
        """Keep a changed object; what changes nothing keeps its version. Raises ``Denied`` 404, 409, 422."""
        old = self.get(key)
        kept = _normal(key, copy.deepcopy(dict(given)))
        meta, before = kept.setdefault("metadata", {}), old["metadata"]
        for name in ("resourceVersion", "uid"):
            if meta.get(name) not in (None, before[name]):
                raise Denied(409, f"Operation cannot be fulfilled on {key}: the object has been modified")
        meta.update({name: before[name] for name in ("name", "uid", "creationTimestamp", "resourceVersion")})
        if key.namespace:
            meta["namespace"] = key.namespace
        if key.resource == "secrets" and kept.get("type") != old.get("type"):
            raise Denied(422, f"{key} is invalid: type: Invalid value: field is immutable")
        if kept != old:
            self.revision += 1
            meta["resourceVersion"] = str(self.revision)
            self.objects[key] = kept
        return self.objects[key]

    def remove(self, key: Key, options: Mapping[str, Any]) -> Object | None:
        """Delete at once; an object with finalizers is only marked, and handed back. Raises ``Denied`` 404, 409."""
        found = self.get(key)
        meta = found["metadata"]
        for name, wanted in (options.get("preconditions") or {}).items():
            if meta[name] != wanted:
                text = f"the {name.upper()} in the precondition ({wanted}) does not match that in record ({meta[name]})"
                raise Denied(409, f"Operation cannot be fulfilled on {key}: Precondition failed: {text}")
        self.revision += 1
        if meta.get("finalizers"):
            meta.setdefault("deletionTimestamp", stamp(self.now()))
            meta["resourceVersion"] = str(self.revision)
            return found
        del self.objects[key]
        return None

    def compact(self) -> None:
        """Every continue token so far is too old (410)."""
        self.revision += 1
        self._compacted = self.revision

    def listed(self, resource: Resource, namespace: str, query: Mapping[str, str]) -> Object:
        """A page of a list, by ``limit``, ``continue`` and ``fieldSelector``. Raises ``Denied`` 400, 410."""
        after, chosen = self._after(query.get("continue", "")), field_selector(query.get("fieldSelector", ""))
        keys = sorted(
            key
            for key, found in self.objects.items()
            if (key.group, key.resource) == (resource.group, resource.name)
            and namespace in ("", key.namespace)
            and (key.namespace, key.name) > after
            and chosen(found)
        )
        limit = int(query.get("limit") or 0) or len(keys)
        page, rest = keys[:limit], keys[limit:]
        meta: Object = {"resourceVersion": str(self.revision)}
        if rest:
            token = json.dumps([self.revision, page[-1].namespace, page[-1].name]).encode()
            meta.update({"continue": base64.urlsafe_b64encode(token).decode(), "remainingItemCount": len(rest)})
        return {
            "kind": f"{resource.kind}List",
            "apiVersion": resource.api_version,
            "metadata": meta,
            "items": [self.objects[key] for key in page],
        }

    def _after(self, token: str) -> tuple[str, str]:
        if not token:
            return "", ""
        try:
            revision, namespace, name = json.loads(base64.urlsafe_b64decode(token))
        except ValueError:
            raise Denied(400, "continue key is not valid") from None
        if revision < self._compacted:
            raise Denied(410, "The provided continue parameter is too old to display a consistent list result.")
        return str(namespace), str(name)


_FIELDS = {
    "metadata.name": ("metadata", "name"),
    "spec.nodeName": ("spec", "nodeName"),
    "status.phase": ("status", "phase"),
}


def field_selector(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether an object is chosen: ``a=b,c!=d``. Raises ``Denied`` 400 for a field that cannot be selected."""
    rules: list[tuple[tuple[str, str], bool, str]] = []
    for part in filter(None, text.split(",")):
        path, _, value = part.partition("=")
        field = _FIELDS.get(path.rstrip("!"))
        if field is None:
            raise Denied(400, f"field label not supported: {path}")
        rules.append((field, not path.endswith("!"), value.lstrip("=")))
    return lambda found: all(
        (str((found.get(part) or {}).get(name, "")) == value) is equal for (part, name), equal, value in rules
    )


def _normal(key: Key, kept: Object) -> Object:
    """A secret's ``stringData`` becomes ``data``, as the API stores it."""
    if key.resource == "secrets" and "stringData" in kept:
        texts = kept.pop("stringData") or {}
        data = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        kept["data"] = {**(kept.get("data") or {}), **data}
    return kept
