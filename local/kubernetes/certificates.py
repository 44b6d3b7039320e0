"""Requests for certificates in a simulated Kubernetes API: who may ask, how they are decided, what they are good for.

An approved request counts as issued: nodes of a simulated cluster present no certificates.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from local.kubernetes.resources import CERTIFICATES
from local.kubernetes.rules import Action, group_grants, refusal
from local.kubernetes.store import Key, KubeStore, Object, StatusError

CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
REQUESTS = "certificatesigningrequests"
NODES, NODE_USER = "system:nodes", "system:node:"
_DECISIONS = ("Approved", "Denied")


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """Request of a kubelet for a certificate; each field but the node's name may be what no kubelet would say."""

    node: str
    organization: str = NODES
    usages: Sequence[str] = ("digital signature", "client auth")
    signer: str = CLIENT
    names: Sequence[x509.GeneralName] = ()

    def pem(self) -> bytes:
        """The request, signed with a new key."""
        subject = [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, self.organization),
            x509.NameAttribute(NameOID.COMMON_NAME, NODE_USER + self.node),
        ]
        builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
        if self.names:
            builder = builder.add_extension(x509.SubjectAlternativeName(self.names), critical=False)
        return builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)


def request_first(store: KubeStore, token: str, desired: CertificateRequest) -> str:
    """The name of a new request by the holder of a bootstrap token. Raises ``StatusError`` 401, 403."""
    identity, groups = _bearer(store, token)
    user, action = f"system:bootstrap:{identity}", Action("create", CERTIFICATES, REQUESTS)
    if not any(grant.covers(action) for grant in group_grants(store, groups)):
        raise StatusError(403, refusal(user, action))
    return request(store, user, groups, desired)


def request(store: KubeStore, user: str, groups: frozenset[str], desired: CertificateRequest) -> str:
    """The name of a new request."""
    name = f"csr-{store.revision}"
    spec = {
        "request": base64.b64encode(desired.pem()).decode(),
        "signerName": desired.signer,
        "usages": list(desired.usages),
        "username": user,
        "groups": sorted(groups),
    }
    document = {"apiVersion": f"{CERTIFICATES}/v1", "kind": "CertificateSigningRequest", "spec": spec}
    store.create(_key(name), {**document, "metadata": {"name": name}})
    return name


def decide(store: KubeStore, key: Key, document: Mapping[str, Any]) -> Object:
    """The approval subresource: conditions are added, once and for all. Raises ``StatusError`` 404, 409, 422."""
    current = store.get(key)
    before = list((current.get("status") or {}).get("conditions") or ())
    after = list((document.get("status") or {}).get("conditions") or ())
    types = {condition["type"] for condition in after}
    if any(condition not in after for condition in before) or set(_DECISIONS) <= types:
        text = f'{current["kind"]}.{CERTIFICATES} "{key.name}" is invalid: status.conditions: Invalid value'
        raise StatusError(422, text, key=key)
    changed = {**current, "status": {**(current.get("status") or {}), "conditions": after}}
    meta = document.get("metadata") or {}
    return store.replace(key, {**changed, "metadata": {**current["metadata"], **_versioned(meta)}})


def issued(store: KubeStore, name: str, node: str) -> bool:
    """Whether a request was answered with a certificate. Raises ``StatusError`` 403 for one that can never register the
    node."""
    document = store.get(_key(name))
    types = {condition["type"]: condition for condition in (document.get("status") or {}).get("conditions") or ()}
    if "Denied" in types:
        raise StatusError(403, f"certificate request {name} was denied: {types['Denied'].get('message', '')}")
    signed = x509.load_pem_x509_csr(base64.b64decode(document["spec"]["request"]))
    (common_name,) = signed.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if common_name.value != NODE_USER + node:
        raise StatusError(403, f'node "{node}" is not allowed to be registered by "{common_name.value!s}"')
    return "Approved" in types


def _bearer(store: KubeStore, token: str) -> tuple[str, frozenset[str]]:
    """Id and groups of a bootstrap token. Raises ``StatusError`` 401."""
    identity, _, token_secret = token.partition(".")
    secret = store.objects.get(Key("", "secrets", "kube-system", f"bootstrap-token-{identity}"), {})
    data = {name: base64.b64decode(value).decode() for name, value in (secret.get("data") or {}).items()}
    usable = data.get("usage-bootstrap-authentication") == data.get("usage-bootstrap-signing") == "true"
    fresh = not data.get("expiration") or store.now() < datetime.fromisoformat(data["expiration"])
    if (data.get("token-id"), data.get("token-secret")) != (identity, token_secret) or not (usable and fresh):
        raise StatusError(401, "Unauthorized")
    groups = filter(None, data.get("auth-extra-groups", "").split(","))
    return identity, frozenset({"system:bootstrappers", "system:authenticated", *groups})


def _versioned(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {"resourceVersion": meta["resourceVersion"]} if "resourceVersion" in meta else {}


def _key(name: str) -> Key:
    return Key(CERTIFICATES, REQUESTS, "", name)
