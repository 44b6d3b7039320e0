"""The object store of a simulated Kubernetes API: uid and resourceVersion, lists in pages, finalizers."""

from __future__ import annotations

import base64
import json
import marshal
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from local.kubernetes.placing.selectors import holds
from local.kubernetes.resources import EXTENSIONS, RESOURCES, Resource, defined

Object = dict[str, Any]
Matches = Callable[[Mapping[str, Any]], bool]
"""Whether an object is chosen."""


_REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict",
    410: "Expired", 415: "UnsupportedMediaType", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError",
    503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


_CAUSE = ("reason", "message", "field")
_COUNTED = frozenset({"apps", "batch"})
"""Groups whose objects count the changes of their specification, beside those of definitions."""
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
BUMP = 1_000_000
"""By how much revisions rise when a snapshot is restored."""
CHANGES = 2_000
"""Changes that are remembered; who watches from before them has to list again."""


class StatusError(Exception):
    """An error response. ``causes`` are reason, message and perhaps field of its details, ``key`` what it is about.

    Without a ``reason`` it has the usual one of its status; an empty one is left out, as the API server does for some.
    ``following`` is a token to go on with after a list has expired. A ``plain`` error is its message as text.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        reason: str | None = None,
        causes: tuple[tuple[str, ...], ...] = (),
        key: Key | None = None,
        following: str = "",
        plain: bool = False,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.causes, self.key, self.following = status, message, causes, key, following
        self.plain = plain
        self.reason = _REASONS.get(status, "") if reason is None else reason

    @property
    def body(self) -> Object:
        """The ``Status`` object of the response."""
        status: Object = {
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "metadata": {"continue": self.following} if self.following else {},
            "message": self.message, "code": self.status,
        }  # fmt: skip
        details: Object = {}
        if self.key is not None:
            details = {"name": self.key.name, "group": self.key.group, "kind": self.key.resource}
        if self.causes:
            details["causes"] = [dict(zip(_CAUSE, cause, strict=False)) for cause in self.causes]
        optional = {"reason": self.reason, "details": {name: value for name, value in details.items() if value}}
        return {**status, **{name: value for name, value in optional.items() if value}}


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """The key of an object. ``namespace`` is empty for cluster-scoped objects."""

    group: str
    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f'{self.resource}{"." + self.group if self.group else ""} "{self.name}"'


def copied(document: Any) -> Any:
    """A copy of a JSON value; some five times as fast as ``copy.deepcopy``."""
    return marshal.loads(marshal.dumps(document))  # noqa: S302


def stamp(moment: datetime) -> str:
    """A time as Kubernetes writes it: whole seconds, ``Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class _Change:
    """An object before and after a change; None where there was none."""

    revision: int
    key: Key
    before: Object | None
    after: Object | None

    def event(self, matches: Matches) -> Object | None:
        """Event of the change for a watch with a selector: an object that is no longer selected counts as deleted."""
        was, is_now = (document is not None and matches(document) for document in (self.before, self.after))
        if is_now:
            return {"type": "MODIFIED" if was else "ADDED", "object": self.after}
        if not was or self.before is None:
            return None
        meta = {**self.before["metadata"], "resourceVersion": str(self.revision)}
        return {"type": "DELETED", "object": {**self.before, "metadata": meta}}


