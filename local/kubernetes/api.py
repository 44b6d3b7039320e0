"""A simulated Kubernetes API, in the process or on loopback HTTP: nodes, pods, secrets, evictions, server-side apply.

``tests/kubernetes`` holds it to a real one. Of controllers it has that of budgets; it judges no admission policy.
It judges every request by the roles and bindings stored in it, so that what a manifest does not grant is a 403. Faults
can be planned (``faults``), and every call is recorded with what became of it (``calls``). Its kubelets are asked to
work by ``reap`` of :mod:`local.kubernetes.pods`; ``request_certificate`` and ``register`` are what a kubelet
does with a bootstrap token.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from local.kubernetes import apply as kube_apply
from local.kubernetes import certificates as kube_certificates
from local.kubernetes import pods as kube_pods
from local.kubernetes.discovery import discovery
from local.kubernetes.people import MASTERS, Person, Webhook, impersonated, reviewed
from local.kubernetes.rules import Action, Grant, grants, person_grants, refusal
from local.kubernetes.server import ConnectionReset, Server, serve
from local.kubernetes.store import (
    CERTIFICATES,
    RESOURCES,
    WATCHED,
    Key,
    KubeStore,
    Object,
    Resource,
    StatusError,
    copied,
    stamp,
)

MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
_NOWHERE = "the server could not find the requested resource"
_SUBRESOURCES = {"pods": "eviction", "certificatesigningrequests": "approval", "serviceaccounts": "token"}
_LEAST_SECONDS = 600
"""The shortest time that a token of an account may have."""
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PAGE = re.compile("/version|/api|/apis|/api/v1|/apis/[^/]+/[^/]+")
"""Where discovery may have a page."""
_MASTER = ("", "kubernetes-admin")  # no rules hold for it
Account = tuple[str, str] | Person
"""Who asks: a service account, or whom the webhook knows."""


@dataclass
class Fault:
    """A fault injected into the next ``times`` calls of a verb on a resource (``pods/eviction``; ``*``: any).

    The call fails with ``status``. If ``reset`` is set, the connection ends ``before`` or ``after`` the call instead.
    """

    verb: str
    resource: str
    status: int = 0
    reset: str = ""
    times: int = 1
    message: str = "injected"

    def strikes(self, action: Action) -> bool:
        """Whether the fault applies to this call. Each call that it applies to is counted."""
        if not self.times or self.verb not in ("*", action.verb) or self.resource not in ("*", action.resource):
            return False
        self.times -= 1
        return True


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One request and the status of its response; 0 means that the connection was reset."""

    action: Action
    status: int


@dataclass(frozen=True, slots=True)
class _Request:
    resource: Resource | None
    """None when the API has no such resource, or none with this method: who may ask is judged first."""
    action: Action
    key: Key
    query: Mapping[str, str]
    content_type: str
    body: Object
    subresource: str = ""
    refusal: StatusError | None = None


