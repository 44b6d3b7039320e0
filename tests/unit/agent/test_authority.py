"""The hash of the authority: against cryptography, against openssl, and against what is no certificate."""

from __future__ import annotations

import hashlib
import shutil
import ssl
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from agent.stockyard_agent.authority import pin, public_key

KEYS: dict[str, Callable[[], Any]] = {
    "rsa-2048": lambda: rsa.generate_private_key(65537, 2048),
    "ec-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ec-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}


def certificate(key: CertificateIssuerPrivateKeyTypes, name: str = "kubernetes") -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2036, 1, 1, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, algorithm)
    )


def text(certificate_object: x509.Certificate) -> str:
    return certificate_object.public_bytes(serialization.Encoding.PEM).decode()


def expected(certificate_object: x509.Certificate) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return (
        "sha256:"
        + hashlib.sha256(certificate_object.public_key().public_bytes(serialization.Encoding.DER, form)).hexdigest()
    )


@pytest.mark.parametrize("kind", KEYS)
def test_pin_equals_hash_computed_by_cryptography(kind: str) -> None:
    authority = certificate(KEYS[kind]())
    assert pin(text(authority)) == expected(authority)


def test_pin_uses_first_certificate_of_bundle() -> None:
    first, second = (certificate(KEYS["ec-256"](), name) for name in ("one", "two"))
    assert pin("# a comment\n" + text(first) + text(second)) == expected(first)


def test_pin_equals_hash_computed_by_openssl(tmp_path: Path) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is a system program that is not installed here")
    path = tmp_path / "ca.crt"
    key = tmp_path / "ca.key"
    run: list[Any] = [
        program,
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-out",
        path,
        "-subj",
        "/CN=kubernetes",
    ]
    subprocess.run(run, check=True, capture_output=True)
    public = subprocess.run([program, "x509", "-pubkey", "-noout", "-in", path], check=True, capture_output=True).stdout
    convert = [program, "pkey", "-pubin", "-outform", "DER"]
    der = subprocess.run(convert, input=public, check=True, capture_output=True).stdout
    assert pin(path.read_text()) == "sha256:" + hashlib.sha256(der).hexdigest()


@pytest.mark.parametrize(
    "pem",
    [
        "",
        "-----BEGIN CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----",
        ssl.DER_cert_to_PEM_cert(b""),
        ssl.DER_cert_to_PEM_cert(b"\x30\x80\x00\x00"),
        ssl.DER_cert_to_PEM_cert(b"\x02\x01\x00"),
        ssl.DER_cert_to_PEM_cert(b"\x30\x84\xff\xff\xff\xff"),
    ],
)
def test_pin_refuses_malformed_certificates(pem: str) -> None:
    with pytest.raises(ValueError, match=r"certificate|base64|padding|PEM"):
        pin(pem)


WHOLE = certificate(KEYS["ec-256"]()).public_bytes(serialization.Encoding.DER)


@given(st.integers(0, len(WHOLE) - 1))
def test_public_key_refuses_truncated_certificate(size: int) -> None:
    with pytest.raises(ValueError, match="certificate"):
        public_key(WHOLE[:size])


@given(st.binary(max_size=200))
def test_public_key_of_any_bytes_returns_key_or_raises_value_error(data: bytes) -> None:
    try:
        key = public_key(data)
    except ValueError:
        return
    assert key in data
