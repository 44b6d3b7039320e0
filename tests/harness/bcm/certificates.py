"""Certificates of a head node and of its clients: by an authority, as BCM makes them, good ones and bad ones."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes

    @property
    def certificate_b64(self) -> str:
        """The certificate as attributes have it."""
        return base64.b64encode(self.certificate).decode()

    @property
    def key_b64(self) -> str:
        """The key as attributes have it."""
        return base64.b64encode(self.key).decode()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, in hex."""
        der = x509.load_pem_x509_certificate(self.certificate).public_bytes(Encoding.DER)
        return hashlib.sha256(der).hexdigest()

    def files(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Both as files."""
        paths = folder / f"{name}.pem", folder / f"{name}.key"
        for path, content in zip(paths, (self.certificate, self.key), strict=True):
            path.write_bytes(content)
        return paths


class Maker:
    """An authority that signs; ``pair`` is its own."""

    def __init__(self, name: str = "BCM") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        basic = x509.BasicConstraints(ca=True, path_length=None)
        self.pair = self._signed(self._name, self._key, [(basic, True)], timedelta(days=30))

    def client(self, name: str = "admin", life: timedelta = timedelta(days=30)) -> Pair:
        """A client certificate; with a negative ``life`` one that has ended."""
        return self._signed(_name(name), ec.generate_private_key(ec.SECP256R1()), [], life)

    def server(self, address: str = "127.0.0.1", life: timedelta = timedelta(days=30)) -> Pair:
        """The certificate of a server at that address."""
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        return self._signed(_name("head"), ec.generate_private_key(ec.SECP256R1()), [(names, False)], life)

    def _signed(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        extensions: list[tuple[x509.ExtensionType, bool]],
        life: timedelta,
    ) -> Pair:
        now = datetime.now(UTC)
        begin = now - timedelta(days=60)
        builder = x509.CertificateBuilder(self._name, name, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(begin).not_valid_after(now + life)
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(identifier, critical=False).add_extension(issuer, critical=False)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return Pair(builder.sign(self._key, SHA256()).public_bytes(Encoding.PEM), private)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