class KubeStore:
    """All objects of a cluster. ``now`` is its clock. Callers must hold the API's lock."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self.objects: dict[Key, Object] = {}
        self.revision = 100
        self._compacted = 0
        self._changes: deque[_Change] = deque(maxlen=CHANGES)
        self._made = 0
        self._definitions: set[Key] = set()
        self._news = threading.Condition()
        self.webhooks: dict[str, Callable[[Object], list[tuple[str, str]]]] = {}  # by kind: fields, and why not
        self.ended_owners: set[str] = set()
        """The uids of owners that are gone, and whose dependents are to go."""

    def draft(self) -> KubeStore:
        """Another store with the same objects: what is changed there does not change here."""
        other = KubeStore(self.now)
        # Objects are replaced, never changed in place.
        other.objects, other.revision = dict(self.objects), self.revision
        other._made, other._definitions, other.webhooks = self._made, set(self._definitions), self.webhooks
        return other

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Resources that are served: Kubernetes' own, and what definitions have made."""
        specs = [self.objects[key]["spec"] for key in self._definitions]
        return (*RESOURCES, *(defined(spec, version) for spec in specs for version in spec["versions"]))

    def _is_counted(self, key: Key) -> bool:
        """Whether the object counts the changes of its specification."""
        name = f"{key.resource}.{key.group}"
        return key.group in _COUNTED or Key(EXTENSIONS, "customresourcedefinitions", "", name) in self._definitions

    def get(self, key: Key) -> Object:
        """The stored object, not a copy. Raises ``StatusError`` 404."""
        document = self.objects.get(key)
        if document is None:
            raise StatusError(404, f"{key} not found", key=key)
        return document

    def create(self, key: Key, document: Mapping[str, Any]) -> Object:
        """Store a new object. Raises ``StatusError`` 409 when the name exists."""
        if key in self.objects:
            raise StatusError(409, f"{key} already exists", reason="AlreadyExists", key=key)
        stored = copied(dict(document))
        self._made += 1
        self.revision += 1
        meta = stored.setdefault("metadata", {})
        meta.update(name=key.name, uid=f"uid-{self._made}", resourceVersion=str(self.revision))
        if not meta.get("creationTimestamp"):
            meta["creationTimestamp"] = stamp(self.now())
        if self._is_counted(key):
            meta["generation"] = 1
        if key.namespace:
            meta["namespace"] = key.namespace
        self.objects[key] = _normal(key, stored)
        if key.group == EXTENSIONS:
            self._definitions.add(key)
        self.note(key, None)
        return self.objects[key]

    def suffix(self) -> str:
        """The end of a generated name: five letters that no other one has."""
        number, letters = self._made * 7919 + 104729, ""
        for _ in range(5):
            number, digit = divmod(number, len(_LETTERS))
            letters += _LETTERS[digit]
        return letters

    def load(self, objects: Mapping[Key, Object]) -> None:
        """The objects are those of a snapshot, and no others. Revisions and uids go on far beyond it, and whoever
        watches has to list again."""
        self.objects = {key: _normal(key, copied(dict(document))) for key, document in objects.items()}
        self._definitions = {key for key in objects if key.group == EXTENSIONS}
        self._made += BUMP
        self.revision += BUMP
        self._changes.clear()
        self.compact()

    def note(self, key: Key, before: Object | None) -> None:
        """Remember for watches that an object was made, changed or removed. ``before`` is a copy of what it was."""
        self._changes.append(_Change(self.revision, key, before, copied(self.objects.get(key))))
        with self._news:
            self._news.notify_all()

    def wait(self, since: int, seconds: float) -> None:
        """Wait until something is newer than a revision, no longer than some seconds. Without the API's lock."""
        with self._news:
            self._news.wait_for(lambda: self.revision > since, seconds)

    def replace(self, key: Key, document: Mapping[str, Any]) -> Object:
        """Store a changed object. Without a difference its version stays. Raises ``StatusError`` 404, 409, 422."""
        old = self.get(key)
        stored = _normal(key, copied(dict(document)))
        meta, before = stored.setdefault("metadata", {}), old["metadata"]
        for name in ("resourceVersion", "uid"):
            if meta.get(name) not in (None, before[name]):
                text = f"Operation cannot be fulfilled on {key}: the object has been modified"
                raise StatusError(409, text, key=key)
        meta.update({name: before[name] for name in ("name", "uid", "creationTimestamp", "resourceVersion")})
        if key.namespace:
            meta["namespace"] = key.namespace
        if key.resource == "secrets" and stored.get("type") != old.get("type"):
            raise StatusError(422, f"{key} is invalid: type: Invalid value: field is immutable", key=key)
        is_counted = self._is_counted(key)
        if is_counted:
            meta["generation"] = before.get("generation", 1)
        if stored != old:
            if is_counted and stored.get("spec") != old.get("spec"):
                meta["generation"] += 1
            self.revision += 1
            meta["resourceVersion"] = str(self.revision)
            self.objects[key] = stored
            self.note(key, old)
        return self.objects[key]

    def remove(self, key: Key, options: Mapping[str, Any]) -> Object | None:
        """Delete an object. With finalizers it is only marked, and returned. Raises ``StatusError`` 404, 409."""
        document = self.get(key)
        meta = document["metadata"]
        for name, expected in (options.get("preconditions") or {}).items():
            if meta[name] != expected:
                field = "UID" if name == "uid" else "ResourceVersion"
                text = f"the {field} in the precondition ({expected}) does not match the {field} in record"
                subject = f'{document["kind"]} "{key.name}"'
                text = f"Operation cannot be fulfilled on {subject}: {text} ({meta[name]})"
                raise StatusError(409, text, key=replace(key, resource=document["kind"]))
        self.revision += 1
        before = copied(document)
        if meta.get("finalizers"):
            meta.setdefault("deletionTimestamp", stamp(self.now()))
            meta["resourceVersion"] = str(self.revision)
            self.note(key, before)
            return document
        del self.objects[key]
        self._definitions.discard(key)
        if options.get("propagationPolicy") != "Orphan" and not options.get("orphanDependents"):
            self.ended_owners.add(meta["uid"])
        self.note(key, before)
        return None

    def compact(self) -> None:
        """Expire all continue tokens and versions to watch from that were issued so far (410)."""
        self.revision += 1
        self._compacted = self.revision

    def listed(self, resource: Resource, namespace: str, query: Mapping[str, str]) -> Object:
        """A page of a list, by ``limit``, ``continue`` and selectors. Raises ``StatusError`` 400, 410."""
        after, matches = self._after(query.get("continue", "")), selected(query)
        keys = sorted(
            key
            for key, document in self.objects.items()
            if (key.group, key.resource) == (resource.group, resource.name)
            and namespace in ("", key.namespace)
            and (key.namespace, key.name) > after
            and matches(document)
        )
        limit = int(query.get("limit") or 0) or len(keys)
        page, following = keys[:limit], keys[limit:]
        meta: Object = {"resourceVersion": str(self.revision)}
        if following:
            meta["continue"] = self._token(page[-1].namespace, page[-1].name)
            if not query.get("fieldSelector"):
                meta["remainingItemCount"] = len(following)
        return {
            "kind": f"{resource.kind}List",
            "apiVersion": resource.api_version,
            "metadata": meta,
            "items": [self.objects[key] for key in page],
        }

    def changed(self, resource: Resource, namespace: str, matches: Matches, since: int) -> list[Object]:
        """The events of a watch since a revision; an ``ERROR`` where too much has changed since."""
        oldest = self._changes[0].revision if len(self._changes) == CHANGES else 0
        if since < max(self._compacted, oldest - 1):
            expired = StatusError(410, f"too old resource version: {since} ({self.revision})", reason="Expired")
            return [{"type": "ERROR", "object": expired.body}]
        return [
            event
            for change in self._changes
            if change.revision > since
            and (change.key.group, change.key.resource) == (resource.group, resource.name)
            and namespace in ("", change.key.namespace)
            and (event := change.event(matches))
        ]

    def _token(self, namespace: str, name: str) -> str:
        """A continue token of now: what comes behind this object."""
        return base64.urlsafe_b64encode(json.dumps([self.revision, namespace, name]).encode()).decode()

    def _after(self, token: str) -> tuple[str, str]:
        if not token:
            return "", ""
        try:
            revision, namespace, name = json.loads(base64.urlsafe_b64decode(token))
        except ValueError:
            raise StatusError(400, "continue key is not valid") from None
        if revision < self._compacted:
            text = "The provided continue parameter is too old to display a consistent list result."
            raise StatusError(410, text, following=self._token(namespace, name))
        return str(namespace), str(name)


