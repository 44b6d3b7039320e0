"""The Kubernetes API of one cluster over HTTPS: objects are applied, read, listed and deleted.

Each of these calls may be repeated: what was applied or deleted before is so again. This is the one layer that does.
"""

from __future__ import annotations

import base64
import binascii
import json
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from stockyard.errors import (
    VendorConflict,
    VendorNotFound,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
    VendorUnavailable,
)
from stockyard.providers.kubernetes.errors import CONFLICT, EXPIRED, ObjectChanged, Subject, refused, unanswered

if TYPE_CHECKING:
    import httpx

    from stockyard.providers.addresses import Guard

MANAGER = "stockyard"
"""Under this name the fields are ours that we apply."""
APPLY = "application/apply-patch+yaml"
CONNECT_SECONDS, READ_SECONDS = 5.0, 15.0
ATTEMPTS = 3
PAGE = 500
_NEW_LISTS = 3
"""How often a list is begun anew that has expired between two pages."""
_TRANSIENT = (VendorTimeout, VendorUnavailable, VendorThrottled)
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Resource:
    """A kind as the server's discovery names it."""

    root: str
    name: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """The path of an object, or of all objects; without a namespace, of those of all namespaces."""
        inside = f"/namespaces/{quote(namespace, safe='')}" if self.namespaced and namespace else ""
        return f"{self.root}{inside}/{self.name}" + (f"/{quote(name, safe='')}" if name else "")


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """Identity of a user without a token: certificate and key, PEM in base64."""

    certificate_b64: str = field(repr=False)
    key_b64: str = field(repr=False)


