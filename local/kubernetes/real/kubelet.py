"""Work of ``kubeadm join`` and of a kubelet until its node is registered: discovery, the first certificate, the Node.

From then on kwok plays the kubelet.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from local.kubernetes.cluster import CERTIFICATE_SECONDS, JoinFailed, Kubelet, Registration
from local.kubernetes.real.build import missing_cloud, release
from local.kubernetes.real.client import Client, Refused, certified
from local.kubernetes.real.control_plane import KWOK

UNINITIALIZED = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}
"""What a kubelet puts on its node that waits for its cloud's controller. Where none is built nobody would take it away.
"""
_REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"


def join(configuration: Mapping[str, Any], kubelet: Kubelet, url: str, folder: Path, alive: Callable[[], bool]) -> str:
    """Join the cluster at ``url`` with a ``JoinConfiguration``; the node's key goes into ``folder``.

    It waits for its certificate while the machine is ``alive``. Returns the node's name. Raises ``JoinFailed``.
    """
    bootstrap, registration = configuration["discovery"]["bootstrapToken"], Registration.read(configuration)
    try:
        authority = discovered(url, bootstrap["token"], bootstrap["caCertHashes"])
        key = ec.generate_private_key(ec.SECP256R1())
        asking = Client(url, ssl.create_default_context(cadata=authority), bootstrap["token"])
        certificate = _issued(asking, registration.name, key, alive)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        node = Client(url, certified(folder / f"{registration.name}.pem", authority, certificate, secret))
        register(node, registration, kubelet)
    except (OSError, Refused) as error:
        raise JoinFailed(f"{url}: {error}") from None
    return registration.name


def discovered(url: str, token: str, pins: list[str]) -> str:
    """The cluster's authority, from the public document that the token has signed. Raises ``JoinFailed``."""
    insecure = ssl.create_default_context()
    insecure.check_hostname, insecure.verify_mode = False, ssl.CERT_NONE
    document = Client(url, insecure).call("GET", "/api/v1/namespaces/kube-public/configmaps/cluster-info")
    identity, _, secret = token.partition(".")
    text, signature = document["data"]["kubeconfig"], document["data"].get(f"jws-kubeconfig-{identity}", "")
    header, _, proof = signature.partition("..")
    signed = f"{header}.{_unpadded(text.encode())}".encode()
    if not hmac.compare_digest(_unpadded(hmac.new(secret.encode(), signed, "sha256").digest()), proof):
        raise JoinFailed(f"{url}: the cluster's document carries no signature of the token {identity}")
    cluster = yaml.safe_load(text)["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    public = x509.load_pem_x509_certificate(authority.encode()).public_key()
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if f"sha256:{hashlib.sha256(der).hexdigest()}" not in pins:
        raise JoinFailed(f"the authority of {url} has none of the hashes {pins}")
    return authority


def register(client: Client, registration: Registration, kubelet: Kubelet) -> None:
    """Create the Node as its kubelet; one that is there already stays. Raises ``Refused``, ``OSError``."""
    taints = (
        [*registration.taints, UNINITIALIZED] if registration.external and not missing_cloud() else registration.taints
    )
    document = kubelet.node(
        registration.name, {**registration.labels, KWOK: "on"}, taints, registration.pods, registration.reserved
    )
    status = {name: document["status"][name] for name in ("capacity", "allocatable")}
    addresses = [{"type": "Hostname", "address": registration.name}]
    if kubelet.address:
        addresses.insert(0, {"type": "InternalIP", "address": kubelet.address})
    # kwok makes it ready, as its container runtime would.
    document["status"] = {**status, "addresses": addresses, "nodeInfo": _info(kubelet)}
    try:
        client.call("POST", "/api/v1/nodes", document)
    except Refused as refused:
        if refused.status != 409:
            raise


def _info(kubelet: Kubelet) -> dict[str, str]:
    empty = ("bootID", "kernelVersion", "kubeProxyVersion", "machineID", "osImage", "systemUUID")
    own = {"architecture": kubelet.architecture, "operatingSystem": "linux", "containerRuntimeVersion": "kwok"}
    return {**dict.fromkeys(empty, ""), **own, "kubeletVersion": f"v{kubelet.release or release()}"}


def _issued(client: Client, name: str, key: ec.EllipticCurvePrivateKey, alive: Callable[[], bool]) -> bytes:
    """The certificate of the node ``name``, once its request is approved. ``JoinFailed`` when it is not."""
    subject = [(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, f"system:node:{name}")]
    attributes = x509.Name([x509.NameAttribute(kind, value) for kind, value in subject])
    request = x509.CertificateSigningRequestBuilder().subject_name(attributes).sign(key, SHA256())
    document = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "node-csr-"},
        "spec": {
            "request": base64.b64encode(request.public_bytes(Encoding.PEM)).decode(),
            "signerName": _SIGNER,
            "usages": ["digital signature", "client auth"],
        },
    }
    path = f"{_REQUESTS}/{client.call('POST', _REQUESTS, document)['metadata']['name']}"
    ends_at = time.monotonic() + CERTIFICATE_SECONDS
    while alive() and time.monotonic() < ends_at:
        status = client.call("GET", path).get("status") or {}
        if status.get("certificate"):
            return base64.b64decode(status["certificate"])
        for condition in status.get("conditions") or ():
            if condition["type"] in ("Denied", "Failed"):
                raise JoinFailed(f"the certificate of {name} is refused: {condition.get('message')}")
        time.sleep(0.3)
    raise JoinFailed(f"{client.address}: nobody has approved the request of {name}")


def _unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