_FIELDS = frozenset(
    {
        "metadata.name", "metadata.namespace", "spec.nodeName", "spec.signerName", "spec.unschedulable", "status.phase",
        "type", "reason", "involvedObject.kind", "involvedObject.name", "involvedObject.namespace",
        "involvedObject.uid",
    }
)  # fmt: skip


def field_selector(text: str) -> Matches:
    """Whether an object is chosen: ``a=b,c!=d``. Raises ``StatusError`` 400 for a field that cannot be selected."""
    rules: list[tuple[list[str], bool, str]] = []
    for part in filter(None, text.split(",")):
        path, _, value = part.partition("=")
        field = path.rstrip("!")
        if field not in _FIELDS:
            raise StatusError(400, f"field label not supported: {path}")
        rules.append((field.split("."), not path.endswith("!"), value.lstrip("=")))
    return lambda document: all((_text_at(document, path) == value) is equal for path, equal, value in rules)


def _text_at(document: Mapping[str, Any], path: list[str]) -> str:
    value: Any = document
    for name in path:
        value = (value or {}).get(name)
    return "" if value is None else str(value)


_SET = re.compile(r"\s*([^\s!=,()]+)\s+(in|notin)\s*\(([^)]*)\)\s*(?:,|$)|\s*([^,]*)(?:,|$)")


def label_selector(text: str) -> Matches:
    """Whether an object is chosen by its labels: ``a=b``, ``a!=b``, ``a in (b,c)``, ``a notin (b)``, ``a``, ``!a``,
    with commas between. Raises ``StatusError`` 400 for what cannot be read."""
    expressions: list[Object] = []
    for match in _SET.finditer(text):
        if match[1]:
            values = [value.strip() for value in match[3].split(",")]
            expressions.append(
                {"key": match[1], "operator": {"in": "In", "notin": "NotIn"}[match[2]], "values": values}
            )
        elif part := match[4].strip():
            expressions.append(_plain(part))
    return lambda document: all(holds(each, document["metadata"].get("labels") or {}) for each in expressions)


def _plain(part: str) -> Object:
    name, sign, value = part.partition("=")
    if not name.strip("! ") or " " in name.strip("! "):
        raise StatusError(400, f"unable to parse requirement: {part}")
    if not sign:
        return {"key": part.lstrip("!"), "operator": "DoesNotExist" if part.startswith("!") else "Exists"}
    operator = "NotIn" if name.endswith("!") else "In"
    return {"key": name.rstrip("!").strip(), "operator": operator, "values": [value.lstrip("=").strip()]}


def selected(query: Mapping[str, str]) -> Matches:
    """Whether an object is chosen by the selectors of a query. Raises ``StatusError`` 400."""
    fields, labels = field_selector(query.get("fieldSelector", "")), label_selector(query.get("labelSelector", ""))
    return lambda document: fields(document) and labels(document)


def _normal(key: Key, document: Object) -> Object:
    """A secret's ``stringData`` becomes ``data``, as the API stores it."""
    if key.resource == "secrets" and "stringData" in document:
        texts = document.pop("stringData") or {}
        data = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        document["data"] = {**(document.get("data") or {}), **data}
    return document
