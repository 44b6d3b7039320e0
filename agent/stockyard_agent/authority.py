"""The CA certificate hash that ``kubeadm join`` expects: SHA-256 over the SubjectPublicKeyInfo."""

from __future__ import annotations

import hashlib
import ssl

from .der import SEQUENCE, whole

_VERSION = 0xA0
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def pin(pem: str) -> str:
    """``sha256:<hex>`` of the first certificate in ``pem``. Raises ``ValueError`` when it is missing or malformed."""
    start = pem.find(_BEGIN)
    end = pem.find(_END, start)
    if start < 0 or end < 0:
        raise ValueError("there is no certificate in PEM")
    certificate = ssl.PEM_cert_to_DER_cert(pem[start : end + len(_END)])
    return "sha256:" + hashlib.sha256(public_key(certificate)).hexdigest()


def public_key(certificate: bytes) -> bytes:
    """The encoded SubjectPublicKeyInfo of a certificate (X.509, DER). Raises ``ValueError``."""
    try:
        return _public_key(certificate)
    except ValueError as error:
        raise ValueError(f"the certificate is malformed: {error}") from None


def _public_key(certificate: bytes) -> bytes:
    signed = whole(certificate).expected(SEQUENCE).parts()
    fields = signed[0].expected(SEQUENCE).parts() if signed else []
    # An optional version, then serial number, signature algorithm, issuer, validity, subject.
    position = 6 if fields and fields[0].tag == _VERSION else 5
    if len(fields) <= position:
        raise ValueError("there is no public key where it belongs")
    return fields[position].expected(SEQUENCE).encoded
