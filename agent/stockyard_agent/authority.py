"""The CA certificate hash that ``kubeadm join`` expects: SHA-256 over the SubjectPublicKeyInfo."""

from __future__ import annotations

import hashlib
import ssl

_SEQUENCE, _VERSION = 0x30, 0xA0
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
    start, _ = _inside(certificate, 0, _SEQUENCE)
    position, end = _inside(certificate, start, _SEQUENCE)
    # An optional version, then serial number, signature algorithm, issuer, validity, subject.
    if certificate[position : position + 1] == bytes([_VERSION]):
        position = _element(certificate, position)[2]
    for _ in range(5):
        position = _element(certificate, position)[2]
    tag, _, after = _element(certificate, position)
    if tag != _SEQUENCE or after > end:
        raise ValueError("the certificate has no public key where it belongs")
    return certificate[position:after]


def _inside(data: bytes, position: int, expected: int) -> tuple[int, int]:
    """Start and end of an element's content. Raises ``ValueError`` when the element has another tag."""
    tag, start, end = _element(data, position)
    if tag != expected:
        raise ValueError(f"not a certificate: tag {tag:#x} at {position}")
    return start, end


def _element(data: bytes, position: int) -> tuple[int, int, int]:
    """Tag, start of the content and end of the element at ``position``. DER allows definite lengths only."""
    if position + 2 > len(data):
        raise ValueError("the certificate is cut off")
    tag, length = data[position], data[position + 1]
    start = position + 2
    if length & 0x80:
        size = length & 0x7F
        if not 1 <= size <= 4 or start + size > len(data):
            raise ValueError("the certificate has a length that DER does not allow")
        length = int.from_bytes(data[start : start + size], "big")
        start += size
    if start + length > len(data):
        raise ValueError("the certificate is cut off")
    return tag, start, start + length
