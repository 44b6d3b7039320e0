"""A simulated Kubernetes API, in the process or on loopback HTTP: nodes, pods, secrets, evictions, server-side apply.

``tests/kubernetes`` holds it to a real one. Of controllers it has that of budgets; it judges no admission policy.
It judges every request by the roles and bindings stored in it, so that what a manifest does not grant is a 403. Faults
can be planned (``faults``), and every call is recorded with what became of it (``calls``). Its kubelets are asked to
work by ``reap`` of :mod:`local.kubernetes.pods`; ``request_certificate`` and ``register`` are what a kubelet
does with a bootstrap token.
"""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from local.kubernetes import apply as kube_apply
from local.kubernetes import certificates as kube_certificates
from local.kubernetes import pods as kube_pods
from local.kubernetes.controllers import quotas, scale, upkeep
from local.kubernetes.people import MASTERS, Person, Webhook, impersonated, reviewed
from local.kubernetes.people import review as review_self
from local.kubernetes.requests import JSON_PATCH, NOWHERE, Request, key_of, parse
from local.kubernetes.resources import AUTHENTICATION, AUTHORIZATION, CERTIFICATES, Resource
from local.kubernetes.rules import Action, Grant, grants, person_grants, refusal
from local.kubernetes.schema import custom, openapi, patches, validation
from local.kubernetes.schema.columns import table
from local.kubernetes.schema.discovery import discovery
from local.kubernetes.schema.types import type_of
from local.kubernetes.server import ConnectionReset, Server, serve
from local.kubernetes.store import Key, KubeStore, Object, StatusError, copied, selected, stamp
from local.kubernetes.watches import Watch

MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
_LEAST_SECONDS = 600
"""The shortest time that a token of an account may have."""
_PAGE = re.compile("/version|/healthz|/livez|/readyz|/api|/apis|/api/v1|/apis/[^/]+/[^/]+")
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
                resource = next(each for each in self.store.resources if each.is_of(key))
                kube_apply.apply(self.store, key, document, "administrator", resource, force=True)

    @contextmanager
    def locked_store(self) -> Iterator[KubeStore]:
        """The objects. No request runs while the context manager is open."""
        with self._lock:
            yield self.store

    def request_certificate(self, token: str, desired: kube_certificates.CertificateRequest) -> str:
        """Ask for a kubelet's first certificate with a bootstrap token, as ``kubeadm join`` does; the request's name.

        Raises ``StatusError``: 401 for an invalid token, 403 when its groups may not ask.
        """
        with self._lock:
            return kube_certificates.request_first(self.store, token, desired)

    def register(self, request: str, document: Mapping[str, Any]) -> Object | None:
        """Register a node with the certificate that the request was answered with; None while nobody has decided.

        Raises ``StatusError`` 403 when it was denied, or is for another node.
        """
        with self._lock:
            if not kube_certificates.issued(self.store, request, document["metadata"]["name"]):
                return None
            return self.store.create(key_of(document), document)

    def request(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> tuple[int, Any]:
        """Status and body of one request: an object, or text, which has the events of a watch so far. Header names are
        in lower case. A fault may raise ``ConnectionReset``."""
        status, answer = self.answer(method, target, headers, body)
        return status, answer.text() if isinstance(answer, Watch) else answer

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> tuple[int, Any]:
        """As ``request``, but the body of a watch is the ``Watch``."""
        person = self._person(headers)  # not under the lock: the webhook asks others
        with self._lock:
            try:
                status, answer = self._judged(method, target, headers, body, person)
            except StatusError as error:
                return error.status, error.message if error.plain else error.body
            return status, answer if isinstance(answer, Watch) else copied(answer)

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
        pages = self._pages(path) if method == "GET" else {}
        parsed = None if path in pages else parse(self.store.resources, method, target, headers, body)
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

    def _pages(self, path: str) -> Mapping[str, Any]:
        """Pages by their paths, which whoever is known may read; all that may be at this path are among them."""
        if path.startswith(openapi.ROOT):
            page = openapi.document(path, self.store.resources)
            return {} if page is None else {path: page}
        return discovery(self.version, self.store.resources) if _PAGE.fullmatch(path) else {}

    def _carry_out(self, request: Request, account: Account) -> tuple[int, Any]:
        if request.resource is not None and request.resource.group in (AUTHORIZATION, AUTHENTICATION):
            return 201, review_self(request.body, request.action.resource, *self._grants(account))
        self._authorize(request.action, account)
        if request.resource is None:
            raise request.refusal or StatusError(404, NOWHERE)
        key, verb, part = request.key, request.action.verb, request.subresource
        if part in scale.IN_NAME_ONLY:
            self.store.get(key)
            raise scale.refusal(part, key.name)
        if verb in ("list", "get", "watch"):
            return 200, self._reading(request.resource, request)
        if "fieldValidation" in request.query and verb in ("create", "update") and not part:
            validation.check(request.body, strict=(strict := request.query["fieldValidation"] == "Strict"))
            if strict:
                custom.check_fields(request.resource, request.body)
        return self._writing(request.resource, request, account)

    def _writing(self, resource: Resource, request: Request, account: Account) -> tuple[int, Any]:
        """Status and body after a change; nothing changes where the request is a dry run."""
        key, verb, part = request.key, request.action.verb, request.subresource
        is_dry = request.query.get("dryRun") == "All"
        store = self.store.draft() if is_dry else self.store
        if verb == "create":
            return 201, self._create(request, store)
        if verb == "delete":
            marked = self.store.get(key) if is_dry else self._delete(key, {**request.query, **request.body})
            return 200, marked or {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        if verb == "patch" and part != "scale":
            return self._patch(request, account, store)
        if part == "scale":
            changed = scale.scaled(store, key, request.body)
        elif part == "approval":
            changed = self._approve(request, account)
        else:
            changed = kube_apply.put(store, resource, key, request.body, part)
        return 200, changed

    def _delete(self, key: Key, options: Mapping[str, Any]) -> Object | None:
        if key.resource == "namespaces":
            return upkeep.end_namespace(self.store, key, options)
        return (kube_pods.delete if key.resource == "pods" else KubeStore.remove)(self.store, key, options)

    def _reading(self, resource: Resource, request: Request) -> Any:
        """An object, a page of a list, or a watch; as a table where the client asks for one."""

        def form(items: list[Object]) -> Object:
            return table(resource, items, self.now(), request.query)

        if request.action.verb == "watch":
            selected(request.query)
            table_form = form if request.as_table else None
            return Watch(self.store, self._lock, resource, request.key.namespace, request.query, table_form)
        if request.action.verb == "get":
            document = kube_pods.with_status(self.store, request.key, self.store.get(request.key))
            if request.subresource == "scale":
                return scale.scale_of(document)
            return form([document]) if request.as_table else document
        answer = self.store.listed(resource, request.key.namespace, request.query)
        items = [kube_pods.with_status(self.store, request.key, item) for item in answer["items"]]
        if request.as_table:
            return {**form(items), "metadata": answer["metadata"]}
        return answer | {"items": items}

    def _create(self, request: Request, store: KubeStore) -> Object:
        key = request.key
        space = store.objects.get(Key("", "namespaces", "", key.namespace))
        if key.namespace in self.terminating or (space and "deletionTimestamp" in space["metadata"]):
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
            document["spec"] = kube_pods.defaulted(document.get("spec") or {})
        elif key.resource == "services":
            document["spec"] = upkeep.addressed(document.get("spec") or {}, store.revision)
        meta = document.setdefault("metadata", {})
        if not meta.get("name") and meta.get("generateName"):
            document["metadata"] = {**meta, "name": f"{meta['generateName']}{store.suffix()}"}
        key = key_of(document, key.namespace, store.resources)
        custom.check_namespace(request.resource, store, key)
        document = custom.admitted(store, request.resource, key, None, document)
        quotas.check(store, key)
        return store.create(key, document)

    def _token(self, key: Key, desired: Object) -> Object:
        """A token of a service account. It does not end here."""
        self.store.get(key)
        seconds = int(desired.get("spec", {}).get("expirationSeconds", 3600))
        if seconds < _LEAST_SECONDS:
            text = f"may not specify a duration less than {_LEAST_SECONDS // 60} minutes"
            kind = 'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds'
            raise StatusError(422, f"{kind}: Invalid value: {seconds}: {text}")
        end = stamp(self.now() + timedelta(seconds=seconds))
        return {**desired, "status": {"token": self.issue(key.namespace, key.name), "expirationTimestamp": end}}

    def _approve(self, request: Request, account: Account) -> Object:
        signer = self.store.get(request.key)["spec"]["signerName"]
        self._authorize(Action("approve", CERTIFICATES, "signers", "", signer), account)
        return kube_certificates.decide(self.store, request.key, request.body)

    def _patch(self, request: Request, account: Account, store: KubeStore) -> tuple[int, Object]:
        key, kind = request.key, request.content_type.partition(";")[0]
        if kind in (MERGE, patches.STRATEGIC, JSON_PATCH):
            current = store.get(key)
            result = self._patched(current, kind, request)
            return 200, custom.replaced(store, request.resource, key, current, result, request.subresource)
        if kind != APPLY:
            raise StatusError(415, f"the body of the request was in an unknown format: {request.content_type}")
        manager = request.query.get("fieldManager")
        if not manager:
            text = 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
            raise StatusError(422, text)
        status = 200 if key in store.objects else 201
        if status == 201:
            self._authorize(Action("create", key.group, key.resource, key.namespace, key.name), account)
        force = request.query.get("force") == "true"
        about = request.resource, request.subresource
        return status, kube_apply.apply(store, key, request.body, manager, *about, force=force)

    def _patched(self, current: Object, kind: str, request: Request) -> Object:
        if kind == JSON_PATCH:
            result = patches.json_patched(current, request.body)
        elif kind == patches.STRATEGIC:
            type_name = type_of(current["apiVersion"], current["kind"])
            if not type_name:
                raise StatusError(415, f"{kind} is not supported for {current['kind']}; send {MERGE}")
            result = patches.strategic(current, request.body, type_name)
        else:
            result = kube_apply.merged(current, request.body)
        if "fieldValidation" in request.query:
            validation.check(result, strict=request.query["fieldValidation"] == "Strict")
        return result

    def _grants(self, account: Account) -> tuple[str, frozenset[str], list[Grant]]:
        """Name, groups and grants of whoever asks."""
        everything = [Grant("*", "*", "*", "", "")]
        if isinstance(account, Person):
            granted = person_grants(self.store, account.name, account.groups)
            return account.name, account.groups, everything if MASTERS in account.groups else granted
        name = f"system:serviceaccount:{account[0]}:{account[1]}"
        if account == _MASTER:
            return account[1], frozenset({MASTERS, "system:authenticated"}), everything
        return name, frozenset({"system:serviceaccounts", "system:authenticated"}), grants(self.store, account)

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
