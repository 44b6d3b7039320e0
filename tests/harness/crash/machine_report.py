"""The report of a control plane that is up."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def machine_report(endpoint: str | None, authority: str = "Q0E=") -> dict[str, str]:
    """The body of ``POST /v1/clusters/{id}/ready``: a kubeconfig of that endpoint and certificate authority."""
    api = {"server": endpoint or "https://nowhere", "certificate-authority-data": authority}
    kubeconfig = {
        "clusters": [{"name": "k", "cluster": api}],
        "users": [{"name": "k", "user": {"token": "k"}}],
    }
    return {"kubeconfig": json.dumps(kubeconfig), "certificate_authority": authority}


def certificate(ends: datetime) -> bytes:
    """A client certificate as PEM, of kubeadm's administrator, that ends at that moment."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes-admin")])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(ends - timedelta(days=365))
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
    )
    return signed.public_bytes(serialization.Encoding.PEM)