class KubernetesApi:
    """A cluster's API at ``server``, an https URL, known by its authority's certificate (PEM in base64); None where the
    ``transport`` knows whom it speaks to.

    ``token`` is asked at each call, and what it gives is kept nowhere; empty for a user that is known by its
    ``certificate``. ``transport`` replaces the network, ``guard`` stands before either where a caller names the server.
    ``attempts``: how often a call is made that may be made again.
    Errors are leaves of ``VendorError``, and none repeats what was sent.
    """

    def __init__(
        self,
        server: str,
        certificate_authority_b64: str | None,
        token: Callable[[], str],
        transport: httpx.BaseTransport | None = None,
        certificate: ClientCertificate | None = None,
        guard: Guard | None = None,
        attempts: int = ATTEMPTS,
    ) -> None:
        if not server.startswith("https://"):
            raise VendorRefused("the cluster's address is no https URL", code="Address")
        self._server, self._authority, self._token = server.rstrip("/"), certificate_authority_b64, token
        self._transport, self._certificate, self._guard = transport, certificate, guard
        self._attempts = attempts
        self._client: httpx.Client | None = None
        self._kinds: dict[tuple[str, str], _Resource] = {}
        self._impersonated: dict[str, str] = {}

    def acting_as(self, user: str, group: str) -> KubernetesApi:
        """A second client that acts with this client's user as another person, in that group and in no other of ours.
        The API server refuses it where the user may not."""
        other = KubernetesApi(
            self._server,
            self._authority,
            self._token,
            self._transport,
            self._certificate,
            self._guard,
            self._attempts,
        )
        other._impersonated = {"Impersonate-User": user, "Impersonate-Group": group}
        return other

    def close(self) -> None:
        """Close the connections. A later call opens others."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def apply(
        self,
        document: Mapping[str, Any],
        *,
        manager: str = MANAGER,
        dry_run: bool = False,
        resource_version: str | None = None,
        uid: str | None = None,
        force: bool = True,
    ) -> Object:
        """Make the object, or give the one that is there the fields of ``document``; fields that an earlier document of
        the ``manager`` had and this one lacks are removed. The object as it then is; with ``dry_run`` as it would be.

        With ``force`` also those that somebody else has set; without it ``ObjectChanged`` where that would change one.
        With ``resource_version`` only the object of that version: ``ObjectChanged`` where it is another. The server
        makes one that is gone anew all the same, unless ``uid`` says which one is meant: whoever compares gives both.
        An earlier call of ours whose answer was lost is such a change, too: whoever compares reads what is there.
        ``VendorNotFound`` where the cluster does not serve the kind, or has not the namespace.
        """
        meta = document["metadata"]
        expected = {"resourceVersion": resource_version, "uid": uid}
        expected = {key: value for key, value in expected.items() if value is not None}
        document = {**document, "metadata": {**meta, **expected}}
        kind, name = str(document["kind"]), str(meta["name"])
        resource = self._resource(str(document["apiVersion"]), kind)
        namespace = _namespace(resource, str(meta.get("namespace") or ""))
        query = {"fieldManager": manager, **({"force": "true"} if force else {})}
        query |= {"dryRun": "All"} if dry_run else {}
        subject = Subject("apply", kind, name, namespace)
        try:
            return self._call(subject, "PATCH", resource.path(namespace, name), query, document)
        except VendorConflict as error:
            if error.code != CONFLICT or (force and not expected):
                raise
            raise ObjectChanged(error.detail, code=error.code, hint="Read it again, and decide anew.") from None

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        """The object; None where there is none, or where the cluster does not serve its kind."""
        try:
            resource = self._resource(api_version, kind)
            inside = _namespace(resource, namespace)
            return self._call(Subject("get", kind, name, inside), "GET", resource.path(inside, name))
        except VendorNotFound:
            return None

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> None:
        """Begin to delete the object with all that it owns; one that is gone is no error. It stays readable until its
        finalizers are done."""
        try:
            resource = self._resource(api_version, kind)
            inside = _namespace(resource, namespace)
            options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
            self._call(Subject("delete", kind, name, inside), "DELETE", resource.path(inside, name), body=options)
        except VendorNotFound:
            return

    def account_token(self, namespace: str, name: str, seconds: int) -> str:
        """A new token of a service account, which ends by itself. The cluster keeps none."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/serviceaccounts/{quote(name, safe='')}/token"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        answer = self._call(Subject("token", "ServiceAccount", name, namespace), "POST", path, body=body)
        return str(answer["status"]["token"])

    def may(self, verb: str, group: str, resource: str, namespace: str) -> bool:
        """Whether whoever asks has that right in the namespace. ``resource`` includes the subresource, behind a
        slash."""
        name, _, part = resource.partition("/")
        attributes = {"verb": verb, "group": group, "resource": name, "namespace": namespace}
        kind = "SelfSubjectAccessReview"
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": kind,
            "spec": {"resourceAttributes": {**attributes, **({"subresource": part} if part else {})}},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = self._call(Subject("review", kind, resource, namespace), "POST", path, body=body)
        return (answer.get("status") or {}).get("allowed") is True

    def list(
        self,
        api_version: str,
        kind: str,
        namespace: str = "",
        labels: str = "",
        *,
        fields: str = "",
        page: int = PAGE,
        most: int | None = None,
        part: Callable[[Object], Object] = dict,
    ) -> list[Object]:
        """All objects of a kind, of all namespaces without one, by selectors of ``labels`` and ``fields``; none where
        it is not served. ``page``: how many come with one answer; fewer of large objects. With ``most`` no more than
        so many are read. ``part`` is what is kept of each."""
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        query = {"limit": str(page), **{key: text for key, text in selectors.items() if text}}
        for attempt in range(_NEW_LISTS):
            try:
                return [part(each) for each in islice(self._pages(api_version, kind, namespace, query), most)]
            except VendorNotFound:
                return []
            except VendorRefused as error:
                if error.code != EXPIRED or attempt == _NEW_LISTS - 1:
                    raise
        raise AssertionError

    def _pages(self, api_version: str, kind: str, namespace: str, query: Mapping[str, str]) -> Iterator[Object]:
        resource = self._resource(api_version, kind)
        subject = Subject("list", kind, namespace=namespace)
        while True:
            page = self._call(subject, "GET", resource.path(namespace), query)
            # the items of a list do not say themselves what they are
            yield from ({"apiVersion": api_version, "kind": kind, **item} for item in page.get("items") or ())
            following = (page.get("metadata") or {}).get("continue")
            if not following:
                return
            query = {**query, "continue": str(following)}

    def _resource(self, api_version: str, kind: str) -> _Resource:
        """Address of objects of a kind. What is served is remembered; what is not may be served in a moment."""
        if (api_version, kind) not in self._kinds:
            root = f"/{'apis' if '/' in api_version else 'api'}/{quote(api_version)}"
            for entry in self._served(root, kind):
                if "/" not in entry["name"]:
                    resource = _Resource(root, entry["name"], bool(entry["namespaced"]))
                    self._kinds.setdefault((api_version, entry["kind"]), resource)
        if (api_version, kind) not in self._kinds:
            raise VendorNotFound(f"the cluster serves no {kind} of {api_version}", code="NotServed")
        return self._kinds[api_version, kind]

    def _served(self, root: str, kind: str) -> Sequence[Object]:
        """The resources of a group's version; none where the cluster has not the group."""
        try:
            return self._call(Subject("discover", kind), "GET", root).get("resources") or ()
        except VendorNotFound:
            return ()

    def _call(
        self,
        subject: Subject,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Object:
        import stamina  # kept out of cold starts

        for attempt in stamina.retry_context(on=_pause, attempts=self._attempts, wait_initial=0.2, wait_max=2.0):
            with attempt:
                answer = self._send(subject, method, path, query, body)
        return answer

    def _send(
        self, subject: Subject, method: str, path: str, query: Mapping[str, str] | None, body: Mapping[str, Any] | None
    ) -> Object:
        import httpx  # kept out of cold starts

        token = self._token()
        headers = {"Accept": "application/json", **self._impersonated}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            headers["Content-Type"] = APPLY if method == "PATCH" else "application/json"
        content = json.dumps(body).encode() if body is not None else None
        try:
            answer = self._connected().request(method, path, params=query, headers=headers, content=content)
        except (httpx.InvalidURL, UnicodeError):  # the latter for a name of a host that is none
            raise VendorRefused("the cluster's address is no https URL", code="Address") from None
        except httpx.HTTPError as error:
            raise unanswered(subject, error) from None  # the chain would hold the request
        if not answer.is_success:
            raise refused(subject, answer.status_code, answer.content, answer.headers.get("Retry-After", ""))
        try:
            document = answer.json()
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise VendorUnavailable(f"{subject}: the answer is no object", code=str(answer.status_code))
        return document

    def _connected(self) -> httpx.Client:
        import httpx

        if self._client is None:
            trust: ssl.SSLContext | bool = True
            if self._authority is not None:
                trust = _trust(self._authority, self._certificate)
            transport = self._transport
            if self._guard is not None:
                from stockyard.providers.guarded_transport import GuardedTransport

                inner = transport or httpx.HTTPTransport(verify=trust, trust_env=False)
                transport = GuardedTransport(self._guard, inner)
            self._client = httpx.Client(
                base_url=self._server,
                verify=trust,
                transport=transport,
                timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
                follow_redirects=False,
                trust_env=False,
            )
        return self._client


def _trust(certificate_authority_b64: str, certificate: ClientCertificate | None = None) -> ssl.SSLContext:
    """Trusts this authority and no other. ``VendorRefused`` where it is no certificate."""
    try:
        pem = base64.b64decode(certificate_authority_b64, validate=True).decode("ascii")
        context = ssl.create_default_context(cadata=pem or None)
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError):
        pem = ""
    if not pem:
        raise VendorRefused("the cluster's authority is no certificate in base64", code="Authority")
    if certificate is not None:
        _load(context, certificate)
    return context


def _load(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """Python reads a client's key from a file alone: from one that only we may read, and that is gone afterwards."""
    try:
        with NamedTemporaryFile(suffix=".pem") as file:
            file.write(base64.b64decode(certificate.certificate_b64) + b"\n" + base64.b64decode(certificate.key_b64))
            file.flush()
            context.load_cert_chain(file.name)
    except (binascii.Error, ssl.SSLError):
        raise VendorRefused("the client's certificate does not fit its key", code="ClientCertificate") from None


def _namespace(resource: _Resource, namespace: str) -> str:
    """Namespace of an object: an object that has a namespace is in ``default`` unless it says otherwise."""
    return (namespace or "default") if resource.namespaced else ""


def _pause(error: Exception) -> bool | float:
    """Whether to try again, or after how many seconds where the server says so."""
    if not isinstance(error, _TRANSIENT):
        return False
    return float(error.retry_after) if error.retry_after is not None else True
