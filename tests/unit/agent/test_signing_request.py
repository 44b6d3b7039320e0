"""Requests for certificates are read as cryptography writes them, and whatever no kubelet asks for is refused."""

from __future__ import annotations

import base64
from ipaddress import ip_address
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import AttributeOID, ExtendedKeyUsageOID, NameOID
from hypothesis import given
from hypothesis import strategies as st

from agent.stockyard_agent import der
from agent.stockyard_agent.signing_request import SigningRequest, parse

KEY = ec.generate_private_key(ec.SECP256R1())
SUBJECT = ((NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, "system:node:worker-1"))
NAMES: tuple[x509.GeneralName, ...] = (
    x509.DNSName("worker-1"), x509.IPAddress(ip_address("10.0.1.2")), x509.IPAddress(ip_address("fd00::1")),
)  # fmt: skip


def builder(subject: Any = SUBJECT) -> x509.CertificateSigningRequestBuilder:
    name = x509.Name([x509.NameAttribute(kind, value) for kind, value in subject])
    return x509.CertificateSigningRequestBuilder().subject_name(name)


def pem(request: x509.CertificateSigningRequestBuilder, key: Any = KEY) -> bytes:
    return request.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def sent(text: bytes) -> str:
    return base64.b64encode(text).decode()


def test_a_kubelets_requests_are_read() -> None:
    first = SigningRequest("system:nodes", "system:node:worker-1")
    assert parse(sent(pem(builder()))) == first
    assert parse(sent(pem(builder(SUBJECT[::-1])))) == first
    assert parse(sent(pem(builder(), rsa.generate_private_key(65537, 2048)))) == first
    for critical in (False, True):
        serving = builder().add_extension(x509.SubjectAlternativeName(NAMES), critical=critical)
        assert parse(sent(pem(serving))) == SigningRequest(
            "system:nodes", "system:node:worker-1", ("worker-1",), ("10.0.1.2", "fd00::1")
        )


NEVER: dict[str, x509.CertificateSigningRequestBuilder] = {
    "no subject": builder(()),
    "no organization": builder(SUBJECT[1:]),
    "two organizations": builder((*SUBJECT, (NameOID.ORGANIZATION_NAME, "system:masters"))),
    "two common names": builder((*SUBJECT, (NameOID.COMMON_NAME, "system:node:other"))),
    "a serial number": builder((*SUBJECT, (NameOID.SERIAL_NUMBER, "1"))),
    "a mail address": builder().add_extension(
        x509.SubjectAlternativeName([x509.RFC822Name("a@example.test")]), critical=False
    ),
    "a URI": builder().add_extension(
        x509.SubjectAlternativeName([x509.UniformResourceIdentifier("spiffe://a/b")]), critical=False
    ),
    "an authority": builder().add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True),
    "other usages": builder().add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False),
    "two extensions": builder()
    .add_extension(x509.SubjectAlternativeName(NAMES), critical=False)
    .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True),
    "a password": builder().add_attribute(AttributeOID.CHALLENGE_PASSWORD, b"secret"),
    "several names in one part": x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.RelativeDistinguishedName([x509.NameAttribute(*pair) for pair in SUBJECT])])
    ),
}


@pytest.mark.parametrize("oddity", NEVER)
def test_what_no_kubelet_asks_for_is_refused(oddity: str) -> None:
    with pytest.raises(ValueError, match="the request is malformed"):
        parse(sent(pem(NEVER[oddity])))


GOOD = pem(builder().add_extension(x509.SubjectAlternativeName(NAMES), critical=False))
OTHER = pem(builder(((NameOID.ORGANIZATION_NAME, "system:masters"), SUBJECT[1])))


@pytest.mark.parametrize(
    "request_text",
    [
        None,
        "",
        "%",
        sent(b"\xff"),
        sent(OTHER + GOOD),
        sent(GOOD + OTHER),
        sent(b"# first\n" + GOOD),
        sent(GOOD.replace(b"REQUEST-----\n", b"REQUEST-----\nProc-Type: 4\n\n", 1)),
        sent(GOOD.replace(b"CERTIFICATE REQUEST", b"NEW CERTIFICATE REQUEST")),
        sent(GOOD.replace(b"\n", b"\r\n")),
        sent(GOOD * 40),
    ],
)
def test_only_one_plain_block_of_pem_is_read(request_text: Any) -> None:
    """Other readers skip text before a block, and take the first of several."""
    with pytest.raises(ValueError, match="PEM"):
        parse(request_text)


DER = x509.load_pem_x509_csr(GOOD).public_bytes(Encoding.DER)


def as_pem(data: bytes) -> str:
    lines = base64.encodebytes(data).decode()
    return sent(f"-----BEGIN CERTIFICATE REQUEST-----\n{lines}-----END CERTIFICATE REQUEST-----\n".encode())


@given(st.integers(0, len(DER) - 1), st.integers(1, 255))
def test_a_changed_byte_gives_the_same_reading_as_cryptography_or_none(position: int, change: int) -> None:
    """A reader of something else than the signer reads could be shown one name and approve another."""
    data = DER[:position] + bytes([DER[position] ^ change]) + DER[position + 1 :]
    try:
        request = parse(as_pem(data))
        oracle = x509.load_der_x509_csr(data)
    except ValueError:  # nobody signs what cannot be read
        return
    names = oracle.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert request.common_name == oracle.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    assert request.organization == oracle.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value
    assert list(request.dns_names) == names.get_values_for_type(x509.DNSName)
    assert list(request.addresses) == [str(address) for address in names.get_values_for_type(x509.IPAddress)]


@given(st.integers(0, len(DER) - 1))
def test_a_request_that_is_cut_off_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=r"malformed|PEM"):
        parse(as_pem(DER[:size]))


@pytest.mark.parametrize(
    "data",
    [
        bytes.fromhex(text)
        for text in ("30800000", "30810100", "3082000100", "1f0100", "30850000000000", "02010000", "")
    ],
)
def test_lengths_and_tags_of_other_encodings_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"length|shorter|tag|one element|cut off"):
        der.whole(data)
