"""A certificate authority, as ``kubeadm init`` creates it, and certificates for servers on loopback."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import shutil
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

TRUST = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""Variables that name the file of the authorities that a program trusts."""
_LIFE = timedelta(days=3650)
LOOPBACK = "127.0.0.1"


class Authority:
    """``pem`` is the authority's certificate; its files go into ``folder``, where kubeadm would put them.

    ``name`` is its own. ``pair``: certificate and key of one that was made before.
    """

    def __init__(self, folder: Path, name: str = "kubernetes", pair: tuple[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._name = _name(name)
        if pair is None:
            self._key = ec.generate_private_key(ec.SECP256R1())
            self.pem = self._certificate().decode()
        else:
            self.pem = pair[0]
            key = load_pem_private_key(pair[1].encode(), None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise TypeError("the key of an authority is of an elliptic curve")
            self._key = key
        (folder / "ca.crt").write_text(self.pem, encoding="utf-8")

    @property
    def pin(self) -> str:
        """The CA certificate hash of kubeadm: ``sha256:`` over the public key."""
        public = self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return f"sha256:{hashlib.sha256(public).hexdigest()}"

    @property
    def key(self) -> str:
        """Private key of the authority, PEM."""
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    @property
    def path(self) -> Path:
        """The file with the authority's certificate."""
        return self._folder / "ca.crt"

    def issue(self, name: str, address: str = LOOPBACK) -> tuple[Path, Path]:
        """The files of a serving certificate for an address, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name), self._name, key)
        subject = x509.IPAddress(ipaddress.ip_address(address))
        builder = builder.add_extension(x509.SubjectAlternativeName([subject]), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = builder.add_extension(issuer, critical=False).sign(self._key, SHA256())
        return self._written(name, key, certificate)

    def _written(self, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> tuple[Path, Path]:
        paths = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        paths[1].touch(mode=0o600)
        paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
        return paths

    def issue_client(self, name: str) -> tuple[Path, Path]:
        """The files of a client certificate, which names somebody, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name), self._name, key)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = builder.add_extension(issuer, critical=False).sign(self._key, SHA256())
        return self._written(name, key, certificate)

    def serving(self, name: str, address: str = LOOPBACK) -> ssl.SSLContext:
        """For a server on that address, with a certificate of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(name, address))
        return context

    def _certificate(self) -> bytes:
        builder = _builder(self._name, self._name, self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_signs_certificates(), critical=True)
        subject = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        return builder.add_extension(subject, critical=False).sign(self._key, SHA256()).public_bytes(Encoding.PEM)


@contextmanager
def trusted(authority: Authority) -> Iterator[dict[str, str]]:
    """Let this process trust the authority, and no other. So do programs that get these variables. Its files go with
    the context."""
    variables = {name: str(authority.path) for name in TRUST}
    try:
        with patch.dict(os.environ, variables):
            yield variables
    finally:
        shutil.rmtree(authority.path.parent, ignore_errors=True)


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