@dataclass
class KubeApi:
    """One cluster. ``now`` is its clock, ``version`` what ``/version`` says."""

    version: str = "v1.34.1"
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    faults: list[Fault] = field(default_factory=list)
    calls: list[RecordedCall] = field(default_factory=list)
    used: set[Grant] = field(default_factory=set)
    """The grants that requests have used."""
    terminating: set[str] = field(default_factory=set)
    """Namespaces that are being deleted: nothing can be created in them."""
    webhook: Webhook | None = None
    """Who knows the tokens that are no service account's."""

    def __post_init__(self) -> None:
        self.store = KubeStore(self.now)
        self._accounts: dict[str, tuple[str, str]] = {}
        self._lock = threading.RLock()
        self._server: Server | None = None

    def issue(self, namespace: str, name: str) -> str:
        """A token of a service account."""
        token = f"simulated-{namespace}-{name}-{len(self._accounts)}"
        self._accounts[token] = (namespace, name)
        return token

    def administrator(self) -> str:
        """A token that is allowed everything, as the group ``system:masters`` is."""
        return self.issue(*_MASTER)

    def revoke(self, token: str) -> None:
        """Invalidate a token: requests with it get 401."""
        del self._accounts[token]

    def install(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Apply objects as an administrator does: no rules, no record."""
        with self._lock:
            for document in documents:
                key = key_of(document, served=self.store.resources)
                kube_apply.apply(self.store, key, document, "administrator", force=True)

    @contextmanager
    def locked_store(self) -> Iterator[KubeStore]:
        """The objects. No request runs while the context manager is open."""
        with self._lock:
            yield self.store

    def request_certificate(self, token: str, wish: kube_certificates.Wish) -> str:
        """Ask for a kubelet's first certificate with a bootstrap token, as ``kubeadm join`` does; the request's name.

        Raises ``StatusError``: 401 for an invalid token, 403 when its groups may not ask.
        """
        with self._lock:
            return kube_certificates.request_first(self.store, token, wish)

    def register(self, request: str, document: Mapping[str, Any]) -> Object | None:
        """Register a node with the certificate that the request was answered with; None while nobody has decided.

        Raises ``StatusError`` 403 when it was denied, or is for another node.
        """
        with self._lock:
            if not kube_certificates.issued(self.store, request, document["metadata"]["name"]):
                return None
            return self.store.create(key_of(document), document)

    def request(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> tuple[int, Any]:
        """Status and body of one request: an object, or text. Header names are in lower case. A fault may raise
        ``ConnectionReset``."""
        person = self._person(headers)  # not under the lock: the webhook asks others
        with self._lock:
            try:
                status, answer = self._judged(method, target, headers, body, person)
            except StatusError as error:
                return error.status, error.message if error.plain else error.body
            return status, copied(answer)

    def _person(self, headers: Mapping[str, str]) -> Person | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if self.webhook is None or kind != "Bearer" or token in self._accounts:
            return None
        return reviewed(self.webhook, token)

    def _judged(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, person: Person | None
    ) -> tuple[int, Any]:
        kind, _, token = headers.get("authorization", "").partition(" ")
        account: Account | None = self._accounts.get(token, person) if kind == "Bearer" else None
        if account is None:
            raise StatusError(401, "Unauthorized")
        for action in (other := impersonated(headers)).actions:
            self._authorize(action, account)
        account = other.person or account
        path = urlsplit(target).path
        pages = discovery(self.version, self.store.resources) if method == "GET" and _PAGE.fullmatch(path) else {}
        parsed = None if path in pages else _parse(self.store.resources, method, target, headers, body)
        action = parsed.action if parsed else Action("get", "", path)
        fault = next((fault for fault in self.faults if fault.strikes(action)), None)
        status = 0
        try:
            if fault and fault.reset != "after":
                raise ConnectionReset if fault.reset else StatusError(fault.status, fault.message)
            status, answer = self._carry_out(parsed, account) if parsed else (200, pages[path])
            if fault:
                status = 0
                raise ConnectionReset
        except StatusError as error:
            status = error.status
            raise
        finally:
            self.calls.append(RecordedCall(action, status))
        return status, answer

    def _carry_out(self, request: _Request, account: Account) -> tuple[int, Any]:
        self._authorize(request.action, account)
        if request.resource is None:
            raise request.refusal or StatusError(404, _NOWHERE)
        store, key, verb = self.store, request.key, request.action.verb
        if verb in ("list", "get", "watch"):
            return 200, self._reading(request.resource, request)
        if verb == "create":
            return 201, self._create(request)
        if request.subresource == "approval":
            return 200, self._approve(request, account)
        if verb == "update":
            return 200, kube_apply.put(store, request.resource, key, request.body, request.subresource)
        if verb == "patch":
            return self._patch(request, account)
        marked = (kube_pods.delete if key.resource == "pods" else type(store).remove)(store, key, request.body)
        return 200, marked or {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    def _reading(self, resource: Resource, request: _Request) -> Any:
        """An object, a page of a list, or the events of a watch, one a line."""
        if request.action.verb == "get":
            return kube_pods.with_status(self.store, request.key, self.store.get(request.key))
        if request.action.verb == "list":
            answer = self.store.listed(resource, request.key.namespace, request.query)
            return answer | {
                "items": [kube_pods.with_status(self.store, request.key, item) for item in answer["items"]]
            }
        events = self.store.watched(resource, request.key.namespace, request.query)
        return "".join(json.dumps(event) + "\n" for event in events)

    def _create(self, request: _Request) -> Object:
        key = request.key
        if key.namespace in self.terminating:
            text = f"unable to create new content in namespace {key.namespace} because it is being terminated"
            raise StatusError(403, text, causes=(("NamespaceTerminating", text),))
        if request.subresource == "eviction":
            return kube_pods.evict(self.store, key, request.body)
        if request.subresource == "token":
            return self._token(key, request.body)
        # The status of what has one by itself is written there alone; a pod begins as pending.
        hidden = "status" if request.resource and request.resource.has_status else ""
        document = {name: value for name, value in request.body.items() if name != hidden}
        if key.resource == "pods":
            document.setdefault("status", {"phase": "Pending"})
        return self.store.create(key_of(document, key.namespace, self.store.resources), document)

    def _token(self, key: Key, wish: Object) -> Object:
        """A token of a service account. It does not end here."""
        self.store.get(key)
        seconds = int(wish.get("spec", {}).get("expirationSeconds", 3600))
        if seconds < _LEAST_SECONDS:
            text = f"may not specify a duration less than {_LEAST_SECONDS // 60} minutes"
            kind = 'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds'
            raise StatusError(422, f"{kind}: Invalid value: {seconds}: {text}")
        end = stamp(self.now() + timedelta(seconds=seconds))
        return {**wish, "status": {"token": self.issue(key.namespace, key.name), "expirationTimestamp": end}}

    def _approve(self, request: _Request, account: Account) -> Object:
        signer = self.store.get(request.key)["spec"]["signerName"]
        self._authorize(Action("approve", CERTIFICATES, "signers", "", signer), account)
        return kube_certificates.decide(self.store, request.key, request.body)

    def _patch(self, request: _Request, account: Account) -> tuple[int, Object]:
        store, key = self.store, request.key
        if request.content_type == MERGE:
            return 200, store.replace(key, kube_apply.merged(store.get(key), request.body))
        if request.content_type != APPLY:
            raise StatusError(415, f"the body of the request was in an unknown format: {request.content_type}")
        manager = request.query.get("fieldManager")
        if not manager:
            text = 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
            raise StatusError(422, text)
        status = 200 if key in store.objects else 201
        if status == 201:
            self._authorize(Action("create", key.group, key.resource, key.namespace, key.name), account)
        force = request.query.get("force") == "true"
        if request.query.get("dryRun") == "All":
            store = store.draft()
        return status, kube_apply.apply(store, key, request.body, manager, force=force)

    def _authorize(self, action: Action, account: Account) -> None:
        if account == _MASTER or (isinstance(account, Person) and MASTERS in account.groups):
            return
        if isinstance(account, Person):
            name, granted = account.name, person_grants(self.store, account.name, account.groups)
        else:
            name, granted = f"system:serviceaccount:{account[0]}:{account[1]}", grants(self.store, account)
        allowed = {grant for grant in granted if grant.covers(action)}
        self.used |= allowed
        if not allowed:
            raise StatusError(403, refusal(name, action))

    def serve(self, context: ssl.SSLContext | None = None, address: tuple[str, int] = ("127.0.0.1", 0)) -> str:
        """Listen on loopback and return the base URL. With ``context`` the server uses TLS."""
        self._server, url = serve(self, context, address)
        return url

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


def key_of(document: Mapping[str, Any], namespace: str = "", served: Sequence[Resource] = RESOURCES) -> Key:
    """The key of an object. Raises ``StatusError`` 404 for a kind that is not served."""
    for resource in served:
        if (resource.api_version, resource.kind) == (document.get("apiVersion"), document.get("kind")):
            meta = document["metadata"]
            scope = (meta.get("namespace") or namespace or "default") if resource.namespaced else ""
            return Key(resource.group, resource.name, scope, meta["name"])
    raise StatusError(404, _NOWHERE)


def _parse(served: Sequence[Resource], method: str, target: str, headers: Mapping[str, str], body: bytes) -> _Request:
    parts = urlsplit(target)
    names = [unquote(name) for name in parts.path.strip("/").split("/")]
    if len(names) < (3 if names[0] == "api" else 4) or names[0] not in ("api", "apis"):
        raise StatusError(404, "404 page not found", plain=True)
    group, version, names_left = ("", names[1], names[2:]) if names[0] == "api" else (names[1], names[2], names[3:])
    namespace = ""
    if len(names_left) > 2 and names_left[0] == "namespaces":
        namespace, names_left = names_left[1], names_left[2:]
    resource = next((r for r in served if (r.group, r.version, r.name) == (group, version, names_left[0])), None)
    name, subresource = (*names_left[1:], "", "")[:2]
    verb = _VERBS.get(method) or ("get" if name else "list")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    verb = "deletecollection" if verb == "delete" and not name else verb
    watches = verb == "list" and query.get("watch") in ("true", "1") and names_left[0] in WATCHED
    verb = "watch" if watches else verb
    refusal = None if resource else StatusError(404, _NOWHERE)
    if resource and (
        (verb in ("update", "patch", "deletecollection") and not name)
        or subresource not in ("", _SUBRESOURCES.get(resource.name), "status" if resource.has_status else "")
    ):
        resource, refusal = None, StatusError(405, "the server does not allow this method on the requested resource")
    full_name = names_left[0] + (f"/{subresource}" if subresource else "")
    return _Request(
        resource,
        Action(verb, group, full_name, namespace, name),
        Key(group, names_left[0], namespace, name),
        query,
        headers.get("content-type", ""),
        json.loads(body or b"{}"),
        subresource,
        refusal,
    )


def node(name: str, *, ready: str = "True", claim: str = "", **spec: Any) -> Object:
    """A node as its kubelet registers it."""
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    labels.update({"stockyard.dev/claim": claim} if claim else {})
    room = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec,
        "status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": ready}]},
    }  # fmt: skip


__all__ = ["APPLY", "MERGE", "ConnectionReset", "Fault", "KubeApi", "RecordedCall", "StatusError", "key_of", "node"]
