"""A cluster's certificate authority, as ``kubeadm init`` creates it, and the serving certificate of its API."""

from __future__ import annotations

import hashlib
import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = timedelta(days=3650)
_LOOPBACK = ipaddress.ip_address("127.0.0.1")


class Authority:
    """``pem`` is the authority's certificate; its files go into ``folder``, where kubeadm would put them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("kubernetes")
        self.pem = self._certificate().decode()
        (folder / "ca.crt").write_text(self.pem, encoding="utf-8")

    @property
    def pin(self) -> str:
        """The CA certificate hash of kubeadm: ``sha256:`` over the public key."""
        public = self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return f"sha256:{hashlib.sha256(public).hexdigest()}"

    def serving(self) -> ssl.SSLContext:
        """For an API on loopback, with a certificate of this authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name("kube-apiserver"), self._name, key)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(_LOOPBACK)]), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = builder.add_extension(issuer, critical=False).sign(self._key, SHA256())
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path = self._folder / "apiserver.pem"
        path.touch(mode=0o600)
        path.write_bytes(secret + certificate.public_bytes(Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _certificate(self) -> bytes:
        builder = _builder(self._name, self._name, self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_signs_certificates(), critical=True)
        subject = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        return builder.add_extension(subject, critical=False).sign(self._key, SHA256()).public_bytes(Encoding.PEM)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(issuer, name, key.public_key(), x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(minutes=5)).not_valid_after(now + _LIFE)


def _signs_certificates() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
